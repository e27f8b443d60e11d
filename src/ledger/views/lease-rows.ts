/** Rows of leases with what they take from the budgets of their project. */
import { sql } from 'kysely';
import type { Amount } from '../../filter/amount.ts';
import { budgetAccount } from '../../filter/budget.ts';
import { rows, type Work } from '../database.ts';
import type { Ledger } from '../ledger.ts';
import { type ChargedRow, type Share, sharesOf, tellsItsCharge } from './charges.ts';
import { rowsTable } from './many.ts';

/** Own budgets of a project, of all times, that are told from those of its users. Nobody sets so many: they never overlap. */
const MAX_BUDGETS = 2000;

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

/** The accounts of the project's own budgets, removed ones too: what was charged to them stays charged. */
export function* ownAccounts(ledger: Ledger, projectId: string): Work<Set<string>> {
  const query = ledger.database.queries
    .selectFrom('budgets')
    .select('id')
    .where('project_id', '=', projectId)
    .where('user_id', 'is', null)
    .orderBy('valid_until', 'desc')
    .limit(MAX_BUDGETS);
  return new Set((yield* rows(query.compile())).map(budgetAccount));
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
 * What a lease takes from the project's own budgets; if it takes nothing of them, from those of its user: both pay for the same usage, and
 * it counts once. Usage that no budget pays for is of none.
 */
export function projectShares(
  row: ChargedRow & { readonly id: bigint },
  charges: ReadonlyMap<bigint, ReadonlyMap<string, Amount>>,
  own: ReadonlySet<string>,
): Share[] {
  const shares = sharesOf(row, charges.get(row.id)).filter(
    ({ account }) => !account.startsWith('usage_budget/uncovered'),
  );
  const ofProject = shares.filter(({ account }) => own.has(account));
  return ofProject.length > 0 ? ofProject : shares;
}
