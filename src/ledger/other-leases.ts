/** What the other leases of a project take, for limits that are not sums of claims. */
import type { Amount } from '../filter/amount.ts';
import { type Budget, budgetAccount } from '../filter/budget.ts';
import type { OtherLeases } from '../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../lease/dates.ts';
import { added, alternativesOf, chargedBy, heldBy, refundOf } from './alternatives.ts';
import { rows, type Work } from './database/database.ts';
import type { LeaseRow } from './database/schema.ts';
import { balancesOf } from './posting.ts';
import type { Statements } from './statements.ts';

interface Read {
  readonly project: string;
  readonly isUpdate: boolean;
  /** The lease itself; `undefined` = it is new. */
  readonly row: LeaseRow | undefined;
  readonly overdueRows: readonly Parameters<typeof alternativesOf>[0][];
  readonly budgets: readonly Budget[];
  readonly now: bigint;
}

/** Reads with the lock of the project when a commit asks: nothing changes before the lease is recorded. */
export function* otherLeases(
  statements: Statements,
  { project: project_id, isUpdate, row, overdueRows, budgets, now }: Read,
): Work<OtherLeases> {
  const [counted] = yield* rows(statements.openLeases({ project_id, now }));
  const isCounted = row?.state === 'open' && row.ends_at > now;
  const count = BigInt(counted?.count ?? 0) - (isCounted ? 1n : 0n);
  const own = row?.state === 'open' ? alternativesOf(row) : [];
  const givenBack = added([
    isUpdate ? refundOf(own, now / MICROSECONDS_PER_SECOND) : chargedBy(own),
    ...overdueRows.map((one) => heldBy(alternativesOf(one))),
  ]);
  const balances = yield* balancesOf(statements, project_id, new Set(budgets.map(budgetAccount)));
  const takenOf = (budget: Budget): Amount => {
    const account = budgetAccount(budget);
    return (balances.get(account) ?? 0n) - (givenBack.get(account) ?? 0n);
  };
  return { count, takenOf };
}
