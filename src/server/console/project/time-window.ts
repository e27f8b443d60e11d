/** The time window of a page: read from the URL, and moved. */
import { larger, smaller } from '../../../filter/claim.ts';
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND, toInstant } from '../../../lease/dates.ts';
import { toSecond } from '../parts/time-scale.ts';

/** Microseconds of the epoch. */
export interface TimeWindow {
  readonly from: Instant;
  readonly until: Instant;
}

const HOUR = 3600n * MICROSECONDS_PER_SECOND;
const DAY = 24n * HOUR;
const BEFORE = 30n * DAY;
const AFTER = 60n * DAY;
const SHORTEST = 6n * HOUR;
/** Limits how much of the ledger a page reads. */
const LONGEST = 400n * DAY;
/** Keeps years at four digits. */
const EARLIEST: Instant = 0n;
const LATEST: Instant = 253_000_000_000n * MICROSECONDS_PER_SECOND;

/** `mistake`: for users; the window is then the default, from a month before now to two months after. */
export function timeWindow(
  query: URLSearchParams,
  now: Instant,
): TimeWindow & { readonly mistake?: string | undefined } {
  const usual = bounded({ from: now - BEFORE, until: now + AFTER });
  const from = query.get('from') ?? '';
  const until = query.get('until') ?? '';
  if (from === '' && until === '') {
    return usual;
  }
  const start = from === '' ? usual.from : toInstant(from);
  const end = until === '' ? usual.until : toInstant(until);
  if (start === undefined || end === undefined) {
    return { ...usual, mistake: 'Expected dates such as 2026-12-01 as from and until.' };
  }
  if (end <= start) {
    return { ...usual, mistake: 'Expected "until" to be after "from".' };
  }
  return bounded({ from: start, until: end });
}

export const MOVES = ['earlier', 'later', 'wider', 'narrower'] as const;
export type Move = (typeof MOVES)[number];

/** The window after a move: by half of its length, or twice or half as long around its middle. */
export function moved({ from, until }: TimeWindow, move: Move): TimeWindow {
  const length = until - from;
  switch (move) {
    case 'earlier':
      return bounded({ from: from - length / 2n, until: until - length / 2n });
    case 'later':
      return bounded({ from: from + length / 2n, until: until + length / 2n });
    case 'wider':
      return bounded({ from: from - length / 2n, until: until + length / 2n });
    case 'narrower':
      return bounded({ from: from + length / 4n, until: until - length / 4n });
  }
}

/** As URL parameters, to the second. */
export function windowParameters({ from, until }: TimeWindow): Record<'from' | 'until', string> {
  return { from: formatInstant(toSecond(from)), until: formatInstant(toSecond(until)) };
}

/** Keeps the middle, as far as the limits of time and length allow. */
function bounded({ from, until }: TimeWindow): TimeWindow {
  const length = smaller(LONGEST, larger(SHORTEST, until - from));
  const start = smaller(LATEST - length, larger(EARLIEST, (from + until - length) / 2n));
  return { from: start, until: start + length };
}
