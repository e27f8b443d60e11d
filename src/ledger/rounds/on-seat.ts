/** One round at a time: whoever holds the seat does it, and the others learn when it was done. */
import { waitFor } from '../../deadline.ts';
import type { Ledger } from '../ledger.ts';
import { keepSeat, type Left, leaveSeat, type Seat, type Taken, takeSeat } from './follower-seat.ts';

/** The seat is kept for 30 s. */
const RENEW_MS = 10_000;

/** A round that another process does, or has done. */
export type RoundElsewhere = Exclude<Taken, { readonly kind: 'mine' }>;

export interface SeatTerms {
  /** `BLAZAR_SEAT` or `SKYPILOT_SEAT`. */
  readonly id: bigint;
  /** A process, unlike any other. */
  readonly holder: string;
  /** Do nothing if a round has ended less than so many seconds ago. */
  readonly every: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Does `work` while this process holds the seat, which is free afterwards whatever fails. The signal of `work` also fires when another process
 * has taken the seat. @throws LedgerUnavailableError, and what `work` throws
 */
export async function onSeat<Result>(
  ledger: Ledger,
  { id, holder, every, signal }: SeatTerms,
  work: (
    seat: Seat,
    signal: AbortSignal,
  ) => Promise<{ readonly result: Result; readonly left: Left | undefined }>,
): Promise<Result | RoundElsewhere> {
  const taken = await takeSeat(ledger, holder, every, waitFor(signal), id);
  if (taken.kind !== 'mine') {
    return taken;
  }
  const lost = new AbortController();
  const renewing = setInterval(() => {
    keepSeat(ledger, holder, waitFor(undefined)).then(
      (isMine) => isMine || lost.abort(new Error('another process compares the ledger now')),
      () => {},
    );
  }, RENEW_MS);
  let left: Left | undefined;
  try {
    const either = AbortSignal.any(signal === undefined ? [lost.signal] : [lost.signal, signal]);
    const done = await work(taken.seat, either);
    left = done.left;
    return done.result;
  } finally {
    clearInterval(renewing);
    // Also after a failure: the seat would be kept for half a minute.
    await leaveSeat(ledger, holder, left, waitFor(undefined)).catch(() => {});
  }
}
