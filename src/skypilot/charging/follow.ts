/** One round: reads the running clusters from SkyPilot and adjusts their leases. */

import { type Wait, waitFor } from '../../base/deadline.ts';
import { errorText, LedgerUnavailableError } from '../../base/errors.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { formatClaims } from '../../ledger/accounting/recorded-claim.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { CLUSTER_REGION, clusterMark, SETTLED } from '../../ledger/reconciliation/cluster-mark.ts';
import {
  type ReconciliationResult,
  SKYPILOT_LEADER,
  whileLeader,
} from '../../ledger/reconciliation/leader-lease.ts';
import { rowsWithIds } from '../../ledger/reconciliation/reconcile.ts';
import type { Settlement } from '../../ledger/reconciliation/settle-cluster.ts';
import { rows } from '../../ledger/storage/database.ts';
import type { LeaseRow } from '../../ledger/storage/schema.ts';
import type { SkypilotApiServer } from '../api-server.ts';
import { clusterId, KNOWN_HARDWARE } from './cluster-request.ts';
import type { LaunchLimit } from './contract.ts';
import { BEHIND, countedAt, isCounted, readCountedAt, writtenAfter } from './counted-clusters.ts';
import {
  keyOf,
  type Observation,
  type ObservedCluster,
  observe,
  observeNamed,
  visibleWorkspaces,
} from './observe.ts';
import { settleObserved } from './settle-observed.ts';

interface FollowedSkypilot {
  readonly ledger: Ledger;
  readonly limits: readonly LaunchLimit[];
  readonly server: SkypilotApiServer;
  /** A unique id of the process. */
  readonly holder: string;
  /** Do nothing if a round ended less than this many seconds ago. */
  readonly every: number;
  readonly signal: AbortSignal | undefined;
  /** Called immediately after each change. */
  readonly report: (change: ClusterChange) => void;
}

/** A change of a lease, or the reason why it failed. */
export interface ClusterChange {
  readonly limit: string;
  readonly workspace: string;
  readonly cluster: string;
  /** Its last start; `undefined` = unknown to SkyPilot. */
  readonly startedAt: bigint | undefined;
  readonly settlement: Settlement | undefined;
  /** Why the lease is unchanged; `undefined` = it was changed. */
  readonly error: string | undefined;
}

const BATCH = 100;
/** How long after its end date a lease is still compared with SkyPilot, in microseconds. */
const ASKED_FOR = 30n * 86_400n * MICROSECONDS_PER_SECOND;
const NO_CLAIMS = formatClaims([]);

/** @throws Error if SkyPilot or the ledger does not respond: changes until then stay */
export async function followSkypilot(following: FollowedSkypilot): Promise<ReconciliationResult> {
  const { ledger, limits, holder, signal } = following;
  const marks = await ledger.read('read', () => readCountedAt(ledger), waitFor(signal));
  // A limit that was just enabled does not wait: its launches are refused until a round.
  const isDue = !limits.every((limit) => isCounted(limit, marks, ledger.now(), following.every * BEHIND));
  const terms = { id: SKYPILOT_LEADER, holder, every: isDue ? 0 : following.every, signal };
  return whileLeader<ReconciliationResult & { kind: 'done' }>(ledger, terms, async (leader, either) => {
    const startedAt = ledger.now();
    const result = await run({ ...following, signal: either }, waitFor(either));
    const isGood = result.doubts.length === 0;
    const matched = writtenAfter(countedAt(leader.matched), limits, startedAt, isGood);
    return { result, left: { isGood, matched, doubted: new Set() } };
  });
}

async function run(
  following: FollowedSkypilot,
  wait: Wait,
): Promise<ReconciliationResult & { kind: 'done' }> {
  const { ledger, limits, server, signal, report } = following;
  // Before SkyPilot is read: rows that a launch touches afterwards stay unchanged.
  const readAt = ledger.now();
  const open = await unsettledRows(ledger, wait);
  const seen = await observe(server, { signal });
  const { all, doubts, absent } = await complete(following, open, seen, readAt);
  const stopped = doubts.length > 0 ? [] : await stoppedRows(ledger, wait);
  const unseen = [...absent, ...stopped.filter((row) => !all.has(keyOfRow(row)))];
  const yieldIfDue = timedYield();
  for (const limit of limits) {
    const known = await rowsOf(ledger, limit, [...all.values()], open, wait);
    const work = new Map<ObservedCluster, LeaseRow | undefined>();
    for (const cluster of all.values()) {
      work.set(cluster, known.get(clusterId(limit, cluster.owner, cluster.name)));
    }
    for (const row of unseen.filter(({ lease_id }) => lease_id?.startsWith(`${limit.scheme}:`))) {
      work.set(nothingOf(row), row);
    }
    for (const [cluster, row] of work) {
      wait.throwIfOver();
      await yieldIfDue();
      const { owner, name, runs } = cluster;
      const place = { workspace: owner.workspace, cluster: name, startedAt: runs.at(-1)?.from };
      const change = { limit: limit.name, ...place };
      try {
        for (const settlement of await settleObserved(ledger, limit, cluster, row, wait)) {
          report({ ...change, settlement, error: undefined });
        }
      } catch (thrown) {
        if (thrown instanceof LedgerUnavailableError) {
          throw thrown;
        }
        report({ ...change, settlement: undefined, error: errorText(thrown) });
      }
    }
  }
  return { kind: 'done', listed: seen.clusters.size, doubts };
}

