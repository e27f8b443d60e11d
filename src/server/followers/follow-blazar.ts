/** One round: reads Blazar, corrects the ledger. Shared by the service and `ledger reconcile --blazar`. */
import { type Wait, waitFor } from '../../base/deadline.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Claimant } from '../../ledger/ledger-request.ts';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import { CLUSTER_REGION } from '../../ledger/reconciliation/cluster-mark.ts';
import {
  blazarLeader,
  forgetEndpoints,
  type LeaderLease,
  matchedAt,
  otherEndpoints,
  type ReconciledElsewhere,
  whileLeader,
} from '../../ledger/reconciliation/leader-lease.ts';
import type { OverdueLease, ShownLease } from '../../ledger/reconciliation/leases.ts';
import { OFTEN } from '../../ledger/reconciliation/plan.ts';
import { type RowAges, readOpenRows, reconcileObservation } from '../../ledger/reconciliation/reconcile.ts';
import { isGuessed, withdrawRegion } from '../../ledger/reconciliation/regions.ts';
import { rows } from '../../ledger/storage/database.ts';
import type { Keystone } from '../../openstack/contract.ts';
import { observe } from './blazar-observation.ts';

export interface Following {
  readonly ledger: Ledger;
  readonly keystone: Keystone;
  /** `[blazar] endpoint`; `undefined` = from the catalog. */
  readonly endpoint: string | undefined;
  /** `[keystone] region_name`; `undefined` = the only region of the ledger. */
  readonly region: string | undefined;
  readonly claimants: readonly Claimant[];
  readonly exemptProjects: readonly string[];
  /** `[blazar] reconcile_grace`, in seconds. */
  readonly grace: number;
  readonly isDryRun: boolean;
  /** A unique id of the process. */
  readonly holder: string;
  /** Skip if a round has ended less than this many seconds ago. */
  readonly every: number;
  /** Ages in earlier rounds of this process; `undefined` = it runs only one: by the ledger's clock. */
  readonly known?: RowAges | undefined;
  readonly who: string;
  readonly reason: string | null;
  readonly signal: AbortSignal | undefined;
  /** Called with each change as soon as it is made, and with each lease that is left unchanged. */
  readonly report: (one: Reconciled) => void;
}

export type Followed =
  | {
      readonly kind: 'done';
      readonly listed: number;
      readonly overdue: readonly OverdueLease[];
      /** Blazar is creating these for longer than `grace`. */
      readonly stuck: readonly ShownLease[];
      /** Why not everything was released; empty = the round was complete. */
      readonly doubts: readonly string[];
      readonly endpoint: string;
    }
  | ReconciledElsewhere;

/** Number of latest leases from which the regions of the ledger are read. */
const LATEST = 1000;

/** @throws BlazarError, LedgerUnavailableError, and what `Keystone` throws */
export async function follow(following: Following): Promise<Followed> {
  const { ledger, keystone, holder, every, signal, isDryRun } = following;
  const endpoint = following.endpoint ?? (await keystone.endpoint('reservation', { signal }));
  const terms = { id: blazarLeader(endpoint), holder, every, signal };
  return whileLeader<Followed & { kind: 'done' }>(ledger, terms, async (leader, either) => {
    const { followed, left } = await run({ ...following, endpoint, signal: either }, leader, waitFor(either));
    return { result: followed, left: isDryRun ? undefined : left };
  });
}

