import { z } from 'zod';
import {
  allow,
  BaseFilter,
  type Context,
  formatInstant,
  type Instant,
  type Lease,
  leaseEnd,
  leaseStart,
  MICROSECONDS_PER_SECOND,
  reject,
  toInstant,
  type Verdict,
} from '../src/index.ts';

/** `+86400`: this many seconds from now. */
const FROM_NOW = /^\+(\d{1,12})$/;
/** Four weeks in seconds, 2419200, would be a day of the year 2419. */
const FORGOTTEN_PLUS = /^\d{7}$/;
const MICROSECONDS_PER_MINUTE = 60n * MICROSECONDS_PER_SECOND;

const date = z
  .string()
  .refine((text) => boundOf(text) !== undefined, 'it is neither')
  .optional();

const EXPECTED = 'a date of ISO 8601, or +seconds from now such as +86400';

const options = z
  .object({
    lease_dates_earliest_start: date.meta({
      expected: EXPECTED,
      description:
        'No lease may start before this date. +seconds counts from the beginning of the current minute, because Blazar cuts "now" to the minute.',
    }),
    lease_dates_latest_end: date.meta({
      expected: EXPECTED,
      description: 'No lease may end after this date. +seconds counts from now.',
    }),
  })
  .superRefine(({ lease_dates_earliest_start: start, lease_dates_latest_end: end }, check) => {
    const [earliest, latest] = [start, end].map((text) => (text === undefined ? undefined : boundOf(text)));
    if (
      earliest !== undefined &&
      latest !== undefined &&
      earliest.isFromNow === latest.isFromNow &&
      latest.instant < earliest.instant
    ) {
      check.addIssue({
        code: 'custom',
        path: ['lease_dates_latest_end'],
        message: 'expected a date that is not before lease_dates_earliest_start',
      });
    }
  });

/** A date, or a time from now. */
interface Bound {
  readonly text: string;
  readonly instant: Instant;
  readonly isFromNow: boolean;
}

/**
 * Rejects leases that start too early or end too late. Updates may keep a date out of range, but not move it
 * further out.
 */
export class LeaseDatesFilter extends BaseFilter<z.infer<typeof options>> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: z.infer<typeof options>): string | undefined =>
    Object.values(values).every((bound) => bound === undefined)
      ? 'limits nothing: leases may start and end at any time; set lease_dates_earliest_start or lease_dates_latest_end'
      : undefined;

  readonly #earliestStart = boundOf(this.options.lease_dates_earliest_start);
  readonly #latestEnd = boundOf(this.options.lease_dates_latest_end);

  checkCreate(_context: Context, lease: Lease): Verdict {
    return this.#check(leaseStart(lease), leaseEnd(lease));
  }

  checkUpdate(_context: Context, currentLease: Lease, newLease: Lease): Verdict {
    const start = leaseStart(newLease);
    const end = leaseEnd(newLease);
    const currentStart = leaseStart(currentLease);
    const currentEnd = leaseEnd(currentLease);
    // A running lease started in the past, and may be older than this rule.
    const isEarlier = start !== undefined && (currentStart === undefined || start < currentStart);
    const isLater = end !== undefined && (currentEnd === undefined || end > currentEnd);
    return this.#check(isEarlier ? start : undefined, isLater ? end : undefined);
  }

  onEnd(): void {}

  /** `undefined` = not checked. */
  #check(start: Instant | undefined, end: Instant | undefined): Verdict {
    const now = toInstant(this.services.clock.now()) ?? 0n;
    const earliest = this.#earliestStart;
    const minute = now - (now % MICROSECONDS_PER_MINUTE);
    if (start !== undefined && earliest !== undefined && start < at(earliest, minute)) {
      return reject(
        `The lease starts at ${formatInstant(start)}; no lease may start before ${shown(earliest, minute)}.`,
      );
    }
    const latest = this.#latestEnd;
    if (end !== undefined && latest !== undefined && end > at(latest, now)) {
      return reject(`The lease ends at ${formatInstant(end)}; no lease may end after ${shown(latest, now)}.`);
    }
    return allow();
  }
}

function boundOf(text: string | undefined): Bound | undefined {
  if (text === undefined) {
    return undefined;
  }
  const seconds = FROM_NOW.exec(text.trim())?.[1];
  if (FORGOTTEN_PLUS.test(text)) {
    return undefined;
  }
  const instant = seconds === undefined ? toInstant(text) : BigInt(seconds) * MICROSECONDS_PER_SECOND;
  return instant === undefined ? undefined : { text: text.trim(), instant, isFromNow: seconds !== undefined };
}

function at({ instant, isFromNow }: Bound, now: Instant): Instant {
  return isFromNow ? now + instant : instant;
}

function shown(bound: Bound, now: Instant): string {
  const date = formatInstant(at(bound, now));
  return bound.isFromNow ? `${date} (${bound.text} seconds from now)` : date;
}
