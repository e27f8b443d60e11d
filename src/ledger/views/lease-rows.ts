/** Rows of leases with what they take from the budgets of their project. */
import { sql } from 'kysely';
import type { Amount } from '../../filter/amount.ts';
import { budgetAccount } from '../../filter/budget.ts';
import { rows, type Work } from '../database/database.ts';
import type { Ledger } from '../ledger.ts';
import { type ChargedRow, type Share, tellsItsCharge } from './charges.ts';
import { rowsTable } from './many.ts';

/** Budgets of a project and its users, of all times, that are known here; of more, those of the project and the latest of users. */
const MAX_BUDGETS = 5000;

/** Columns for `sharesOf`. */
export const CHARGED = [
  'id',
  'user_id',
  'starts_at',
  'ends_at',
  'ended_at',
  'state',
  'demand',
  'claims',
  'alternatives',
  'recorded_at',
  'touched_at',
  'resources',
] as const;

/** Account → the budget that it belongs to, with its validity in seconds of the epoch. */
export type BudgetAccounts = ReadonlyMap<
  string,
  { readonly isOfUser: boolean; readonly from: bigint; readonly until: bigint }
>;

/** The budgets of a project and its users, removed ones too: what was charged to them stays charged. */
export function* budgetAccounts(ledger: Ledger, projectId: string): Work<BudgetAccounts> {
  const query = ledger.database.queries
    .selectFrom('budgets')
    .select(['id', 'user_id', 'valid_from', 'valid_until'])
    .where('project_id', '=', projectId)
    .orderBy('user_id', (order) => order.asc().nullsFirst())
    .orderBy('valid_until', 'desc')
    .limit(MAX_BUDGETS);
  return new Map(
    (yield* rows(query.compile())).map((budget) => {
      const { user_id, valid_from: from, valid_until: until } = budget;
      return [budgetAccount(budget), { isOfUser: user_id !== null, from, until }];
    }),
  );
}

/** Lease → account → what it is charged, for those of which the row does not tell it. */
export function* chargesOf(
  { database: { queries, dialect } }: Ledger,
  leases: readonly (ChargedRow & { readonly id: bigint })[],
): Work<Map<bigint, Map<string, Amount>>> {
  const asked = leases.filter((row) => !tellsItsCharge(row)).map(({ id }) => id);
  const charges = new Map(asked.map((id) => [id, new Map<string, Amount>()]));
  if (asked.length > 0) {
    const sums = yield* rows(
      sql<{ lease: bigint; account: string; charged: bigint }>`
        select lease, account, cast(sum(delta) as bigint) as charged from entries
        where lease in (select value from ${rowsTable(dialect, asked)}) and account like 'usage!_budget/%' escape '!'
        group by lease, account`.compile(queries),
    );
    for (const { lease, account, charged } of sums) {
      charges.get(lease)?.set(account, charged);
    }
  }
  return charges;
}

/**
 * Of what a lease takes from budgets, that of the project's own budgets; if it takes nothing of them, that of its user's: both pay for the same usage, and
 * it counts once. Usage that no budget pays for is of none.
 */
export function projectShares(charges: readonly Share[], budgets: BudgetAccounts): Share[] {
  const shares = charges.filter(({ account }) => !account.startsWith('usage_budget/uncovered'));
  const ofProject = shares.filter(({ account }) => budgets.get(account)?.isOfUser === false);
  return ofProject.length > 0 ? ofProject : shares;
}
