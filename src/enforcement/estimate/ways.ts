/** Ways to change a lease step by step: other dates, in whole minutes as in Blazar, and fewer resources. And what an estimate says of them. */

import { onOneLine } from '../../base/visible-text.ts';
import { larger } from '../../filter/claim.ts';
import type { Decision } from '../../filter/verdict.ts';
import {
  formatInstant,
  type Instant,
  leaseEnd,
  leaseStart,
  MICROSECONDS_PER_SECOND,
  toInstant,
} from '../../lease/dates.ts';
import type { Lease, Reservation } from '../../lease/lease.ts';
import type { FittingTimes, PreviewedCharge } from '../../ledger/transactions/previewed-charges.ts';

/** Leases that differ from the requested lease in one way, by 1, 2, 3, … steps. */
export interface Line {
  /** The last step. */
  readonly far: number;
  /** Steps at which something changes, such as the first day of a budget. Tried first. */
  readonly guesses: readonly number[];
  /** Steps to try if no guess is right: an allowed step does not mean that all later ones are allowed. */
  readonly landmarks: readonly number[];
}

/** A way to change a lease, step by step. */
export interface Way {
  readonly change: SuggestedChange;
  readonly line: Line;
  leaseAt(step: number): Lease;
  /** The lost part of the request, from 0 to 1: to compare ways. */
  lossAt(step: number): number;
  /** For display. */
  textAt(step: number): string;
  /** A step that stays allowed for longer than this one, if allowed. Default: none. */
  easier?(step: number): number | undefined;
}

const MINUTE = 60n * MICROSECONDS_PER_SECOND;
const HOUR = 60;
const DAY = 24 * HOUR;

/** In minutes. Shorter ones are suggested only if less was requested. */
export const SHORTEST = HOUR;
/** In days. */
export const LATEST = 366;
const MAX_INSTANT = toInstant('9999-12-31 23:59') ?? 0n;

