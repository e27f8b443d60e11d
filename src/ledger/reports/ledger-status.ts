/** For the overview: whether the ledger grants leases, how it stands with Blazar, and the clusters of SkyPilot that are charged now. */
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { CLUSTER_REGION, clusterMark } from '../reconciliation/cluster-mark.ts';
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

/** The newest first. A cluster has a lease for each policy that charges it, and is shown once. `most`: leases that are read. @throws LedgerUnavailableError */
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
  /** Why nothing is granted; `undefined` = leases are granted. */
  readonly suspended: string | undefined;
  /** When the last complete comparison with Blazar ended, in microseconds of the epoch; `undefined` = there was none. */
  readonly followedAt: bigint | undefined;
  /** The process that compares; `undefined` = none does now. */
  readonly holder: string | undefined;
  /** Now, by the ledger's clock, in microseconds of the epoch. */
  readonly now: bigint;
}

/** Reads two rows. @throws LedgerUnavailableError */
export function ledgerStatus(ledger: Ledger, wait: Wait): Promise<LedgerStatus> {
  const { queries } = ledger.database;
  const mark = queries.selectFrom('ledger').select('suspended').compile();
  const leader = queries
    .selectFrom('follower')
    .select(['holder', 'followed_at'])
    .where('id', '=', 1n)
    .compile();
  // Not `ledger.read`: a look is no use of the ledger, and must not count itself.
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
