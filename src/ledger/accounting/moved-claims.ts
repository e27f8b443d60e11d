/** What a lease takes when its dates have changed and its reservations are unknown: as much as before, at other times. */

import { type Budget, budgetAccount, ceil, floor, larger, smaller } from '../../filter/budget.ts';
import type { Claim } from '../../filter/claim.ts';
import type { Claimant } from '../ledger-request.ts';
import type { Alternative } from './alternatives.ts';

/** Throws when a budget would pay for time outside its validity: only filters can tell which budget pays instead. */
export function movedClaims({
  start,
  end,
  claims: recorded,
}: Pick<Alternative, 'start' | 'end' | 'claims'>): Claimant {
  const before = { from: floor(start), until: ceil(end) };
  return {
    name: 'what is recorded',
    audit: false,
    claims(proposal, { budgets }) {
      const lease = { from: floor(proposal.start), until: ceil(proposal.end) };
      return recorded.flatMap((claim): Claim[] => {
        if (claim.kind === 'held') {
          return [{ ...claim, ...UNLIMITED }];
        }
        if (claim.kind === 'spent') {
          return [];
        }
        const from = claim.from === before.from ? lease.from : larger(claim.from, lease.from);
        const until = claim.until === before.until ? lease.until : smaller(claim.until, lease.until);
        if (from >= until) {
          return [];
        }
        const moved = { ...claim, from, until };
        if ((from < claim.from || until > claim.until) && !isPaid(moved, budgets)) {
          throw new Error(
            "can't be corrected: its budget is not valid then, and the list does not say what it reserves",
          );
        }
        return [{ ...moved, ...UNLIMITED }];
      });
    },
  };
}

const UNLIMITED = { limit: undefined, refuse: () => '' } as const;

function isPaid(
  { account, from, until }: { readonly account: string; readonly from: bigint; readonly until: bigint },
  budgets: readonly Budget[],
): boolean {
  const budget = budgets.find((one) => budgetAccount(one) === account);
  return budget !== undefined && budget.validFrom <= from && until <= budget.validUntil;
}
