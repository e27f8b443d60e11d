/** Which leases of a project may be folded: those that are settled, read in pieces. */
import { sql } from 'kysely';
import { CLUSTER_REGION } from '../clusters/cluster-mark.ts';
import { rows, type Work } from '../database/database.ts';
import type { LeaseRow } from '../database/schema.ts';
import type { Ledger } from '../ledger.ts';
import { leaseDigests } from '../outbox/identity.ts';
import { rowsTable, textsTable } from '../views/many.ts';
import type { FoldedLease } from './folded-lease.ts';

/** Leases that are read, kept and folded at once: the other transactions of a project wait for so many. */
const PIECE = 100;

export interface Foldable {
  readonly leases: readonly FoldedLease[];
  /** The last lease that was looked at; `undefined` = there are no more. */
  readonly last: LeaseRow | undefined;
}

/**
 * Leases that ended before a time, and were to. Clusters of SkyPilot are not: what they used is told by their latest row. A lease is not, as long as
 * there is a message about it in the outbox. Nor is the newest lease, nor that of the newest entry: SQLite would give their numbers away again.
 */
export function* foldable(
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
    .where(sql<boolean>`lease in (select value from ${textsTable(dialect, [...digests.values()].flat())})`)
    .where('state', 'in', ['waiting', 'dead']);
  const pending = new Set((yield* rows(waiting.compile())).map(({ lease }) => lease));
  const settled = over.filter(
    ({ id }) => id < (highest?.lease ?? 0n) && !(digests.get(id) ?? []).some((digest) => pending.has(digest)),
  );
  const entries = queries
    .selectFrom('entries')
    .selectAll()
    .where(
      sql<boolean>`lease in (select value from ${rowsTable(
        dialect,
        settled.map(({ id }) => id),
      )})`,
    )
    .orderBy('id');
  const byLease = new Map<bigint, Awaited<ReturnType<typeof entries.execute>>>();
  for (const entry of yield* rows(entries.compile())) {
    const others = byLease.get(entry.lease);
    if (others === undefined) {
      byLease.set(entry.lease, [entry]);
    } else {
      others.push(entry);
    }
  }
  const leases = settled
    .map((lease) => ({ lease, entries: byLease.get(lease.id) ?? [] }))
    .filter((one) => (one.entries.at(-1)?.id ?? 0n) < (highest?.entry ?? 0n));
  return { leases, last };
}
