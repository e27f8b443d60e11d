/** Prices of catalogs, as whole numbers. */

/** Millionths of a unit for each hour. */
export type Price = bigint;

/** No machine costs more, in units for each hour. */
export const MAX_PRICE = 1_000_000n;

const MILLION = 1_000_000n;
const NUMBER = /^(\d{0,30})(?:\.(\d{0,60}))?(?:e([+-]?\d{1,3}))?$/i;
const MAX_EXPONENT = 60;

/**
 * `3.06`, `1e-3`: exact, and what is finer than a millionth is rounded up. `undefined` = it is no number from 0 to `MAX_PRICE`.
 */
export function parsePrice(text: string): Price | undefined {
  const [, whole, fraction = '', written = '0'] = NUMBER.exec(text) ?? [];
  const exponent = Number(written);
  if (whole === undefined || whole + fraction === '' || Math.abs(exponent) > MAX_EXPONENT) {
    return undefined;
  }
  const shift = exponent - fraction.length + 6;
  const digits = BigInt(whole + fraction);
  const divisor = 10n ** BigInt(Math.max(0, -shift));
  const price = (digits * 10n ** BigInt(Math.max(0, shift)) + divisor - 1n) / divisor;
  return price > MAX_PRICE * MILLION ? undefined : price;
}

/** Of prices that may be missing. */
export function dearer(one: Price | undefined, other: Price | undefined): Price | undefined {
  return one === undefined || (other !== undefined && other > one) ? other : one;
}
