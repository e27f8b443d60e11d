/** Adjusts the lease of a cluster to what SkyPilot shows of it. */

import type { Wait } from '../../base/deadline.ts';
import type { Rejection } from '../../filter/verdict.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Claimant } from '../../ledger/ledger-request.ts';
import { clusterMark } from '../../ledger/reconciliation/cluster-mark.ts';
import { settledUntil } from '../../ledger/reconciliation/hold-cluster.ts';
import {
  type ClusterState,
  type Settlement,
  settleCluster,
} from '../../ledger/reconciliation/settle-cluster.ts';
import { Undone, type Work } from '../../ledger/storage/database.ts';
import type { LeaseRow } from '../../ledger/storage/schema.ts';
import { findById } from '../../ledger/transactions/find-lease.ts';
import type { Transaction } from '../../ledger/transactions/transaction.ts';
import {
  claimantOf,
  demandOfHardware,
  identityOf,
  knownHardware,
  reservationsOf,
} from './cluster-request.ts';
import type { LaunchLimit, LaunchOwner, Payer } from './contract.ts';
import type { ObservedCluster, ObservedRun } from './observe.ts';

/** How far ahead a running cluster is charged, in seconds, unless its limit sets `ahead`. */
const AHEAD = 3600;

/** Adjusts the lease of a cluster, or the leases of all owners that one name had. */
export async function settleObserved(
  ledger: Ledger,
  limit: LaunchLimit,
  cluster: ObservedCluster,
  row: LeaseRow | undefined,
  wait: Wait,
): Promise<readonly Settlement[]> {
  if (row === undefined && cluster.runs.length === 0) {
    return [];
  }
  const terms = {
    author: { operation: 'reconcile', who: 'skypilot', requestId: null, reason: null } as const,
    ahead: BigInt(limit.ahead ?? Math.min(limit.hold, AHEAD)) * MICROSECONDS_PER_SECOND,
    grace: BigInt(limit.grace) * MICROSECONDS_PER_SECOND,
  };
  const clusters = ofEachOwner(cluster, row);
  const first = truthOf(limit, clusters[0], row, clusters.length > 1);
  function* all(transaction: Transaction): Work<readonly Settlement[] | Undone<readonly Settlement[]>> {
    const settlements: Settlement[] = [];
    let isChanged = false;
    let before = row;
    for (const [index, one] of clusters.entries()) {
      const truth = index === 0 ? first : truthOf(limit, one, before, index < clusters.length - 1);
      const settlement = yield* settleCluster(ledger, transaction, before, truth, terms);
      if (!(settlement instanceof Undone)) {
        isChanged = true;
        settlements.push(...(settlement === undefined ? [] : [settlement]));
        before = yield* findById(ledger.statements, truth.identity);
      }
    }
    return isChanged ? settlements : new Undone(settlements);
  }
  return ledger.transact('reconcile', all, wait, { project: first.identity.projectId });
}

/**
 * The clusters of different owners that had the name one after the other, as far as they are not settled yet.
 * Earlier ones count as part of the next if the row was opened for that.
 */
function ofEachOwner(
  cluster: ObservedCluster,
  row: LeaseRow | undefined,
): readonly [ObservedCluster, ...ObservedCluster[]] {
  const { state, since } = row === undefined ? { state: 'settled', since: 0n } : clusterMark(row);
  const settled = row === undefined ? 0n : state === 'settled' ? settledUntil(row) : since;
  const isEarlier = (next: ObservedRun) =>
    row?.state !== 'open' || (state === 'seen' && row.starts_at < next.from);
  const earlier: ObservedCluster[] = [];
  let runs: ObservedRun[] = [];
  for (const run of cluster.runs) {
    const before = runs.at(-1);
    if (before?.until !== undefined && isOther(before.owner, run.owner) && isEarlier(run)) {
      if (before.until > settled) {
        earlier.push({ ...cluster, owner: before.owner, runs, autostop: undefined, exists: false });
      }
      runs = [];
    }
    runs.push(run);
  }
  const [first, ...others] = [...earlier, { ...cluster, runs }];
  return [first ?? cluster, ...others];
}

/** An empty id = unknown. */
function isOther({ userId: one }: LaunchOwner, { userId: other }: LaunchOwner): boolean {
  return one !== '' && other !== '' && one !== other;
}

/** `isFollowed`: another owner's cluster has the name since. @throws Error if it cannot be recorded */
function truthOf(
  limit: LaunchLimit,
  { owner, name, runs, autostop, exists }: ObservedCluster,
  row: LeaseRow | undefined,
  isFollowed: boolean,
): ClusterState {
  const payer = payerOf(limit, owner, row);
  if ('allowed' in payer) {
    throw new Error(payer.message);
  }
  const identity = identityOf(limit, owner, name, payer);
  if ('allowed' in identity) {
    throw new Error(identity.message);
  }
  const latest = runs.at(-1)?.hardware;
  const known = latest ?? (row && knownHardware(row));
  return {
    identity,
    name,
    reservations: latest === undefined ? [] : reservationsOf(latest),
    demand: known === undefined ? (row?.demand ?? '') : demandOfHardware(known, exists),
    formerDemand: known === undefined ? '' : demandOfHardware(known, false),
    runs: runs.map(({ from, until, hardware }) => ({
      from,
      until,
      claimant: hardware === undefined ? unknownHardware(limit) : claimantOf(limit, owner, [hardware]),
    })),
    hasAutostop: autostop === undefined ? undefined : autostop >= 0,
    isFollowed,
  };
}

/** A cluster that is new under the name of a settled one may be another user's. */
function payerOf(limit: LaunchLimit, owner: LaunchOwner, row: LeaseRow | undefined): Payer | Rejection {
  const payer = limit.payerOf(owner);
  if (row === undefined) {
    return payer;
  }
  const { project_id: projectId, user_id: userId } = row;
  const isSettled = row.state === 'ended' && clusterMark(row).state === 'settled';
  return isSettled && !('allowed' in payer) && payer.projectId === projectId ? payer : { projectId, userId };
}

function unknownHardware({ name }: LaunchLimit): Claimant {
  const claims = () => {
    throw new Error('SkyPilot does not say what the cluster has');
  };
  return { name, audit: false, claims };
}
