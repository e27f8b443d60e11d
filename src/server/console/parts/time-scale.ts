/** Converts times to positions in a picture of any width, in percent. */
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';

export interface TimeScale {
  /** `12.34%`; times outside are placed at the edge. */
  place(instant: Instant): string;
  /** Position and width of a bar; short ones are widened to be visible. */
  bar(start: Instant, end: Instant): { readonly x: string; readonly width: string };
  readonly ticks: readonly { readonly x: string; readonly label: string }[];
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MAX_TICKS = 7;
/** In percent. */
const NARROWEST_BAR = 0.7;

/** A scale for a time window: its ends are the edges of the picture. */
export function windowScale(window: { readonly from: Instant; readonly until: Instant }): TimeScale {
  const from = milliseconds(window.from);
  const until = milliseconds(window.until);
  const percent = (time: number) => Math.min(100, Math.max(0, (100 * (time - from)) / (until - from)));
  // The smallest readable distance.
  const step = DAY_STEPS.find((one) => (until - from) / one <= MAX_TICKS);
  const ticks = step === undefined ? monthTicks(from, until) : dayTicks(from, until, step);
  return {
    place: (instant) => shown(percent(milliseconds(instant))),
    bar(start, end) {
      const length = Math.max(NARROWEST_BAR, percent(milliseconds(end)) - percent(milliseconds(start)));
      const x = Math.min(percent(milliseconds(start)), 100 - length);
      return { x: shown(x), width: shown(length) };
    },
    ticks: ticks.map(({ time, label }) => ({ x: shown(percent(time)), label })),
  };
}

/** A share as `33.33%`. */
export function share(part: bigint, whole: bigint): string {
  return whole <= 0n ? '0%' : shown(Number((part * 10_000n) / whole) / 100);
}

/** `2026-12-01 09:30`, in UTC, without fractions, zero seconds and midnight. */
export function shownDate(instant: Instant): string {
  return formatInstant(instant)
    .replace('T', ' ')
    .replace(/(\.\d+)?Z$/, '')
    .replace(/:00$/, '')
    .replace(/ 00:00$/, '');
}

/** The same for a second of the epoch. */
export function shownSecond(second: bigint): string {
  return shownDate(second * MICROSECONDS_PER_SECOND);
}

/** Rounded down to the second. */
export function toSecond(instant: Instant): Instant {
  return instant - (instant % MICROSECONDS_PER_SECOND);
}

interface TimeTick {
  readonly time: number;
  readonly label: string;
}

const DAY_STEPS = [HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const MONTH_STEPS = [1, 2, 3, 6, 12];
/** The first Monday of the epoch: weeks begin on Mondays. */
const MONDAY = 4 * DAY;

function dayTicks(from: number, until: number, step: number): TimeTick[] {
  const ticks: TimeTick[] = [];
  for (let time = Math.ceil((from - MONDAY) / step) * step + MONDAY; time < until; time += step) {
    const date = new Date(time);
    const label =
      time % DAY === 0 ? `${date.getUTCDate()} ${monthOf(date)}` : date.toISOString().slice(11, 16);
    ticks.push({ time, label });
  }
  return ticks;
}

function monthTicks(from: number, until: number): TimeTick[] {
  const monthsIn = (until - from) / (30 * DAY);
  const step = MONTH_STEPS.find((one) => monthsIn / one <= MAX_TICKS) ?? 12;
  const first = new Date(from);
  const ticks: TimeTick[] = [];
  for (let month = 0; ; month += 1) {
    const date = new Date(Date.UTC(first.getUTCFullYear(), month));
    if (date.getTime() >= until) {
      return ticks;
    }
    if (date.getTime() >= from && date.getUTCMonth() % step === 0) {
      ticks.push({ time: date.getTime(), label: `${monthOf(date)} ${date.getUTCFullYear()}` });
    }
  }
}

function monthOf(date: Date): string {
  return MONTHS[date.getUTCMonth()] ?? '';
}

function milliseconds(instant: Instant): number {
  return Number(instant / 1000n);
}

function shown(percent: number): string {
  return `${Math.round(percent * 100) / 100}%`;
}
