/**
 * Dates of requests: ISO 8601, or Blazar's `YYYY-MM-DD HH:MM`. Without an offset they are UTC. They are
 * compared by the microsecond, the precision of Blazar's database, which neither `Date` nor luxon has.
 */
import { createRequire } from 'node:module';
import type { DateTime } from 'luxon';
import { shownBy } from './read-only.ts';

/** Microseconds since 1970-01-01T00:00:00Z. */
export type Instant = bigint;

/** A date in a lease: a text from a request, or an object from code that embeds the library. */
export type DateValue = string | Date | DateTime;

export const MICROSECONDS_PER_SECOND = 1_000_000n;

/** In characters. No accepted form is longer; longer texts are not parsed. */
const MAX_LENGTH = 64;

/** Digits have fixed positions. Captures the fraction of a second, and the offset. */
const CALENDAR_DATE =
  /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,](\d{1,18}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/**
 * Other ISO 8601 forms with a day: week dates, ordinal dates, the basic format. luxon would also read `12` as
 * noon today.
 */
const OTHER_DATE = /^\d{4}(?:-?W\d\d-?\d|-?\d{3}|\d{4})(?:T|$)/i;

/** A fraction of a second in these forms, removed before luxon parses the text. */
const FRACTION = /(T\d\d:?\d\d:?\d\d)[.,](\d{1,18})/i;

/** The instant of a date; `undefined` for anything that is not a date. */
export function toInstant(value: unknown): Instant | undefined {
  if (typeof value === 'string') {
    return value.length > MAX_LENGTH ? undefined : parseOnce(value);
  }
  if (value instanceof Date || isDateTime(value)) {
    const milliseconds = value.valueOf();
    return Number.isFinite(milliseconds) ? BigInt(Math.trunc(milliseconds)) * 1000n : undefined;
  }
  return undefined;
}

/** The start of a lease; `undefined` if it has none. */
export function leaseStart(lease: { readonly start_date?: DateValue }): Instant | undefined {
  return toInstant(shownBy(lease).start_date);
}

/**
 * The end of a lease. Blazar sends `end_date`; `end_time`, from Blazar's documentation, is used without
 * `end_date`.
 */
export function leaseEnd(lease: {
  readonly end_date?: DateValue;
  readonly end_time?: unknown;
}): Instant | undefined {
  const { end_date, end_time } = shownBy(lease);
  return toInstant(end_date ?? end_time);
}

/** The last two texts and their instants: a check, and then every filter of the chain, parses the same two. */
let last = { text: '', instant: undefined as Instant | undefined };
let lastButOne = last;

function parseOnce(text: string): Instant | undefined {
  if (text === last.text) {
    return last.instant;
  }
  if (text === lastButOne.text) {
    return lastButOne.instant;
  }
  lastButOne = last;
  last = { text, instant: parseText(text) };
  return last.instant;
}

function parseText(text: string): Instant | undefined {
  if (hasUsualForm(text)) {
    return usualInstant(text);
  }
  const match = CALENDAR_DATE.exec(text);
  if (match !== null) {
    return calendarInstant(text, match[1], match[2]);
  }
  return OTHER_DATE.test(text) ? parseOtherDate(text) : undefined;
}

const DASH = 45;
const COLON = 58;
const T = 84;
const SPACE = 32;

/** Whether all but the digits matches `2026-12-01T09:00:00` or `2026-12-01 09:00`, the forms that Blazar sends. */
function hasUsualForm(text: string): boolean {
  const { length } = text;
  return (
    (length === 19 || length === 16) &&
    text.charCodeAt(4) === DASH &&
    text.charCodeAt(7) === DASH &&
    (text.charCodeAt(10) === T || text.charCodeAt(10) === SPACE) &&
    text.charCodeAt(13) === COLON &&
    (length === 16 || text.charCodeAt(16) === COLON)
  );
}

/** Reads digits one by one, without calls that V8 would not inline: dates are a quarter of the cost of a check. */
function usualInstant(text: string): Instant | undefined {
  // 0 to 9 for a digit, and more for anything else.
  const digit = (at: number) => text.charCodeAt(at) ^ 48;
  const y1 = digit(0);
  const y2 = digit(1);
  const y3 = digit(2);
  const y4 = digit(3);
  const mo1 = digit(5);
  const mo2 = digit(6);
  const d1 = digit(8);
  const d2 = digit(9);
  const h1 = digit(11);
  const h2 = digit(12);
  const mi1 = digit(14);
  const mi2 = digit(15);
  const hasSeconds = text.length === 19;
  const s1 = hasSeconds ? digit(17) : 0;
  const s2 = hasSeconds ? digit(18) : 0;
  if (Math.max(y1, y2, y3, y4, mo1, mo2, d1, d2, h1, h2, mi1, mi2, s1, s2) > 9) {
    return undefined;
  }
  const year = y1 * 1000 + y2 * 100 + y3 * 10 + y4;
  return instantOf(year, mo1 * 10 + mo2, d1 * 10 + d2, h1 * 10 + h2, mi1 * 10 + mi2, s1 * 10 + s2, 0, 0);
}

/** Takes the groups of `CALENDAR_DATE`. */
function calendarInstant(text: string, fraction = '', offset = ''): Instant | undefined {
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  const hasTime = text[13] === ':';
  const hour = hasTime ? twoDigits(text, 11) : 0;
  const minute = hasTime ? twoDigits(text, 14) : 0;
  const second = hasTime && text[16] === ':' ? twoDigits(text, 17) : 0;
  const micros = fraction === '' ? 0 : microseconds(fraction);
  const shift = offset === '' ? 0 : offsetSeconds(offset);
  return shift === undefined
    ? undefined
    : instantOf(year, twoDigits(text, 5), twoDigits(text, 8), hour, minute, second, micros, shift);
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - 48) * 10 + text.charCodeAt(at + 1) - 48;
}

