/** The clusters of SkyPilot that are charged now. */
import type { Wait } from '../../deadline.ts';
import { CLUSTER_REGION, clusterMark } from '../clusters/cluster-mark.ts';
import { rows } from '../database/database.ts';
import type { Ledger } from '../ledger.ts';
import { openLeasesOf } from '../rounds/open-leases.ts';

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
