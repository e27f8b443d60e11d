/**
 * What a manager may give to a user: a budget within those of the project. Each of its seconds lies in one of the project's budgets, and it is at
 * most the sum of those that it overlaps with: the project can pay no more in that time. Budgets of several users may add up to more; every
 * lease is charged to the project too. Nothing is changed when the project's budget shrinks later: the smaller one limits.
 */
import type { Amount } from '../../filter/amount.ts';
import type { Budget } from '../../filter/budget.ts';

type Terms = Pick<Budget, 'validFrom' | 'validUntil' | 'amount'>;

/** Why a budget is not within the project's. Times in seconds of the epoch. */
export type BeyondProject =
  | { readonly kind: 'uncovered'; readonly from: bigint; readonly until: bigint }
  | { readonly kind: 'too-much'; readonly most: Amount };

/** `undefined` = it is within them. `ofProject`: the project's budgets in force; they never overlap. */
export function beyondProject(wanted: Terms, ofProject: readonly Terms[]): BeyondProject | undefined {
  const overlapping = [...ofProject]
    .filter(({ validFrom, validUntil }) => validFrom < wanted.validUntil && wanted.validFrom < validUntil)
    .sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1));
  let covered = wanted.validFrom;
  for (const { validFrom, validUntil } of overlapping) {
    if (validFrom > covered) {
      return { kind: 'uncovered', from: covered, until: validFrom };
    }
    covered = validUntil;
  }
  if (covered < wanted.validUntil) {
    return { kind: 'uncovered', from: covered, until: wanted.validUntil };
  }
  const most = overlapping.reduce((sum, { amount }) => sum + amount, 0n);
  return wanted.amount > most ? { kind: 'too-much', most } : undefined;
}
