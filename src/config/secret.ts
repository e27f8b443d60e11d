/**
 * Secrets: the form of tokens; and values in messages: shortened, without secrets, and without credentials
 * and queries of URLs.
 */

/**
 * For tokens that clients send: shorter ones can be guessed. Sixteen random letters and digits are more than
 * 80 bits.
 */
export const MIN_TOKEN_LENGTH = 16;
export const TOKEN_FORM = new RegExp(`^[\\x21-\\x7e]{${MIN_TOKEN_LENGTH},}$`);

const HIDDEN = '****';
const MAX_SHOWN = 120;

/**
 * A value for an error message: as JSON, shortened, without credentials. Of several lines only the first: an
 * indented `token = …` continues the option above it.
 */
export function showText(value: unknown): string {
  const [first = '', ...further] = typeof value === 'string' ? hideCredentials(value).split('\n') : [];
  const shown = json(typeof value === 'string' ? first : value) ?? String(value);
  const bounded = shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
  return further.length === 0 ? bounded : `${bounded} and the indented lines below it`;
}

function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // A circular reference or a BigInt: possible only from code.
    return undefined;
  }
}

/**
 * `https://user:password@host/path?key=…` → `https://****@host/path?****`, anywhere in a text. Hides up to
 * the last `@` of a word: an unescaped password may contain `/` and `#`. This may hide part of a path with an
 * `@`.
 */
export function hideCredentials(text: string): string {
  return text.replace(/\S+/g, (word) => hideQuery(hideUser(word)));
}

/** As `hideCredentials`, but shows queries. */
export function hideUsers(text: string): string {
  return text.replace(/\S+/g, hideUser);
}

function hideUser(word: string): string {
  const at = word.lastIndexOf('@');
  const scheme = word.indexOf('://');
  const start = scheme === -1 || scheme > at ? 0 : scheme + 3;
  const before = word.slice(start, at);
  return at === -1 || (start === 0 && !before.includes(':'))
    ? word
    : `${word.slice(0, start)}${HIDDEN}${word.slice(at)}`;
}

/** Punctuation that may follow a URL. */
const CLOSING = '"\'`)]}>.,;:';

/** For URLs, also `https:/host`, which is read as one. In linear time: some texts are untrusted. */
function hideQuery(word: string): string {
  const scheme = word.search(/[a-z]:\//i);
  const mark = scheme === -1 ? -1 : word.slice(scheme).indexOf('?');
  const start = scheme + mark + 1;
  let end = word.length;
  while (end > start && CLOSING.includes(word.charAt(end - 1))) {
    end -= 1;
  }
  return mark === -1 || end === start ? word : `${word.slice(0, start)}${HIDDEN}${word.slice(end)}`;
}

/** The printable value of a setting. An empty secret is shown. */
export function showValue(value: unknown, secret: boolean): unknown {
  if (secret) {
    return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
      ? value
      : HIDDEN;
  }
  return typeof value === 'string' ? hideCredentials(value) : value;
}
