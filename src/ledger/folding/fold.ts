/**
 * Folds settled leases into totals: writes them to a file, then deletes their rows. Restores them exactly.
 * Balances and budgets do not change.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import { addTo } from '../add-to.ts';
import type { Ledger } from '../ledger.ts';
import { leaseDigests } from '../outbox/messages.ts';
import { CLUSTER_REGION } from '../reconciliation/cluster-mark.ts';
import type { Dialect } from '../storage/connection.ts';
import { type Database, rows, Undone, type Work } from '../storage/database.ts';
import { isAmong, recordsTable } from '../storage/query-parts.ts';
import type { LeaseRow } from '../storage/schema.ts';
import type { Transaction } from '../transactions/transaction.ts';
import type { FoldedLease } from './folded-lease.ts';
import { addTotals } from './totals.ts';

interface FoldOptions {
  /** Only leases whose planned and actual ends are before this time: microseconds of the epoch. */
  readonly until: bigint;
  /** Stores leases durably; they are folded when it resolves. `undefined` = leases are only counted. */
  readonly keep: ((leases: readonly FoldedLease[]) => Promise<void>) | undefined;
}

interface Fold {
  readonly leases: number;
  readonly entries: number;
  readonly projects: number;
}

/** Projects read at once. */
const PROJECTS = 1000;

/**
 * Folds in batches, each in its own transaction: after a failure, completed batches stay, and the next call
 * folds the rest. `seen` gets the number of folded leases; folding waits for its promise.
 * @throws LedgerUnavailableError, and the errors of `keep`
 */
export async function foldLeases(
  ledger: Ledger,
  { until, keep }: FoldOptions,
  wait: Wait,
  seen: (leases: number) => Promise<void> | undefined = () => undefined,
): Promise<Fold> {
  const sum = { leases: 0, entries: 0, projects: 0 };
  for await (const projectId of projectsOf(ledger, wait)) {
    const before = sum.leases;
    let last: LeaseRow | undefined;
    do {
      const after = last;
      const found: Foldable = await ledger.read(
        'read',
        () => foldable(ledger, { projectId, until, after }),
        wait,
      );
      last = found.last;
      let done = found.leases;
      if (found.leases.length > 0 && keep !== undefined) {
        await keep(found.leases);
        done = await ledger.transact(
          'reconcile',
          (transaction) => folded(ledger, transaction, { projectId, until }, found.leases),
          wait,
          { project: projectId },
        );
      }
      sum.leases += done.length;
      sum.entries += done.reduce((count, { entries }) => count + entries.length, 0);
      await seen(sum.leases);
    } while (last !== undefined);
    sum.projects += sum.leases > before ? 1 : 0;
  }
  return sum;
}

async function* projectsOf({ database }: Ledger, wait: Wait): AsyncGenerator<string> {
  let last: string | undefined;
  do {
    let query = database.queries.selectFrom('projects').select('project_id');
    if (last !== undefined) {
      query = query.where('project_id', '>', last);
    }
    const page = query.orderBy('project_id').limit(PROJECTS).compile();
    const found = await database.read(() => rows(page), wait);
    yield* found.map(({ project_id }) => project_id);
    last = found.length < PROJECTS ? undefined : found.at(-1)?.project_id;
  } while (last !== undefined);
}

/** Only leases that are unchanged since they were written to the file; changed ones stay. */
function* folded(
  { database }: Ledger,
  transaction: Transaction,
  of: { readonly projectId: string; readonly until: bigint },
  kept: readonly FoldedLease[],
): Work<readonly FoldedLease[] | Undone<readonly FoldedLease[]>> {
  const { queries, dialect } = database;
  yield* transaction.lock(of.projectId);
  const among = (column: string, leases: readonly FoldedLease[]) => {
    const ids = leases.map(({ lease }) => lease.id);
    return isAmong(dialect, column, ids);
  };
  const present = yield* rows(
    queries
      .selectFrom('leases')
      .select(['id', 'revision', 'state', 'shown'])
      .where(among('id', kept))
      .compile(),
  );
  const counted = yield* rows(
    queries
      .selectFrom('entries')
      .select(({ fn }) => ['lease', fn.max<bigint>('id').as('last'), fn.countAll<bigint>().as('count')])
      .where(among('lease', kept))
      .groupBy('lease')
      .compile(),
  );
  const rowOf = new Map(present.map((row) => [row.id, row]));
  const entriesOf = new Map(counted.map((one) => [one.lease, one]));
  const same = kept.filter(({ lease, entries }) => {
    const row = rowOf.get(lease.id);
    const posted = entriesOf.get(lease.id);
    return (
      row?.revision === lease.revision &&
      row.state === 'ended' &&
      row.shown === lease.shown &&
      (posted?.count ?? 0n) === BigInt(entries.length) &&
      posted?.last === entries.at(-1)?.id
    );
  });
  if (same.length === 0) {
    return new Undone([]);
  }
  yield* addTotals(database, { ...of, sign: 1n }, same);
  yield* rows(queries.deleteFrom('entries').where(among('lease', same)).compile());
  yield* rows(queries.deleteFrom('leases').where(among('id', same)).compile());
  return same;
}

