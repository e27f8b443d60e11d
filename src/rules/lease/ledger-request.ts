/** Requests as the ledger passes them to limits, for rules. */
import { unitHours } from '../../filter/amount.ts';
import type { Proposal, Standing } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { LeaseRequestParts } from './request-view.ts';

/** What a transaction of the ledger knows of a request. `undefined` = the lease exists already: nothing is asked for. */
export function requestIn(
  { context, names, request, start }: Proposal,
  { now, budgets, others }: Standing,
): LeaseRequestParts | undefined {
  if (request === undefined) {
    return undefined;
  }
  if (others === undefined) {
    throw new Error('the ledger does not say what other leases take');
  }
  const second = start / MICROSECONDS_PER_SECOND;
  const valid = budgets.filter(
    ({ userId, validFrom, validUntil }) => userId === null && validFrom <= second && second < validUntil,
  );
  const taken = valid.reduce((sum, budget) => sum + others.takenOf(budget), 0n);
  const amount = valid.reduce((sum, budget) => sum + budget.amount, 0n);
  const { lease, currentLease } = request;
  return {
    ...{ operation: currentLease === undefined ? 'create' : 'update', context, lease, currentLease, names },
    now: new Date(Number(now / 1000n)),
    ledger: {
      leases: others.count,
      taken: unitHours(taken),
      left: valid.length === 0 ? undefined : unitHours(amount - taken),
    },
  };
}
