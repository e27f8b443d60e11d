/**
 * For the overview: whether leases are granted, the last comparison with Blazar, and the SkyPilot clusters
 * that are charged now.
 */
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { CLUSTER_REGION, clusterMark } from '../reconciliation/cluster-mark.ts';
import { isBlazarLeader } from '../reconciliation/leader-lease.ts';
import { rows } from '../storage/database.ts';
import { openLeasesOf } from '../storage/query-parts.ts';

export interface ClusterView {
  /** `ml/train` */
  readonly place: string;
  readonly projectId: string;
  readonly userId: string;
  /** Microseconds of the epoch. */
  readonly start: bigint;
  /** Whether SkyPilot has shown it. */
  readonly isSeen: boolean;
}

/**
 * Newest first. A cluster has one lease per policy that charges it, and is listed once. `most`: number of
 * leases to read. @throws LedgerUnavailableError
 */
export async function openClusters(ledger: Ledger, most: number, wait: Wait): Promise<ClusterView[]> {
  const query = openLeasesOf(ledger.database.queries, CLUSTER_REGION, ledger.now())
    .select(['lease_id', 'project_id', 'user_id', 'starts_at', 'shown'])
    .orderBy('id', 'desc')
    .limit(most)
    .compile();
  const found = new Map<string, ClusterView>();
  for (const row of await ledger.read('read', () => rows(query), wait)) {
    const place = (row.lease_id ?? '').slice((row.lease_id ?? '').indexOf(':') + 1);
    const isSeen = clusterMark(row).state === 'seen' || found.get(place)?.isSeen === true;
    const { project_id: projectId, user_id: userId, starts_at: start } = row;
    found.set(place, { place, projectId, userId, start, isSeen });
  }
  return [...found.values()];
}

export interface LedgerStatus {
  /** Why no leases are granted; `undefined` = leases are granted. */
  readonly suspended: string | undefined;
  /** End of the last complete comparison with a Blazar, in microseconds of the epoch; `undefined` = never. */
  readonly followedAt: bigint | undefined;
  /** The process that is comparing; `undefined` = none. */
  readonly holder: string | undefined;
  /** The current time by the ledger's clock, in microseconds of the epoch. */
  readonly now: bigint;
}

/** Reads two rows. @throws LedgerUnavailableError */
export function ledgerStatus(ledger: Ledger, wait: Wait): Promise<LedgerStatus> {
  const { queries } = ledger.database;
  const mark = queries.selectFrom('ledger').select('suspended').compile();
  const leader = queries
    .selectFrom('follower')
    .select(['holder', 'followed_at'])
    .where((row) => isBlazarLeader(row.ref('id')))
    .where('followed_at', 'is not', null)
    .orderBy('followed_at', 'desc')
    .limit(1)
    .compile();
  // Not `ledger.read`: reading the status must not count as use of the ledger.
  return ledger.database.read(function* () {
    const [marked] = yield* rows(mark);
    const [follower] = yield* rows(leader);
    return {
      suspended: marked?.suspended ?? undefined,
      followedAt: follower?.followed_at ?? undefined,
      holder: follower?.holder ?? undefined,
      now: ledger.now(),
    };
  }, wait);
}
