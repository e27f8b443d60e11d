/** Searches for leases near a refused one that the filters in this process allow, with few checks. */

import { isDeepStrictEqual } from 'node:util';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { type Instant, leaseEnd, leaseStart } from '../../lease/dates.ts';
import { type Lease, reservationSize, reservationsAfterUpdate } from '../../lease/lease.ts';
import type { LeasePreview } from '../../ledger/transactions/preview.ts';
import { type FittingTimes, fittingTimes } from '../../ledger/transactions/previewed-charges.ts';
import { type Trial, TrialOverError } from './trial.ts';
import { datesText, type Line, later, type SuggestedChange, shorter, smaller, type Way } from './ways.ts';

/** The refused lease. */
export interface RefusedLease {
  readonly lease: Lease;
  /** The current lease; `undefined` = the lease is new. */
  readonly current: Lease | undefined;
  readonly now: Instant;
}

/** A lease to be suggested if every filter allows it. */
export interface Candidate {
  readonly change: SuggestedChange;
  readonly lease: Lease;
  readonly text: string;
  readonly loss: number;
  /** What it would take, if it was tried and there is a ledger. */
  readonly preview?: LeasePreview | undefined;
}

/** A candidate at a step of a way. */
interface Stepped extends Candidate {
  readonly step: number;
}

interface Found {
  /** Nearest first. */
  readonly candidates: readonly Candidate[];
  /** Whether it ended before everything was tried. */
  readonly isCutShort: boolean;
}

/** Maximum number of leases to try; fewer if they cost more. */
const MOST_TRIALS = 240;
const FEWEST_TRIALS = 40;
const RESERVATIONS_TRIED = 8000;

export const NO_TIMES: FittingTimes = { ends: [], starts: [] };

/** `refusers`: filters that refused the lease itself, called first. @throws TrialFailedError */
export async function search(
  trial: Trial,
  refused: RefusedLease,
  times: FittingTimes,
  refusers: ReadonlySet<string>,
): Promise<Found> {
  const { lease } = refused;
  const size = 1 + (lease.reservations?.length ?? 0);
  let left = Math.max(FEWEST_TRIALS, Math.min(MOST_TRIALS, Math.floor(RESERVATIONS_TRIED / size)));
  const yieldIfDue = timedYield();
  const ask = async (tried: Lease) => {
    if (left === 0) {
      throw new TrialOverError('too many leases were tried');
    }
    left -= 1;
    await yieldIfDue();
    return trial.askHere(tried, refusers);
  };
  const best = async (way: Way | undefined): Promise<Stepped | undefined> => {
    if (way === undefined) {
      return undefined;
    }
    const allowed = new Map<number, Stepped>();
    const isAllowed = async (step: number) => {
      const lease = way.leaseAt(step);
      const tried = await ask(lease);
      if (tried.allowed) {
        allowed.set(step, { ...candidateAt(way, step, lease), step, preview: tried.preview });
      }
      return tried.allowed;
    };
    const step = await nearest(way.line, isAllowed);
    const easier = step === undefined ? undefined : way.easier?.(step);
    const isEasier = easier !== undefined && easier <= way.line.far && (await isAllowed(easier));
    return step === undefined ? undefined : allowed.get(isEasier ? easier : step);
  };
  /**
   * The first way to its end, and half as far; from there the second until it is allowed; then the first
   * back, as near as possible. So each of two limits gets its own change.
   */
  const pair = async ([first, second]: readonly [OneWay, OneWay]): Promise<Candidate | undefined> => {
    const way = first(refused, lease, NO_TIMES);
    const found: (Candidate | undefined)[] = [];
    for (const step of way === undefined ? [] : new Set([way.line.far, Math.ceil(way.line.far / 2)])) {
      const begun = way?.leaseAt(step) ?? lease;
      const preview = await trial.preview(begun);
      const other = second(refused, begun, preview === undefined ? NO_TIMES : fittingTimes(preview));
      const reached = await best(other);
      const alone = reached && second(refused, lease, NO_TIMES);
      const back = alone && first(refused, alone.leaseAt(reached.step), NO_TIMES);
      const one = await best(back && { ...back, line: { ...back.line, guesses: [step] } });
      found.push(alone && reached && one && together(one, candidateAt(alone, reached.step)));
    }
    return sorted(found)[0];
  };
  const candidates: (Candidate | undefined)[] = [];
  const isFound = () => changing(refused, candidates).length > 0;
  let isCutShort = false;
  const { apart, together: all } = smaller(lease);
  try {
    candidates.push(await best(WAYS.shorter(refused, lease, times)));
    const alone: (Candidate | undefined)[] = [];
    for (const way of apart) {
      // If even the smallest is refused, none in between is tried.
      if ((await ask(way.leaseAt(way.line.far))).allowed) {
        alone.push(await best(way));
      }
    }
    candidates.push(sorted(alone)[0] ?? (await best(all)));
    candidates.push(await best(WAYS.later(refused, lease, times)));
    for (const both of isFound() ? [] : PAIRS) {
      candidates.push(await pair(both));
    }
  } catch (thrown) {
    if (!(thrown instanceof TrialOverError)) {
      throw thrown;
    }
    isCutShort = true;
  }
  return { candidates: changing(refused, candidates), isCutShort };
}

