/** How values are shown: shortened, without the credentials that a URL may carry, and secrets not at all. */

const HIDDEN = '****';
const MAX_SHOWN = 120;

/**
 * A value inside an error message: as JSON, of bounded length, without credentials. Of several lines only the first: an
 * indented `token = …` continues the option above it, and is no part of what was meant there.
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
    // A circle, or a BigInt: only code can give such a value.
    return undefined;
  }
}

/**
 * `https://user:password@host/` → `https://****@host/`, anywhere in a text. Up to the last `@` of a word, since a
 * password that is not escaped may hold `/` and `#`: a path with an `@` is rather hidden too.
 */
export function hideCredentials(text: string): string {
  return text.replace(/\S+/g, (word) => {
    const at = word.lastIndexOf('@');
    const scheme = word.indexOf('://');
    const start = scheme === -1 || scheme > at ? 0 : scheme + 3;
    const before = word.slice(start, at);
    return at === -1 || (start === 0 && !before.includes(':'))
      ? word
      : `${word.slice(0, start)}${HIDDEN}${word.slice(at)}`;
  });
}

/** The value of a setting as it may be printed; an empty secret is no secret. */
export function showValue(value: unknown, secret: boolean): unknown {
  if (secret) {
    return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
      ? value
      : HIDDEN;
  }
  return typeof value === 'string' ? hideCredentials(value) : value;
}
