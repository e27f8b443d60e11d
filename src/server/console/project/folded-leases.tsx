/** What the page does not have, because it is folded into totals, or because it is too much. */
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import { Message } from '../message.tsx';
import { shownDate } from '../time-scale.ts';

/** Beside a list of leases. */
export function FoldedLeases({ leases, until }: FoldedTotals) {
  return (
    <Message kind="notice">
      {leases.toLocaleString('en')} older {leases === 1n ? 'lease is' : 'leases are'} folded into totals and
      not listed: {leases === 1n ? 'it' : 'all'} had ended before {shownDate(until)}. Budgets count{' '}
      {leases === 1n ? 'it' : 'them'}.
    </Message>
  );
}

interface PartOnlyProps {
  /** Seconds of the epoch: from then on everything is counted. `undefined` = nothing is. */
  readonly from: bigint | undefined;
  readonly folded: FoldedTotals | undefined;
}

/** Beside figures that begin later than the time that is shown. */
export function PartOnly({ from, folded }: PartOnlyProps) {
  const begin = from === undefined ? undefined : from * MICROSECONDS_PER_SECOND;
  if (folded !== undefined && (begin === undefined || begin < folded.until + MICROSECONDS_PER_SECOND)) {
    return (
      <Message kind="notice">
        Leases that had ended before {shownDate(folded.until)} are folded into totals. When they used what is
        not known: this begins then.
      </Message>
    );
  }
  return (
    <Message kind="notice">
      There are too many leases in this time to add all of them up
      {begin === undefined ? '.' : `: this begins on ${shownDate(begin)}.`}
    </Message>
  );
}
