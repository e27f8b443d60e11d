/** Leases with other dates. In whole minutes, as Blazar has them. */
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND, toInstant } from '../../lease/dates.ts';
import { type Lease, leaseEnd, leaseStart } from '../../lease/lease.ts';
import type { FittingTimes } from '../../ledger/transactions/previewed-charges.ts';
import { type Line, spread } from './nearest.ts';
import type { Way } from './way.ts';

const MINUTE = 60n * MICROSECONDS_PER_SECOND;
const HOUR = 60;
const DAY = 24 * HOUR;

/** In minutes. A lease of less is suggested only if less was asked for. */
export const SHORTEST = HOUR;
/** In days. */
export const LATEST = 366;
const MAX_INSTANT = toInstant('9999-12-31 23:59') ?? 0n;

/** The same start, an earlier end. */
export function shorter(lease: Lease, { ends }: FittingTimes): Way | undefined {
  const [start, end] = [leaseStart(lease), leaseEnd(lease)];
  if (start === undefined || end === undefined) {
    return undefined;
  }
  const last = floor(end - 1n);
  const first = ceil(start + BigInt(end - start > BigInt(SHORTEST) * MINUTE ? SHORTEST : 1) * MINUTE);
  const endAt = (step: number) => last - BigInt(step - 1) * MINUTE;
  return wayOn({
    change: 'shorter',
    far: minutes(last - first) + 1,
    guesses: ends.map((one) => minutes(last - floor(one)) + 1),
    landmarks: spread,
    leaseAt: (step) => withEnd(lease, endAt(step)),
    lossAt: (step) => Number(end - endAt(step)) / Number(end - start),
    textAt: (step) => `End on ${shown(endAt(step))} instead of ${shown(end)}.`,
  });
}

/** As long as it is, with a later start. */
export function later(lease: Lease, { starts }: FittingTimes): Way | undefined {
  const [start, end] = [leaseStart(lease), leaseEnd(lease)];
  if (start === undefined || end === undefined) {
    return undefined;
  }
  const first = ceil(start + 1n);
  const startAt = (step: number) => first + BigInt(step - 1) * MINUTE;
  const endAt = (step: number) => floor(end + startAt(step) - start);
  const guesses = starts.map((one) => minutes(ceil(one) - first) + 1);
  return wayOn({
    change: 'later',
    far: Math.min(LATEST * DAY, minutes(MAX_INSTANT - end)),
    guesses,
    landmarks: (far) => [1, HOUR, ...DAYS.map((days) => days * DAY), far],
    leaseAt: (step) => withEnd(withStart(lease, startAt(step)), endAt(step)),
    lossAt: (step) => Number(startAt(step) - start) / Number(endAt(step) - start),
    textAt: (step) =>
      `Start on ${shown(startAt(step))} and end on ${shown(endAt(step))}: as long, but later.`,
    easier: (step) => (guesses.includes(step) ? undefined : withMargin(startAt(step), first)),
  });
}

/** A rule may repeat each week. */
const DAYS = [1, 2, 3, 4, 5, 6, 7, 14, 30, 60, 90, 180];

/** In minutes: what may start at the earliest a time from now is refused a minute later, before anybody could ask for it. */
const MARGIN = 10n;
const QUARTER = 15n * MINUTE;

/** The step of the next quarter of an hour after a margin. A start of a day is a date of somebody's rule. */
function withMargin(start: Instant, first: Instant): number | undefined {
  if (start % (BigInt(DAY) * MINUTE) === 0n) {
    return undefined;
  }
  const after = start + MARGIN * MINUTE + QUARTER - 1n;
  return minutes(after - (after % QUARTER) - first) + 1;
}

function wayOn({
  far,
  landmarks,
  guesses,
  ...way
}: Omit<Way, 'line'> & Omit<Line, 'landmarks'> & Spread): Way | undefined {
  return far < 1 ? undefined : { ...way, line: { far, guesses, landmarks: landmarks(far) } };
}

interface Spread {
  landmarks(far: number): number[];
}

function withStart(lease: Lease, start: Instant): Lease {
  return { ...lease, start_date: written(start, lease.start_date) };
}

function withEnd(lease: Lease, end: Instant): Lease {
  const field = (lease.end_date ?? undefined) === undefined ? 'end_time' : 'end_date';
  return { ...lease, [field]: written(end, lease[field]) };
}

/** In the form of the date that it replaces. */
function written(instant: Instant, before: unknown): string {
  const text = formatInstant(instant);
  const form = typeof before === 'string' ? before : '';
  if (/^[\d-]{10} \d\d:\d\d$/.test(form)) {
    return text.slice(0, 16).replace('T', ' ');
  }
  return /[:\d]$/.test(form) && /^[\d-]{10}T[\d:.]*$/.test(form) ? text.slice(0, -1) : text;
}

/** `2026-12-03 at 09:00 UTC`; with seconds if they are not 0. */
function shown(instant: Instant): string {
  const text = formatInstant(instant);
  const time = text.slice(11, -1);
  return `${text.slice(0, 10)} at ${time.endsWith(':00') ? time.slice(0, 5) : time} UTC`;
}

function minutes(duration: bigint): number {
  return Number(duration / MINUTE);
}

/** Dates of leases are after 1970, or nobody asks for later ones. */
function floor(instant: Instant): Instant {
  const rest = ((instant % MINUTE) + MINUTE) % MINUTE;
  return instant - rest;
}

function ceil(instant: Instant): Instant {
  return floor(instant + MINUTE - 1n);
}