/**
 * `undefined` for a day or time that does not exist, and for years before 100, which JavaScript often reads
 * as 19xx. `shift`: the offset in seconds.
 */
function instantOf(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
  micros: number,
  shift: number,
): Instant | undefined {
  const endOfDay = hour === 24 && minute + second + micros === 0;
  if (year < 100 || month < 1 || month > 12 || (hour > 23 && !endOfDay) || minute > 59 || second > 59) {
    return undefined;
  }
  if (day < 1 || (day > 28 && day > daysBefore(year, month + 1, 1) - daysBefore(year, month, 1))) {
    return undefined;
  }
  const days = daysBefore(year, month, day) - DAYS_BEFORE_1970;
  return instant(days * 86_400 + hour * 3600 + minute * 60 + second - shift, micros);
}

/**
 * Days since a fixed day, in the Gregorian calendar; month 13 is the next January. `Date.UTC` takes three
 * times as long. Source: Howard Hinnant, `days_from_civil`.
 */
function daysBefore(year: number, month: number, day: number): number {
  // Years begin in March here, so that a leap day is the last day.
  const years = month > 2 ? year : year - 1;
  const months = month > 2 ? month - 3 : month + 9;
  const leapDays = Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400);
  return years * 365 + leapDays + Math.floor((months * 153 + 2) / 5) + day;
}

const DAYS_BEFORE_1970 = 719_469;

/** `Z`, `+01`, `+0100` or `+01:00` in seconds; `undefined` if it is out of range. */
function offsetSeconds(offset: string): number | undefined {
  if (offset.length === 1) {
    return 0;
  }
  const hours = twoDigits(offset, 1);
  const minutes = offset.length === 3 ? 0 : twoDigits(offset, offset.length - 2);
  if (hours > 23 || minutes > 59) {
    return undefined;
  }
  return (offset[0] === '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

function instant(seconds: number, micros: number): Instant {
  const total = seconds * 1_000_000 + micros;
  // A number is exact for 285 years around 1970, and half as expensive as a bigint.
  return Number.isSafeInteger(total)
    ? bigintOf(total)
    : BigInt(seconds) * MICROSECONDS_PER_SECOND + BigInt(micros);
}

const WORDS = new DataView(new ArrayBuffer(8));
const WORD = 2 ** 32;

/** `BigInt(whole)` for a safe integer, in a quarter of the time. */
function bigintOf(whole: number): bigint {
  const high = Math.floor(whole / WORD);
  WORDS.setInt32(4, high, true);
  WORDS.setUint32(0, whole - high * WORD, true);
  return WORDS.getBigInt64(0, true);
}

function parseOtherDate(text: string): Instant | undefined {
  const fraction = FRACTION.exec(text)?.[2] ?? '';
  const whole = text.replace(FRACTION, '$1');
  if (/[.,]/.test(whole)) {
    // luxon would keep only the milliseconds of any other fraction.
    return undefined;
  }
  const date = luxon().DateTime.fromISO(whole, { zone: 'utc' });
  return date.isValid ? instant(date.toMillis() / 1000, microseconds(fraction)) : undefined;
}

/** The first six digits of a fraction of a second. */
function microseconds(fraction: string): number {
  return Number(fraction.slice(0, 6).padEnd(6, '0'));
}

function isDateTime(value: unknown): value is DateTime {
  return (
    typeof value === 'object' &&
    value !== null &&
    'isLuxonDateTime' in value &&
    value.isLuxonDateTime === true &&
    // JSON may have an attribute of that name.
    typeof value.valueOf === 'function'
  );
}

/** `2026-12-01T09:00:00Z`: in UTC, with a fraction of a second only if it is not 0. */
export function formatInstant(instant: Instant): string {
  // Instants before 1970 are negative.
  const part = ((instant % MICROSECONDS_PER_SECOND) + MICROSECONDS_PER_SECOND) % MICROSECONDS_PER_SECOND;
  const seconds = new Date(Number((instant - part) / 1000n)).toISOString().slice(0, -'.000Z'.length);
  return `${seconds}${part === 0n ? '' : `.${String(part).padStart(6, '0').replace(/0+$/, '')}`}Z`;
}

/** `second`: of the epoch. */
export function secondText(second: bigint): string {
  return formatInstant(second * MICROSECONDS_PER_SECOND);
}

/** `172800 seconds (2 days)`: a duration in microseconds, for display; its fraction of a second only if not 0. */
export function formatDuration(duration: Instant): string {
  const whole = duration / MICROSECONDS_PER_SECOND;
  const part = duration % MICROSECONDS_PER_SECOND;
  const seconds = part === 0n ? `${whole}` : `${whole}.${String(part).padStart(6, '0').replace(/0+$/, '')}`;
  const words = inWords(Number(whole));
  return `${seconds} seconds${words === '' || words === `${seconds} seconds` ? '' : ` (${words})`}`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** `1 day, 2 hours`. luxon formats it too, but takes as long as several checks. */
function inWords(seconds: number): string {
  let words = '';
  let rest = seconds;
  for (const [unit, size] of UNITS) {
    const count = Math.trunc(rest / size);
    rest -= count * size;
    if (count !== 0) {
      words += `${words === '' ? '' : ', '}${count} ${unit}${count === 1 ? '' : 's'}`;
    }
  }
  return words;
}

let loaded: typeof import('luxon') | undefined;

/** Loaded on first use: most decisions do not need luxon, and commands start faster without it. */
function luxon(): typeof import('luxon') {
  loaded ??= createRequire(import.meta.url)('luxon') as typeof import('luxon');
  return loaded;
}