async function run(following: Following & { readonly endpoint: string }, leader: LeaderLease, wait: Wait) {
  const { ledger, keystone, grace, isDryRun, signal, report, known } = following;
  const { region, doubts: unsure } = await regionOf(following, wait);
  const before = region === undefined ? undefined : await readOpenRows(ledger, region, wait, known);
  const {
    endpoint,
    leases,
    listed,
    overdue,
    doubts: seen,
  } = await observe({
    keystone,
    endpoint: following.endpoint,
    signal,
    now: () => ledger.now(),
    openAt: before?.readAt,
  });
  const doubts = [...unsure, ...seen];
  const long = ledger.now() - BigInt(grace) * MICROSECONDS_PER_SECOND;
  const stuck = leases.filter(({ isCreating, createdAt = long }) => isCreating && createdAt < long);
  const followed = (of: readonly string[]) =>
    ({ kind: 'done', listed, overdue, stuck, doubts: of, endpoint }) as const;
  if (region === undefined || before === undefined) {
    const left = { isGood: doubts.length === 0, matched: leader.matched, doubted: leader.doubted };
    return { followed: followed(doubts), left };
  }
  const matched = matchedAt(endpoint, region);
  const others = await otherEndpoints(ledger, endpoint, region, wait);
  const { claimants, who, reason, exemptProjects } = following;
  const round = reconcileObservation(
    ledger,
    before,
    leases,
    {
      region,
      claimants,
      who,
      reason,
      exemptProjects,
      grace: BigInt(grace),
      isDryRun,
      doubts,
      isKnownEndpoint: leader.matched === matched,
      otherEndpoints: others,
      doubted: leader.doubted,
      overdue,
      // A lease may have come and gone between rounds. The clock of the database may have been set back.
      looksOften: leader.age >= 0 && leader.age <= Math.max(grace, Number(OFTEN)),
    },
    wait,
  );
  let next = await round.next();
  while (!next.done) {
    report(next.value);
    wait.throwIfOver();
    next = await round.next();
  }
  const end = next.value;
  if (end.hasMatched && end.hasAll && others.length > 0 && !isDryRun) {
    await forgetEndpoints(ledger, others, region, wait);
  }
  const left = {
    isGood: end.doubts.length === 0,
    matched: end.hasMatched ? matched : leader.matched,
    doubted: end.doubted,
  };
  return { followed: followed(end.doubts), left };
}

/** The region of Blazar's list. In the ledger it is Blazar's `os_region_name`. */
async function regionOf(
  { ledger, region, isDryRun }: Following,
  wait: Wait,
): Promise<{ region: string | undefined; doubts: string[] }> {
  const { queries } = ledger.database;
  const latest = queries
    .selectFrom('leases')
    .select('region')
    .where('region', '!=', CLUSTER_REGION)
    .orderBy('id', 'desc')
    .limit(LATEST)
    .as('latest');
  const query = queries.selectFrom(latest).select('region').distinct().orderBy('region').compile();
  const known = (await ledger.read('read', () => rows(query), wait)).map((row) => row.region);
  const names = known.map((name) => JSON.stringify(name)).join(', ');
  const [first, second] = known;
  if (known.length === 1 && first === '') {
    // `os_region_name` is not set in Blazar.
    return { region: '', doubts: [] };
  }
  if (first === '' && second !== undefined && second === region && known.length === 2) {
    if (isDryRun) {
      const doubt = `the ledger has leases of the region ${names}: the next reconciliation that is not a dry run finds out which is right`;
      return { region: undefined, doubts: [doubt] };
    }
    if (await isGuessed(ledger, region, wait)) {
      await withdrawRegion(ledger, region, wait);
      return { region: '', doubts: [] };
    }
    const doubt = `the ledger has leases without a region beside those of the region ${JSON.stringify(region)}: either Blazar has an os_region_name or not`;
    return { region, doubts: [doubt] };
  }
  if (region === undefined ? second !== undefined : known.length > 0 && !known.includes(region)) {
    const set = `is ${JSON.stringify(region)}, which is not Blazar's os_region_name`;
    const what = region === undefined ? 'is not set' : set;
    const doubt = `the ledger has leases of the region ${names}, and [keystone] region_name ${what}`;
    return { region: undefined, doubts: [doubt] };
  }
  // If both are missing, the ledger is empty: its first lease will set the region.
  return { region: region ?? first, doubts: [] };
}