type OneWay = (refused: RefusedLease, lease: Lease, times: FittingTimes) => Way | undefined;

const WAYS = {
  shorter: ({ now }, lease, times) => shorter(lease, times, now),
  smaller: (_, lease) => {
    const { apart, together } = smaller(lease);
    return together ?? apart[0];
  },
  /** A lease that has started keeps its start. */
  later: ({ current, now }, lease, times) =>
    current !== undefined && (leaseStart(current) ?? now) <= now ? undefined : later(lease, times),
} as const satisfies Record<string, OneWay>;

const PAIRS = [
  [WAYS.smaller, WAYS.shorter],
  [WAYS.smaller, WAYS.later],
  [WAYS.shorter, WAYS.later],
] as const;

/** `first`: the lease with both changes. */
function together(first: Candidate, second: Candidate): Candidate {
  const change = `${first.change}-${second.change}`;
  const isOfDates = change === 'shorter-later';
  return {
    ...first,
    change: isOfDates || change === 'smaller-later' ? change : 'smaller-shorter',
    text: isOfDates ? datesText(first.lease) : `${first.text} ${second.text}`,
    loss: 1 - (1 - first.loss) * (1 - second.loss),
  };
}

/** For an update: drops candidates that leave the lease as it is, or do not grow it although the request does. */
function changing({ lease: wished, current }: RefusedLease, candidates: readonly (Candidate | undefined)[]) {
  const all = sorted(candidates);
  if (current === undefined) {
    return all;
  }
  const before = shapeOf(current, current);
  const sizes = new Map(before.sizes);
  const grows = ({ length, sizes: its }: ReturnType<typeof shapeOf>) =>
    length > before.length || its.some(([id, size]) => size > (sizes.get(id) ?? 0));
  const isGrowing = grows(shapeOf(wished, current));
  return all.filter(({ lease }) => {
    const shape = shapeOf(lease, current);
    return isGrowing ? grows(shape) : !isDeepStrictEqual(shape, before);
  });
}

function shapeOf(lease: Lease, current: Lease) {
  const start = leaseStart(lease) ?? leaseStart(current) ?? 0n;
  const end = leaseEnd(lease) ?? leaseEnd(current) ?? start;
  const sizes = reservationsAfterUpdate(current, lease).map(
    (one) => [one.id, reservationSize(one) ?? 0] as const,
  );
  return { start, length: end - start, sizes };
}

/** For a lease refused only by other services, whose answers are unknown here: half as long, and half as large. */
export function halves(refused: RefusedLease, times: FittingTimes): Candidate[] {
  const ways = [WAYS.shorter(refused, refused.lease, times), WAYS.smaller(refused, refused.lease)];
  return changing(
    refused,
    ways.map(
      (way) => way && candidateAt(way, Math.max(1, Math.min(way.line.far, Math.floor(way.line.far / 2)))),
    ),
  );
}

function candidateAt(
  { change, leaseAt, textAt, lossAt }: Way,
  step: number,
  lease = leaseAt(step),
): Candidate {
  return { change, lease, text: textAt(step), loss: lossAt(step) };
}

function sorted(candidates: readonly (Candidate | undefined)[]): Candidate[] {
  return candidates.flatMap((one) => one ?? []).sort((a, b) => a.loss - b.loss);
}

/**
 * The nearest allowed step, by bisection: between a refused and an allowed step, all steps are assumed to be
 * refused up to some step and allowed from there on. The result itself was allowed. `undefined` = all tried
 * steps are refused. Step 0, the requested lease, is refused.
 */
async function nearest(
  { far, guesses, landmarks }: Line,
  isAllowed: (step: number) => Promise<boolean>,
): Promise<number | undefined> {
  const refused = new Set([0]);
  const ask = async (step: number) => {
    if (refused.has(step)) {
      return false;
    }
    const allowed = await isAllowed(step);
    if (!allowed) {
      refused.add(step);
    }
    return allowed;
  };
  const onLine = (steps: readonly number[]) =>
    [...new Set(steps)].filter((step) => step >= 1 && step <= far).sort((a, b) => a - b);
  for (const step of [...onLine(guesses), ...onLine(landmarks)]) {
    if (!(await ask(step))) {
      continue;
    }
    let allowed = step;
    // Most guesses are exact.
    if (!(await ask(step - 1))) {
      return step;
    }
    allowed -= 1;
    let low = Math.max(...[...refused].filter((one) => one < allowed));
    while (allowed - low > 1) {
      const middle = Math.floor((low + allowed) / 2);
      if (await ask(middle)) {
        allowed = middle;
      } else {
        low = middle;
      }
    }
    return allowed;
  }
  return undefined;
}
