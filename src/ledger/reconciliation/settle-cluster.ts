/**
 * Updates the lease of a cluster from SkyPilot: charged for exactly the time that it ran, and in advance
 * while it runs.
 */

import { type Amount, type Claim, larger, MAX_AMOUNT, type Proposal } from '../../filter/claim.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Reservation } from '../../lease/lease.ts';
import { added, alternativesOf, changesOf, chargedBy, heldBy, usedBy } from '../accounting/alternatives.ts';
import { TOO_MUCH } from '../accounting/charge-calculation.ts';
import { recordedResources } from '../accounting/demand.ts';
import { charge, formatClaims } from '../accounting/recorded-claim.ts';
import { budgetOf } from '../budgets/rows.ts';
import { accountName, type LeaseIdentity } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import type { Claimant } from '../ledger-request.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { findById } from '../transactions/find-lease.ts';
import { type Author, balancesOf, post } from '../transactions/journal.ts';
import { revisionStep } from '../transactions/statements.ts';
import type { Transaction } from '../transactions/transaction.ts';
import { throwing, untouched } from './change-lease.ts';
import { clusterMark, LOOKED_BACK, writtenMark } from './cluster-mark.ts';
import { settledUntil } from './hold-cluster.ts';

interface Run {
  readonly from: Instant;
  /** `undefined` = still running. */
  readonly until: Instant | undefined;
  /** Claims for the hardware of this run. */
  readonly claimant: Claimant;
}

/** The state of a cluster according to SkyPilot. */
export interface ClusterState {
  /** With a lease id. An open lease keeps its owner, and every lease its project. */
  readonly identity: LeaseIdentity;
  readonly name: string;
  readonly reservations: readonly Reservation[];
  /** Differs when its latest hardware differs, or it exists no longer. */
  readonly demand: string;
  /** The same as earlier versions wrote it. */
  readonly formerDemand: string;
  /** In order. Empty = unknown to SkyPilot. */
  readonly runs: readonly Run[];
  /** `undefined` = SkyPilot does not report it. */
  readonly hasAutostop: boolean | undefined;
  /** Another cluster has its name since: a launch that is awaited is that one. */
  readonly isFollowed: boolean;
}

interface SettlingTerms {
  readonly author: Author;
  /** How far in advance a running cluster is charged, in microseconds. */
  readonly ahead: bigint;
  /** Maximum time from a launch until SkyPilot shows the cluster, in microseconds. */
  readonly grace: bigint;
}

export interface Settlement {
  /**
   * `recorded`: the cluster was never requested. `released`: it never ran. `continued`: it is charged further
   * in advance. `corrected`: its times or hardware differ from its charge.
   */
  readonly outcome: 'recorded' | 'continued' | 'corrected' | 'ended' | 'released';
  readonly row: bigint;
  readonly projectId: string;
  readonly userId: string;
  /** The message of the limit that is now exceeded; `undefined` = none. */
  readonly exceeded: string | undefined;
  /** Whether it had autostop before, and no longer has it. */
  readonly hasLostAutostop: boolean;
}

/** `before`: the row before SkyPilot was queried. `undefined` = unchanged, or requested since. */
export function* settleCluster(
  ledger: Ledger,
  transaction: Transaction,
  before: LeaseRow | undefined,
  truth: ClusterState,
  terms: SettlingTerms,
): Work<Settlement | undefined | Undone<undefined>> {
  const { statements } = ledger;
  const { identity } = truth;
  const { projectId: project_id } = identity;
  const { now, latest } = yield* transaction.lock(project_id);
  const row = before && (yield* untouched(ledger, before));
  if (before === undefined ? (yield* findById(statements, identity)) !== undefined : row === undefined) {
    return new Undone(undefined);
  }
  const past = pastOf(row, truth, now);
  const runs = truth.runs
    .filter(({ until }) => until === undefined || until > past.since)
    .map((run) => ({ ...run, from: larger(run.from, past.since) }));
  const last = runs.at(-1);
  const isRunning = last !== undefined && last.until === undefined;
  const isAwaited =
    row !== undefined && !isRunning && !truth.isFollowed && row.touched_at + terms.grace > now;
  if (last === undefined && row?.state !== 'open' && past.charged.size === 0) {
    if (row === undefined || row.demand === truth.demand) {
      return new Undone(undefined);
    }
    yield* rows(statements.setLease({ ...row, demand: truth.demand, step: revisionStep() }));
    return undefined;
  }
  if (isAwaited && (last?.until === undefined || row.touched_at > last.until)) {
    return new Undone(undefined);
  }
  const kept = row?.state === 'open' ? row.ends_at : now;
  const isShort = kept < now + terms.ahead / 2n;
  const end = last === undefined ? past.since : (last.until ?? (isShort ? now + terms.ahead : kept));

  const owner = { project_id, user_id: identity.userId };
  const budgets = (yield* rows(statements.budgets([owner]))).map(budgetOf);
  const claims = runs.flatMap(({ from, until, claimant }) => {
    const proposal = proposalOf(identity, truth, from, until ?? end);
    const all = throwing(claimant).claims(proposal, { now, budgets }) as readonly Claim[];
    return all
      .filter(({ kind }) => kind === 'usage' || until === undefined)
      .map((claim) => ({ ...claim, account: accountName(claim.account) }));
  });
  const charged = added([past.kept, chargedBy([{ claims }])]);
  const deltas = changesOf(charged, past.charged);
  const mark = clusterMark(row ?? { shown: null });
  const state = isRunning ? 'seen' : last === undefined && mark.state === 'awaited' ? 'awaited' : 'settled';
  const hasAutostop = isRunning && (truth.hasAutostop ?? mark.hasAutostop);
  const facts = {
    lease_id: identity.leaseId,
    user_id: identity.userId,
    name: truth.name,
    starts_at: runs[0]?.from ?? row?.starts_at ?? now,
    ends_at: end,
    state: isRunning ? ('open' as const) : ('ended' as const),
    ended_at: isRunning ? null : end,
    demand: truth.demand,
    claims: formatClaims(claims),
    alternatives: null,
    shown: writtenMark({ state, since: past.since, hasAutostop }),
    resources: recordedResources(truth.reservations, row?.resources ?? null),
  };
  if (row !== undefined && deltas.size === 0 && isSame(row, facts)) {
    return new Undone(undefined);
  }
  const balances = yield* balancesOf(statements, project_id, new Set(deltas.keys()));
  for (const [account, delta] of deltas) {
    if (delta > 0n && (balances.get(account) ?? 0n) + delta > MAX_AMOUNT) {
      throw new RangeError(TOO_MUCH);
    }
  }
  let id = row?.id;
  if (id === undefined) {
    const fresh = { recorded_at: now, touched_at: now, repetition_key: null, repetition_content: null };
    const { region } = identity;
    const [made] = yield* rows(
      statements.addLease({ ...facts, ...fresh, region, project_id, revision: revisionStep() }),
    );
    id = made?.id ?? 0n;
  } else if (row !== undefined) {
    yield* rows(statements.setLease({ ...row, ...facts, step: revisionStep() }));
  }
  yield* post(statements, { project_id, at: latest, balances, author: terms.author, budgets }, [
    { lease: id, operation: terms.author.operation, deltas },
  ]);
  return {
    outcome: outcomeOf(row, isRunning, last !== undefined, facts),
    row: id,
    projectId: project_id,
    userId: identity.userId,
    exceeded: exceededBy(claims, balances, deltas),
    hasLostAutostop: isRunning && row?.state === 'open' && mark.hasAutostop && !hasAutostop,
  };
}