/** Looks for charged clusters that are not listed: they may have ended earlier, or be hidden from us. */
async function complete(
  { server, signal, limits }: FollowedSkypilot,
  open: readonly LeaseRow[],
  seen: Observation,
  now: bigint,
): Promise<{ all: ReadonlyMap<string, ObservedCluster>; doubts: string[]; absent: LeaseRow[] }> {
  const all = new Map(seen.clusters);
  const doubts: string[] = [];
  const doubtUnreadable = ({ unreadable }: Observation) => {
    if (unreadable > 0) {
      doubts.push(`${unreadable} clusters of SkyPilot's answer cannot be read`);
    }
  };
  doubtUnreadable(seen);
  const grace = (row: LeaseRow) =>
    BigInt(limits.find(({ scheme }) => row.lease_id?.startsWith(`${scheme}:`))?.grace ?? 0) *
    MICROSECONDS_PER_SECOND;
  const missing = open.filter((row) => !all.has(keyOfRow(row)) && row.touched_at + grace(row) <= now);
  const names = [...new Set(missing.map((row) => placeOf(row).cluster))];
  for (let start = 0; start < names.length; start += BATCH) {
    const found = await observeNamed(server, names.slice(start, start + BATCH), { signal });
    for (const [key, cluster] of found.clusters) {
      if (!all.has(key)) {
        all.set(key, cluster);
      }
    }
    doubtUnreadable(found);
  }
  const absent = missing.filter((row) => !all.has(keyOfRow(row)));
  const lost = absent.filter((row) => clusterMark(row).state === 'seen' && row.ends_at > now);
  if (lost.length > 0) {
    doubts.push(`SkyPilot has forgotten ${lost.length} clusters that it has shown before`);
  }
  const never = absent.filter((row) => clusterMark(row).state !== 'seen');
  if (never.length === 0 || doubts.length > 0) {
    return { all, doubts, absent: [] };
  }
  const listed = new Set([...seen.clusters.values()].map(({ owner }) => owner.workspace));
  const isListed = (row: LeaseRow) => listed.has(placeOf(row).workspace);
  if (never.every(isListed)) {
    return { all, doubts, absent: never };
  }
  const visible = await visibleWorkspaces(server, { signal });
  const isVisible = (row: LeaseRow) => isListed(row) || visible.has(placeOf(row).workspace);
  const hidden = never.filter((row) => !isVisible(row));
  if (hidden.length > 0) {
    doubts.push(`the account does not see the workspaces of ${hidden.length} launches`);
  }
  return { all, doubts, absent: never.filter(isVisible) };
}

/** Open leases, and those that ended by date while SkyPilot was not read. @throws LedgerUnavailableError */
async function unsettledRows(ledger: Ledger, wait: Wait): Promise<LeaseRow[]> {
  const query = ledger.database.queries
    .selectFrom('leases')
    .selectAll()
    .where('region', '=', CLUSTER_REGION)
    .where((row) =>
      row.or([
        row('state', '=', 'open'),
        row.and([
          row('shown', 'not like', `${SETTLED}%`),
          row('claims', '!=', NO_CLAIMS),
          row('ends_at', '>', ledger.now() - ASKED_FOR),
        ]),
      ]),
    )
    .orderBy('id');
  return ledger.read('read', () => rows(query.compile()), wait);
}

/** Settled leases of clusters that were stopped when SkyPilot last showed them. @throws LedgerUnavailableError */
async function stoppedRows(ledger: Ledger, wait: Wait): Promise<LeaseRow[]> {
  const query = ledger.database.queries
    .selectFrom('leases')
    .selectAll()
    .where('region', '=', CLUSTER_REGION)
    .where('state', '=', 'ended')
    .where('demand', 'like', `${KNOWN_HARDWARE}%`)
    .where((row) => row.or([row('shown', 'like', `${SETTLED}%`), row('claims', '=', NO_CLAIMS)]))
    .orderBy('id');
  return ledger.read('read', () => rows(query.compile()), wait);
}

/** The row of each cluster: the open one, or the latest. */
async function rowsOf(
  ledger: Ledger,
  limit: LaunchLimit,
  clusters: readonly ObservedCluster[],
  open: readonly LeaseRow[],
  wait: Wait,
): Promise<Map<string, LeaseRow>> {
  const found = new Map<string, LeaseRow>();
  const ids = clusters.map(({ owner, name }) => clusterId(limit, owner, name));
  const isOpen = new Set(open.map(({ lease_id }) => lease_id));
  const others = ids.filter((id) => !isOpen.has(id));
  for (const row of [...(await rowsWithIds(ledger, CLUSTER_REGION, others, wait)), ...open]) {
    found.set(row.lease_id ?? '', row);
  }
  return found;
}

/** From `skypilot:ml/train`. Names of clusters contain no slash. */
function placeOf({ lease_id: id }: LeaseRow): { readonly workspace: string; readonly cluster: string } {
  const place = (id ?? '').slice((id ?? '').indexOf(':') + 1);
  const slash = place.lastIndexOf('/');
  return { workspace: place.slice(0, Math.max(0, slash)), cluster: place.slice(slash + 1) };
}

function keyOfRow(row: LeaseRow): string {
  const { workspace, cluster } = placeOf(row);
  return keyOf(workspace, cluster);
}

/** A cluster that SkyPilot does not show. */
function nothingOf(row: LeaseRow): ObservedCluster {
  const { workspace, cluster: name } = placeOf(row);
  return {
    name,
    owner: { workspace, userId: row.user_id, userName: '' },
    runs: [],
    autostop: undefined,
    exists: false,
  };
}
