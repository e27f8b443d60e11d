/** Times in cases: as in requests, or from the clock of the case. */
import { type Instant, MICROSECONDS_PER_SECOND, toInstant } from '../../lease/dates.ts';

/** In seconds. */
const UNITS = { w: 604_800, d: 86_400, h: 3_600, m: 60, s: 1 } as const;
const FROM_NOW = /^([+-])((?:\d{1,6}[wdhms])+)$/;

export function isTimeText(text: string): boolean {
  return text === 'now' || FROM_NOW.test(text) || toInstant(text) !== undefined;
}

/** `now`, `+2d12h`, `-30m`, or a date. The text must be one. */
export function timeOf(text: string, now: Instant): Instant {
  if (text === 'now') {
    return now;
  }
  const [, sign, parts] = FROM_NOW.exec(text) ?? [];
  if (parts === undefined) {
    return toInstant(text) ?? now;
  }
  let seconds = 0;
  for (const [, count, unit] of parts.matchAll(/(\d+)([wdhms])/g)) {
    seconds += Number(count) * UNITS[unit as keyof typeof UNITS];
  }
  return now + (sign === '-' ? -1n : 1n) * BigInt(seconds) * MICROSECONDS_PER_SECOND;
}