interface Past {
  /** Use before this time is charged permanently. */
  readonly since: Instant;
  /** The charge of the row since then, which is replaced. */
  readonly charged: ReadonlyMap<string, Amount>;
  /** The part of `charged` that becomes permanent now. */
  readonly kept: ReadonlyMap<string, Amount>;
}

function pastOf(row: LeaseRow | undefined, { demand, formerDemand, runs }: ClusterState, now: Instant): Past {
  const nothing = new Map<string, Amount>();
  if (row === undefined) {
    return { since: now - LOOKED_BACK, charged: nothing, kept: nothing };
  }
  const alternatives = alternativesOf(row);
  const { state, since } = clusterMark(row);
  if (row.state === 'open') {
    const charged = chargedBy(alternatives);
    // The time of the resize is unknown: until now the old hardware is charged.
    const isResized =
      state === 'seen' &&
      row.demand !== demand &&
      row.demand !== formerDemand &&
      row.alternatives === null &&
      runs.at(-1)?.from === row.starts_at &&
      runs.at(-1)?.until === undefined;
    return isResized
      ? { since: now, charged, kept: usedBy(alternatives, now / MICROSECONDS_PER_SECOND) }
      : { since, charged, kept: nothing };
  }
  if (state === 'settled') {
    return { since: settledUntil(row), charged: nothing, kept: nothing };
  }
  // It ended by its date before SkyPilot was queried.
  const held = heldBy(alternatives);
  const used = chargedBy(alternatives);
  for (const [account, amount] of held) {
    used.set(account, (used.get(account) ?? 0n) - amount);
  }
  return { since, charged: used, kept: nothing };
}

function outcomeOf(
  row: LeaseRow | undefined,
  isRunning: boolean,
  hasRun: boolean,
  facts: Pick<LeaseRow, 'demand' | 'starts_at'>,
): Settlement['outcome'] {
  if (row === undefined || (row.state === 'ended' && clusterMark(row).state === 'settled')) {
    return 'recorded';
  }
  if (!isRunning) {
    return hasRun ? 'ended' : 'released';
  }
  const isKnown = clusterMark(row).state === 'seen' && row.state === 'open' && row.demand === facts.demand;
  return isKnown && row.starts_at === facts.starts_at ? 'continued' : 'corrected';
}

/** The message of the first limit that the cluster exceeds. */
function exceededBy(
  claims: readonly Claim[],
  balances: ReadonlyMap<string, Amount>,
  deltas: ReadonlyMap<string, Amount>,
): string | undefined {
  for (const claim of claims) {
    const { account, limit } = claim;
    const delta = deltas.get(account) ?? 0n;
    const taken = (balances.get(account) ?? 0n) + delta;
    if (limit !== undefined && delta > 0n && taken > limit) {
      const own = charge(claim);
      return claim.refuse({ asked: own, left: 0n, taken: taken - own, isUpdate: true });
    }
  }
  return undefined;
}

function isSame(row: LeaseRow, facts: Partial<LeaseRow>): boolean {
  return Object.entries(facts).every(([name, value]) => row[name as keyof LeaseRow] === value);
}

function proposalOf(
  { projectId: project_id, userId: user_id, region: region_name }: LeaseIdentity,
  { reservations }: ClusterState,
  start: Instant,
  end: Instant,
): Proposal {
  const context = { project_id, user_id, region_name };
  return { context, start, end, reservations, allocationsAreExact: true };
}
