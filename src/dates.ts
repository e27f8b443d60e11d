/**
 * Dates as they come in requests: ISO 8601, or Blazar's `YYYY-MM-DD HH:MM`; without an offset they mean UTC. Compared
 * to the microsecond, which is what Blazar's database keeps and neither `Date` nor luxon can hold.
 */
import { createRequire } from 'node:module';
import type { DateTime, Duration } from 'luxon';

/** Microseconds since 1970-01-01T00:00:00Z. */
export type Instant = bigint;

/** A date as a lease may hold it: text from the wire, or an object from code that embeds the library. */
export type DateValue = string | Date | DateTime;

export const MICROSECONDS_PER_SECOND = 1_000_000n;

/** No form of a date is longer; what is longer is not parsed. */
const MAX_LENGTH = 64;

const CALENDAR_DATE =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,18}))?)?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?$/i;

/** The other forms of ISO 8601 that name a day: week dates, ordinal dates, the basic format. luxon alone would also take `12` for noon today. */
const OTHER_DATE = /^\d{4}(?:-?W\d\d-?\d|-?\d{3}|\d{4})(?:T|$)/i;

/** A fraction of a second in these forms; luxon is given the text without it. */
const FRACTION = /(T\d{6}|:\d\d:\d\d)[.,](\d{1,18})/i;

/** The instant that a value means, or `undefined` when it is no date. */
export function toInstant(value: unknown): Instant | undefined {
  if (typeof value === 'string') {
    return value.length > MAX_LENGTH ? undefined : parseText(value);
  }
  if (value instanceof Date || isDateTime(value)) {
    const milliseconds = value.valueOf();
    return Number.isFinite(milliseconds) ? BigInt(Math.trunc(milliseconds)) * 1000n : undefined;
  }
  return undefined;
}

function parseText(text: string): Instant | undefined {
  const match = CALENDAR_DATE.exec(text);
  if (match !== null) {
    return calendarInstant(match);
  }
  return OTHER_DATE.test(text) ? parseOtherDate(text) : undefined;
}

/**
 * The forms that Blazar sends. luxon reads them too, in some three microseconds a date; this takes a tenth of that,
 * and dates are most of what a check costs. Years before 100 are no dates: `Date.UTC` would read them as 19xx.
 */
function calendarInstant(match: RegExpExecArray): Instant | undefined {
  const [
    ,
    year = '',
    month = '',
    day = '',
    hour = '0',
    minute = '0',
    second = '0',
    fraction,
    sign,
    offsetHour,
    offsetMinute,
  ] = match;
  const endOfDay = hour === '24' && Number(minute) + Number(second) + Number(fraction ?? 0) === 0;
  if ((Number(hour) > 23 && !endOfDay) || Number(minute) > 59 || Number(second) > 59 || year < '0100') {
    return undefined;
  }
  const midnight = Date.UTC(Number(year), Number(month) - 1, Number(day));
  if (month === '00' || month > '12' || new Date(midnight).getUTCDate() !== Number(day)) {
    return undefined;
  }
  const offset = offsetSeconds(sign, offsetHour, offsetMinute);
  if (offset === undefined) {
    return undefined;
  }
  const seconds = midnight / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - offset;
  return BigInt(seconds) * MICROSECONDS_PER_SECOND + microseconds(fraction);
}

function offsetSeconds(sign: string | undefined, hour = '0', minute = '0'): number | undefined {
  if (Number(hour) > 23 || Number(minute) > 59) {
    return undefined;
  }
  return (sign === '-' ? -1 : 1) * (Number(hour) * 3600 + Number(minute) * 60);
}

function parseOtherDate(text: string): Instant | undefined {
  const fraction = FRACTION.exec(text)?.[2];
  const date = luxon().DateTime.fromISO(text.replace(FRACTION, '$1'), { zone: 'utc' });
  return date.isValid ? BigInt(date.toMillis()) * 1000n + microseconds(fraction) : undefined;
}

function microseconds(fraction: string | undefined): bigint {
  return fraction === undefined ? 0n : BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}

function isDateTime(value: unknown): value is DateTime {
  return (
    typeof value === 'object' &&
    value !== null &&
    'isLuxonDateTime' in value &&
    value.isLuxonDateTime === true
  );
}

/** `172800 seconds (2 days)`: a duration in microseconds as people read it; parts of a second only where there are any. */
export function formatDuration(duration: Instant): string {
  const whole = duration / MICROSECONDS_PER_SECOND;
  const part = duration % MICROSECONDS_PER_SECOND;
  const seconds = part === 0n ? `${whole}` : `${whole}.${String(part).padStart(6, '0').replace(/0+$/, '')}`;
  const words = shiftToDays(Number(whole)).toHuman({ showZeros: false });
  return `${seconds} seconds${words === '' || words === `${seconds} seconds` ? '' : ` (${words})`}`;
}

function shiftToDays(seconds: number): Duration {
  return luxon()
    .Duration.fromObject({ seconds }, { locale: 'en' })
    .shiftTo('days', 'hours', 'minutes', 'seconds');
}

let loaded: typeof import('luxon') | undefined;

/** luxon is loaded by the first date or text that needs it: most decisions don't, and a command starts faster. */
function luxon(): typeof import('luxon') {
  loaded ??= createRequire(import.meta.url)('luxon') as typeof import('luxon');
  return loaded;
}
