/** Looks for leases near a refused one that the filters which answer in this process allow, with few questions. */

import { timedYield } from '../../base/yield-to-event-loop.ts';
import type { Lease } from '../../lease/lease.ts';
import type { LeasePreview } from '../../ledger/transactions/preview.ts';
import type { FittingTimes } from '../../ledger/transactions/previewed-charges.ts';
import { type Trial, TrialOverError } from './trial.ts';
import { type Line, later, shorter, smaller, type Way } from './ways.ts';

/** A lease that may be suggested once every filter has allowed it. */
export interface Candidate {
  readonly change: Way['change'];
  readonly lease: Lease;
  readonly text: string;
  readonly loss: number;
  /** What it would take, if it was tried already and there is a ledger. */
  readonly preview?: LeasePreview | undefined;
}

export interface Found {
  /** The nearest first. */
  readonly candidates: readonly Candidate[];
  /** Whether it ended before everything was looked at. */
  readonly isCutShort: boolean;
}

/** How many leases are tried, at most: fewer of those that cost more to look at. */
const MOST_TRIALS = 240;
const FEWEST_TRIALS = 40;
const RESERVATIONS_TRIED = 8000;

/** `refusers`: the filters that have refused the lease itself: they are asked first. @throws TrialFailedError */
export async function search(
  trial: Trial,
  lease: Lease,
  times: FittingTimes,
  refusers: ReadonlySet<string>,
): Promise<Found> {
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
  const best = async (way: Way | undefined): Promise<Candidate | undefined> => {
    if (way === undefined) {
      return undefined;
    }
    const allowed = new Map<number, Candidate>();
    const isAllowed = async (step: number) => {
      const lease = way.leaseAt(step);
      const tried = await ask(lease);
      if (tried.allowed) {
        allowed.set(step, { ...candidateAt(way, step, lease), preview: tried.preview });
      }
      return tried.allowed;
    };
    const step = await nearest(way.line, isAllowed);
    const easier = step === undefined ? undefined : way.easier?.(step);
    const isEasier = easier !== undefined && easier <= way.line.far && (await isAllowed(easier));
    return step === undefined ? undefined : allowed.get(isEasier ? easier : step);
  };
  const candidates: (Candidate | undefined)[] = [];
  const { apart, together } = smaller(lease);
  try {
    candidates.push(await best(shorter(lease, times)));
    const alone: (Candidate | undefined)[] = [];
    for (const way of apart) {
      // Where even the smallest is refused, none in between is looked at.
      if ((await ask(way.leaseAt(way.line.far))).allowed) {
        alone.push(await best(way));
      }
    }
    candidates.push(sorted(alone)[0] ?? (await best(together)));
    candidates.push(await best(later(lease, times)));
  } catch (thrown) {
    if (thrown instanceof TrialOverError) {
      return { candidates: sorted(candidates), isCutShort: true };
    }
    throw thrown;
  }
  return { candidates: sorted(candidates), isCutShort: false };
}

/** For a lease that is refused elsewhere only: half as long, and half as large. Nobody here can tell what would be allowed. */
export function halves(lease: Lease, times: FittingTimes): Candidate[] {
  const { apart, together } = smaller(lease);
  const ways = [shorter(lease, times), together ?? apart[0]];
  return sorted(
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
 * The nearest step that is allowed, as far as the answers tell: between a step that is refused and one that is allowed, all steps are
 * taken to be refused up to some step and allowed from there on. The result itself was allowed. `undefined` = all that were asked about
 * are refused. The lease that was asked for, step 0, is refused.
 */
export async function nearest(
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
