/** How values are shown: shortened, without the credentials that a URL may carry, and secrets not at all. */

const HIDDEN = '****';
const MAX_SHOWN = 120;

/** A value inside an error message: as JSON, of bounded length, without credentials. */
export function showText(value: unknown): string {
  const text = typeof value === 'string' ? hideCredentials(value) : value;
  const shown = JSON.stringify(text) ?? String(text);
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
}

/** `https://user:password@host/` → `https://****@host/`, anywhere in a text. */
export function hideCredentials(text: string): string {
  return text.replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^/?#\s]*@/gi, `$1${HIDDEN}@`);
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
