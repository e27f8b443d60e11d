/** Times and durations as flags take them: `--since yesterday`, `--until 2026-11-20`, `--older-than 1h`. */
import { toInstant } from '../lease/dates.ts';
import { UsageError } from './output.ts';

const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
const DAY_MS = UNIT_SECONDS.d * 1000;
/** Midnight in UTC, in days from the current day. */
const NAMED_DAYS: Readonly<Record<string, number>> = { today: 0, yesterday: -1 };

/** For the help text of a flag that `parseTime` reads. */
export const TIME_FORMS =
  'a date in ISO 8601, today, yesterday (midnight UTC), or a duration before now: 90s, 30m, 24h, 7d';

/**
 * A point in time, in milliseconds since 1970. `now`: the time to count from, in milliseconds.
 *
 * @throws UsageError that names the flag
 */
export function parseTime(flag: string, text: string, now = Date.now()): number {
  const seconds = secondsIn(text);
  if (seconds !== undefined) {
    return now - seconds * 1000;
  }
  const days = Object.hasOwn(NAMED_DAYS, text) ? NAMED_DAYS[text] : undefined;
  if (days !== undefined) {
    return (Math.floor(now / DAY_MS) + days) * DAY_MS;
  }
  const instant = toInstant(text);
  if (instant === undefined) {
    throw new UsageError(`${flag}: expected ${TIME_FORMS}, got ${JSON.stringify(text)}`);
  }
  return Number(instant) / 1000;
}

/**
 * A duration in seconds: `90s`, `30m`, `24h`, `7d`, or a whole number of seconds. `most`: the longest one accepted, in seconds.
 *
 * @throws UsageError that names the flag
 */
export function parseDuration(flag: string, text: string, most: number): number {
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : secondsIn(text);
  if (seconds === undefined || seconds > most) {
    throw new UsageError(
      `${flag}: expected a duration such as 90s, 30m, 24h or 7d of at most ${most} seconds, got ${JSON.stringify(text)}`,
    );
  }
  return seconds;
}

function secondsIn(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
}
