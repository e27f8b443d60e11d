/** Leases and entries for display: lists of leases, one lease with its entries, and a complete export. */
import { type CompiledQuery, sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import { alternativesOf } from '../accounting/alternatives.ts';
import { parseClaims, type RecordedClaim } from '../accounting/recorded-claim.ts';
import type { Ledger } from '../ledger.ts';
import { regionsOf } from '../reconciliation/regions.ts';
import { rows } from '../storage/database.ts';
import type {
  BudgetChangesTable,
  BudgetsTable,
  EntriesTable,
  FoldedBalancesTable,
  FoldsTable,
  LeaseRow,
  LeaseState,
} from '../storage/schema.ts';

interface LeaseSelection {
  readonly projectId?: string | undefined;
  readonly userId?: string | undefined;
  readonly state?: LeaseState | undefined;
  readonly limit: number;
}

export interface ListedRow {
  readonly row: bigint;
  readonly leaseId: string | null;
  readonly region: string;
  readonly projectId: string;
  readonly userId: string;
  readonly name: string;
  /** Microseconds of the epoch, like all times here. */
  readonly start: bigint;
  readonly recordedAt: bigint;
}

export function listedRow(row: LeaseRow): ListedRow {
  const { id, lease_id: leaseId, region, project_id: projectId, user_id: userId, name } = row;
  return {
    row: id,
    leaseId,
    region,
    projectId,
    userId,
    name,
    start: row.starts_at,
    recordedAt: row.recorded_at,
  };
}

/** A lease. Leases past their end date count as ended, even if the ledger has not processed it yet. */
export interface LeaseReport extends ListedRow {
  readonly end: bigint;
  readonly state: LeaseState;
  readonly endedAt: bigint | null;
  /** The claims of the last request. */
  readonly claims: readonly RecordedClaim[];
  /** Alternative claims, until a later request shows the lease; the most expensive is charged. Empty = certain. */
  readonly unconfirmed: readonly (readonly RecordedClaim[])[];
}

export type EntryReport = WithId<EntriesTable>;

export interface LeaseDetails {
  readonly lease: LeaseReport;
  /** Oldest first. */
  readonly entries: readonly EntryReport[];
}

export type LedgerRecord =
  | { readonly kind: 'lease'; readonly lease: LeaseReport }
  | { readonly kind: 'entry'; readonly entry: EntryReport }
  | { readonly kind: 'budget'; readonly budget: WithId<BudgetsTable> }
  | { readonly kind: 'budget_change'; readonly change: WithId<BudgetChangesTable> }
  | { readonly kind: 'folded'; readonly fold: FoldsTable }
  | { readonly kind: 'folded_balance'; readonly sum: FoldedBalancesTable };

type WithId<Table> = Omit<Table, 'id'> & { readonly id: bigint };

/** Whether an account is charged for time, shown in hours. All others count what is held. */
export function isBudgetAccount(account: string): boolean {
  return account.startsWith('usage_budget/');
}

/** Newest first. @throws LedgerUnavailableError */
export function listLeases(ledger: Ledger, selection: LeaseSelection, wait: Wait): Promise<LeaseReport[]> {
  return ledger.read(
    'read',
    function* () {
      const now = ledger.now();
      const { projectId, userId, state, limit } = selection;
      // Indexes of leases by user, and of open leases, start with the region.
      const isByRegion = userId !== undefined || (state === 'open' && projectId === undefined);
      const found: LeaseRow[] = [];
      for (const region of isByRegion ? yield* regionsOf(ledger) : [undefined]) {
        let query = ledger.database.queries.selectFrom('leases').selectAll();
        if (region !== undefined) {
          query = query.where('region', '=', region);
        }
        if (userId !== undefined) {
          query = query.where('user_id', '=', userId);
        }
        if (projectId !== undefined) {
          query = query.where('project_id', '=', projectId);
        }
        if (state === 'open') {
          // A literal, not a parameter: otherwise SQLite would not use the partial index of open leases.
          query = query.where('state', '=', sql.lit<LeaseState>('open')).where('ends_at', '>', now);
        } else if (state === 'ended') {
          query = query.where((lease) =>
            lease.or([lease('state', '=', 'ended'), lease('ends_at', '<=', now)]),
          );
        }
        found.push(...(yield* rows(query.orderBy('id', 'desc').limit(limit).compile())));
      }
      return found
        .sort((a, b) => (a.id > b.id ? -1 : 1))
        .slice(0, limit)
        .map((row) => reportOf(row, now));
    },
    wait,
  );
}

/**
 * By id in Blazar, perhaps in several regions, or by row. Empty = not found. @throws LedgerUnavailableError
 */
export function leaseDetails(ledger: Ledger, key: string | bigint, wait: Wait): Promise<LeaseDetails[]> {
  return ledger.read(
    'read',
    function* () {
      const { queries } = ledger.database;
      const all = queries.selectFrom('leases').selectAll();
      const query = typeof key === 'bigint' ? all.where('id', '=', key) : all.where('lease_id', '=', key);
      const found = yield* rows(query.orderBy('id').compile());
      const result: LeaseDetails[] = [];
      for (const row of found) {
        const entries = queries.selectFrom('entries').selectAll().where('lease', '=', row.id).orderBy('id');
        result.push({ lease: reportOf(row, ledger.now()), entries: yield* rows(entries.compile()) });
      }
      return result;
    },
    wait,
  );
}

interface OfProjects<Row> {
  where(column: 'project_id', operator: '=', value: string): OfProjects<Row>;
  compile(): CompiledQuery<Row>;
}

/**
 * Exports all leases, entries, budgets, budget changes and totals of folded leases, as of one moment. Streams
 * the records; never holds all in memory.
 * @throws LedgerUnavailableError
 */
export async function exportLedger(
  ledger: Ledger,
  projectId: string | undefined,
  hand: (record: LedgerRecord) => Promise<void>,
  wait: Wait,
): Promise<void> {
  const { queries } = ledger.database;
  const now = ledger.now();
  await ledger.database.snapshot(async (snapshot) => {
    const handAll = async <Row>(rowsOfAll: OfProjects<Row>, recordOf: (row: Row) => LedgerRecord) => {
      const mine = projectId === undefined ? rowsOfAll : rowsOfAll.where('project_id', '=', projectId);
      for await (const row of snapshot.stream(mine.compile())) {
        await hand(recordOf(row));
      }
    };
    const leases = queries.selectFrom('leases').selectAll().orderBy('id');
    await handAll(leases, (row) => ({ kind: 'lease', lease: reportOf(row, now) }));
    const entries = queries.selectFrom('entries').selectAll().orderBy('id');
    await handAll(entries, (entry) => ({ kind: 'entry', entry }));
    const budgets = queries.selectFrom('budgets').selectAll().orderBy('id');
    await handAll(budgets, (budget) => ({ kind: 'budget', budget }));
    const changes = queries.selectFrom('budget_changes').selectAll().orderBy('id');
    await handAll(changes, (change) => ({ kind: 'budget_change', change }));
    const folds = queries.selectFrom('folds').selectAll().orderBy('project_id').orderBy('until');
    await handAll(folds.orderBy('region'), (fold) => ({ kind: 'folded', fold }));
    const balances = queries.selectFrom('folded_balances').selectAll().orderBy('project_id');
    await handAll(balances.orderBy('account'), (sum) => ({ kind: 'folded_balance', sum }));
  }, wait);
}

export function reportOf(row: LeaseRow, now: bigint): LeaseReport {
  const isOver = row.ends_at <= now;
  return {
    ...listedRow(row),
    end: row.ends_at,
    state: isOver ? 'ended' : row.state,
    endedAt: row.ended_at ?? (isOver ? row.ends_at : null),
    claims: parseClaims(row.claims),
    unconfirmed: alternativesOf(row)
      .slice(1)
      .map(({ claims }) => claims),
  };
}