/** The same start, an earlier end, at least a minute after `now`. */
export function shorter(lease: Lease, { ends }: FittingTimes, now: Instant): Way | undefined {
  const start = leaseStart(lease);
  const end = leaseEnd(lease);
  if (start === undefined || end === undefined) {
    return undefined;
  }
  const last = floor(end - 1n);
  const shortest = ceil(start + BigInt(end - start > BigInt(SHORTEST) * MINUTE ? SHORTEST : 1) * MINUTE);
  const first = larger(shortest, ceil(now + MINUTE));
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

/** The same length, a later start. */
export function later(lease: Lease, { starts }: FittingTimes): Way | undefined {
  const start = leaseStart(lease);
  const end = leaseEnd(lease);
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

/** Includes weeks: rules may repeat. */
const DAYS = [1, 2, 3, 4, 5, 6, 7, 14, 30, 60, 90, 180];

/**
 * In minutes: the earliest allowed start, relative to now, would be refused a minute later, before the user
 * could request it.
 */
const MARGIN = 10n;
const QUARTER = 15n * MINUTE;

/** The next quarter of an hour after a margin. `undefined` for starts of days: these are dates of rules. */
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

/** The dates of a lease that starts later and is shorter. */
export function datesText(lease: Lease): string {
  const start = leaseStart(lease) ?? 0n;
  const end = leaseEnd(lease) ?? 0n;
  return `Start on ${shown(start)} and end on ${shown(end)}: later, and shorter.`;
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

/** The start of the minute, also before 1970. */
function floor(instant: Instant): Instant {
  const rest = ((instant % MINUTE) + MINUTE) % MINUTE;
  return instant - rest;
}

function ceil(instant: Instant): Instant {
  return floor(instant + MINUTE - 1n);
}

interface Count {
  readonly index: number;
  readonly type: string;
  readonly field: 'max' | 'amount';
  readonly most: number;
  readonly least: number;
}

/** With more reservations than this, they are only reduced together. */
const MOST_APART = 4;
/** Number of steps in which all reservations together reach their minimum. */
const TOGETHER = 64;
const MAX_TYPE = 80;

/** Each reservation alone, and all together. */
export function smaller(lease: Lease): { readonly apart: Way[]; readonly together: Way | undefined } {
  const counts = (lease.reservations ?? []).flatMap((one, index) => countOf(one, index) ?? []);
  const total = counts.reduce((sum, { most }) => sum + most, 0);
  const apart =
    counts.length > MOST_APART ? [] : counts.map((one) => wayOf(lease, [one], one.most - one.least, total));
  const together = counts.length < 2 ? undefined : wayOf(lease, counts, TOGETHER, total);
  return { apart, together };
}

function wayOf(lease: Lease, counts: readonly Count[], far: number, total: number): Way {
  // Multiplied first: with one count, each step subtracts exactly one.
  const at = (step: number) =>
    counts.map((one) => ({ ...one, left: one.most - Math.ceil(((one.most - one.least) * step) / far) }));
  return {
    change: 'smaller',
    line: { far, guesses: [], landmarks: spread(far) },
    leaseAt: (step) => withCounts(lease, at(step)),
    lossAt: (step) => at(step).reduce((sum, { most, left }) => sum + most - left, 0) / total,
    textAt: (step) => {
      const parts = at(step).filter(({ most, left }) => left < most);
      const shown = parts
        .slice(0, MOST_APART)
        .map(({ type, most, left }) => `${left} instead of ${most} of ${type}`);
      const more = parts.length > shown.length ? `, and less of ${parts.length - shown.length} others` : '';
      return `Ask for at most ${shown.join(', ')}${more}.`;
    },
  };
}

function withCounts(lease: Lease, counts: readonly (Count & { readonly left: number })[]): Lease {
  const byIndex = new Map(counts.map((one) => [one.index, one]));
  const reservations = (lease.reservations ?? []).map((one, index): Reservation => {
    const count = byIndex.get(index);
    if (count === undefined || count.left === count.most) {
      return one;
    }
    const { field, left } = count;
    return { ...one, [field]: typeof one[field] === 'string' ? String(left) : left };
  });
  return { ...lease, reservations };
}

/** `undefined` = the reservation has nothing to reduce. */
function countOf(reservation: Reservation, index: number): Count | undefined {
  const { resource_type: type = '', min, max, amount } = reservation;
  const field = type === 'physical:host' || amount === undefined || amount === null ? 'max' : 'amount';
  const most = whole(field === 'max' ? max : amount);
  const least = field === 'max' ? Math.max(1, whole(min) ?? 1) : 1;
  return most === undefined || most <= least
    ? undefined
    : { index, type: onOneLine(type.slice(0, MAX_TYPE)), field, most, least };
}

function whole(written: unknown): number | undefined {
  const count = typeof written === 'string' && /^\d{1,15}$/.test(written) ? Number(written) : written;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

/** Steps from near to far, denser at both ends. */
function spread(far: number): number[] {
  return [16, 8, 4, 2].flatMap((part) => [Math.ceil(far / part), far - Math.floor(far / part)]).concat(far);
}

/** What a lease, or a change of one, would take from one account. */
export type EstimatedCharge = PreviewedCharge;

/** Pairs only if no single change is enough. */
export const SUGGESTED_CHANGES = [
  'shorter',
  'smaller',
  'later',
  'smaller-shorter',
  'smaller-later',
  'shorter-later',
] as const;
export type SuggestedChange = (typeof SUGGESTED_CHANGES)[number];

/** A lease near the requested one that every filter allows now. */
export interface Suggestion {
  readonly change: SuggestedChange;
  readonly lease: Lease;
  /** For display: `End on 2026-12-03 at 09:00 instead of 2026-12-11 at 09:00.` */
  readonly text: string;
  readonly charges: readonly EstimatedCharge[];
}

export interface Estimate {
  /** The answers of all filters (`explain`); nothing is recorded. */
  readonly decision: Decision;
  readonly charges: readonly EstimatedCharge[];
  /** For a refused lease, nearest first. Empty = none was found, or the lease is allowed. */
  readonly suggestions: readonly Suggestion[];
  /** For a refused lease: what was searched, and why there is no more. For display. */
  readonly searched: string | null;
}
