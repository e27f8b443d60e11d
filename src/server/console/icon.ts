/** The icon of a tab: a bar that is taken in part. */
export const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect x="1" y="5" width="14" height="6" rx="1.5" fill="#fff" stroke="#1d5bbf"/><rect x="1" y="5" width="9" height="6" rx="1.5" fill="#1d5bbf"/></svg>';