/** Leases read, stored and folded at once: other transactions of the project wait for one batch. */
const PIECE = 100;

interface Foldable {
  readonly leases: readonly FoldedLease[];
  /** The last lease that was read; `undefined` = no more leases. */
  readonly last: LeaseRow | undefined;
}

/**
 * Leases whose planned and actual ends are before a time. SkyPilot clusters are not folded: their latest row
 * shows what they used. Leases with a message in the outbox are not folded, nor are the newest lease and the
 * lease of the newest entry: SQLite would reuse their ids.
 */
function* foldable(
  { database: { queries, dialect } }: Ledger,
  { projectId, until, after }: { projectId: string; until: bigint; after: LeaseRow | undefined },
): Work<Foldable> {
  let query = queries
    .selectFrom('leases')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('state', '=', 'ended')
    .where('ends_at', '<', until);
  if (after !== undefined) {
    query = query.where(
      sql<boolean>`(ends_at, starts_at, id) > (${after.ends_at}, ${after.starts_at}, ${after.id})`,
    );
  }
  const looked = yield* rows(
    query.orderBy('ends_at').orderBy('starts_at').orderBy('id').limit(PIECE).compile(),
  );
  const last = looked.length < PIECE ? undefined : looked.at(-1);
  const over = looked.filter(
    ({ region, ended_at, ends_at }) => region !== CLUSTER_REGION && (ended_at ?? ends_at) < until,
  );
  if (over.length === 0) {
    return { leases: [], last };
  }
  const newest = sql<{ lease: bigint; entry: bigint }>`
    select (select max(id) from leases) as lease, (select coalesce(max(id), 0) from entries) as entry`;
  const [highest] = yield* rows(newest.compile(queries));
  const digests = new Map(over.map((row) => [row.id, leaseDigests(row)]));
  const waiting = queries
    .selectFrom('outbox')
    .select('lease')
    .where(isAmong(dialect, 'lease', [...digests.values()].flat()))
    .where('state', 'in', ['waiting', 'dead']);
  const pending = new Set((yield* rows(waiting.compile())).map(({ lease }) => lease));
  const settled = over.filter(
    ({ id }) => id < (highest?.lease ?? 0n) && !(digests.get(id) ?? []).some((digest) => pending.has(digest)),
  );
  const settledIds = settled.map(({ id }) => id);
  const entries = queries
    .selectFrom('entries')
    .selectAll()
    .where(isAmong(dialect, 'lease', settledIds))
    .orderBy('id');
  const byLease = new Map<bigint, Awaited<ReturnType<typeof entries.execute>>>();
  for (const entry of yield* rows(entries.compile())) {
    addTo(byLease, entry.lease, entry);
  }
  const leases = settled
    .map((lease) => ({ lease, entries: byLease.get(lease.id) ?? [] }))
    .filter((one) => (one.entries.at(-1)?.id ?? 0n) < (highest?.entry ?? 0n));
  return { leases, last };
}

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
  const added = {
    leases: wanted.map(({ lease }) => ({ ...lease })),
    entries: wanted.flatMap(({ entries }) => entries.map((entry) => ({ ...entry }))),
  };
  for (const [table, values] of Object.entries(added)) {
    if (values.length > 0) {
      yield* rows(inserted(dialect, table, values).compile(queries));
    }
  }
  return result;
}

/** Keeps the original ids. */
function inserted(
  dialect: Dialect,
  table: string,
  values: readonly Readonly<Record<string, string | bigint | null>>[],
): RawBuilder<unknown> {
  const columns = Object.keys(values[0] ?? {}).map((name) => {
    // PostgreSQL assigns a null of any type to a text.
    const isText = values.some((value) => typeof value[name] === 'string');
    return [name, isText ? 'text' : 'bigint'] as const;
  });
  const names = sql.join(columns.map(([name]) => sql.ref(name)));
  const cells = values.map((value) => columns.map(([name]) => value[name] ?? null));
  const overriding = dialect === 'postgresql' ? sql`overriding system value` : sql``;
  return sql`insert into ${sql.table(table)} (${names}) ${overriding}
    select ${names} from ${recordsTable(dialect, columns, cells)} as kept`;
}
