/** Restores folded leases exactly. */
import { type RawBuilder, sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { type Database, rows, Undone, type Work } from '../storage/database.ts';
import { isAmong, recordsTable } from '../storage/query-parts.ts';
import { LEASE_COLUMNS } from '../storage/schema.ts';
import type { Transaction } from '../transactions/transaction.ts';
import type { FoldedLease } from './folded-lease.ts';
import { addTotals } from './totals.ts';

interface Restored {
  readonly restored: number;
  /** Leases that were never folded, or are already restored. */
  readonly there: number;
  /** Leases not restored, because another lease now has their id. */
  readonly left: readonly FoldedLease[];
  /**
   * The ledger never folded them: it was restored to an older state, or the file was changed. Nothing of this
   * batch was restored.
   */
  readonly isUnknown: boolean;
}

/** Leases of one project with the same fold date; about a hundred per call. @throws LedgerUnavailableError */
export function restoreLeases(
  ledger: Ledger,
  of: { readonly projectId: string; readonly until: bigint },
  leases: readonly FoldedLease[],
  wait: Wait,
): Promise<Restored> {
  return ledger.transact(
    'reconcile',
    (transaction) => restored(ledger.database, transaction, of, leases),
    wait,
    { project: of.projectId },
  );
}

function* restored(
  database: Database,
  transaction: Transaction,
  of: { readonly projectId: string; readonly until: bigint },
  leases: readonly FoldedLease[],
): Work<Restored | Undone<Restored>> {
  const { queries, dialect } = database;
  yield* transaction.lock(of.projectId);
  const ids = leases.map(({ lease }) => lease.id);
  const present = yield* rows(
    queries
      .selectFrom('leases')
      .select(['id', 'project_id', 'recorded_at'])
      .where(isAmong(dialect, 'id', ids))
      .compile(),
  );
  const names = leases.flatMap(({ lease }) => lease.lease_id ?? []);
  const named = yield* rows(
    queries
      .selectFrom('leases')
      .select(['lease_id', 'region'])
      .where('project_id', '=', of.projectId)
      .where(isAmong(dialect, 'lease_id', names))
      .compile(),
  );
  const rowOf = new Map(present.map((row) => [row.id, row]));
  const taken = new Set(named.map(({ lease_id, region }) => JSON.stringify([lease_id, region])));
  const isThere = ({ lease }: FoldedLease) => {
    const row = rowOf.get(lease.id);
    return row?.project_id === lease.project_id && row.recorded_at === lease.recorded_at;
  };
  const absent = leases.filter((one) => !isThere(one));
  const isTaken = ({ lease: { id, lease_id, region } }: FoldedLease) =>
    rowOf.has(id) || (lease_id !== null && taken.has(JSON.stringify([lease_id, region])));
  const left = absent.filter(isTaken);
  const wanted = absent.filter((one) => !isTaken(one));
  const result = { restored: wanted.length, there: leases.length - absent.length, left, isUnknown: false };
  if (wanted.length === 0) {
    return new Undone(result);
  }
  if (!(yield* addTotals(database, { ...of, sign: -1n }, wanted))) {
    return new Undone({ ...result, restored: 0, isUnknown: true });
  }
  yield* rows(
    inserted(
      database,
      'leases',
      LEASE_COLUMNS,
      wanted.map(({ lease }) => lease),
    ).compile(queries),
  );
  yield* rows(
    inserted(
      database,
      'entries',
      ENTRY_COLUMNS,
      wanted.flatMap(({ entries }) => entries),
    ).compile(queries),
  );
  return result;
}

const ENTRY_COLUMNS = {
  id: 'bigint',
  at: 'bigint',
  project_id: 'text',
  account: 'text',
  delta: 'bigint',
  lease: 'bigint',
  operation: 'text',
  who: 'text',
  request_id: 'text',
  reason: 'text',
} as const satisfies Record<keyof FoldedLease['entries'][number], 'text' | 'bigint'>;

/** Keeps the original ids. */
function inserted<Column extends string>(
  { dialect }: Pick<Database, 'dialect'>,
  table: 'leases' | 'entries',
  columns: Readonly<Record<Column, 'text' | 'bigint'>>,
  values: readonly Readonly<Record<Column, string | bigint | null>>[],
): RawBuilder<unknown> {
  const listed = Object.entries(columns) as [Column, 'text' | 'bigint'][];
  const names = sql.join(listed.map(([name]) => sql.ref(name)));
  const source = recordsTable(
    dialect,
    listed,
    values.map((value) => listed.map(([name]) => value[name])),
  );
  const overriding = dialect === 'postgresql' ? sql`overriding system value` : sql``;
  return sql`insert into ${sql.table(table)} (${names}) ${overriding} select ${names} from ${source} as kept`;
}
