/**
 * Usage in whole numbers. 1 is a millionth of a unit for one second; an hour of one unit, such as a node-hour, is 3.6 thousand
 * million. Sums, differences and parts of a lease are exact.
 */

/** Of usage: millionths of a unit, times seconds. Of held claims: the count itself. */
export type Amount = bigint;

const MICRO_DIGITS = 6;
const MICRO = 10n ** BigInt(MICRO_DIGITS);
const SECONDS_PER_HOUR = 3600n;
const UNIT_HOUR: Amount = MICRO * SECONDS_PER_HOUR;

/** The largest number that both databases hold exactly: more than 2,500 million unit-hours. */
export const MAX_AMOUNT: Amount = 2n ** 63n - 1n;

const DECIMAL = /^(\d{1,15})(?:\.(\d{1,6})0*)?$/;

/** `2.5` → 2500000: a decimal number, 0 or more, in millionths. `undefined` for anything else, and for more than six decimals. */
export function parseMillionths(text: string): bigint | undefined {
  const match = DECIMAL.exec(text.trim());
  if (match === null) {
    return undefined;
  }
  const [, whole = '0', fraction = ''] = match;
  return BigInt(whole) * MICRO + BigInt(fraction.padEnd(MICRO_DIGITS, '0'));
}

/** Parses a budget as an operator writes it: `1000` unit-hours. `undefined` if it is no such number, or too large. */
export function parseUnitHours(text: string): Amount | undefined {
  const millionths = parseMillionths(text);
  const amount = millionths === undefined ? undefined : millionths * SECONDS_PER_HOUR;
  return amount === undefined || amount > MAX_AMOUNT ? undefined : amount;
}

/** In unit-hours, as the nearest number that JavaScript has. */
export function unitHours(amount: Amount): number {
  return Number(amount) / Number(UNIT_HOUR);
}

const SHOWN_DIGITS = 4;

/**
 * In unit-hours, with up to four decimals. Round a cost up and what is left down: a message must not suggest that a lease fits
 * which does not.
 */
export function formatUnitHours(amount: Amount, rounding: 'up' | 'down' = 'up'): string {
  const scale = 10n ** BigInt(SHOWN_DIGITS);
  const sign = amount < 0n ? '-' : '';
  const scaled = (amount < 0n ? -amount : amount) * scale;
  const roundsUp = (rounding === 'up') === amount >= 0n;
  const rounded = (scaled + (roundsUp ? UNIT_HOUR - 1n : 0n)) / UNIT_HOUR;
  const fraction = String(rounded % scale)
    .padStart(SHOWN_DIGITS, '0')
    .replace(/0+$/, '');
  const text = `${rounded / scale}${fraction === '' ? '' : `.${fraction}`}`;
  return text === '0' ? text : `${sign}${text}`;
}
