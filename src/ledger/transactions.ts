/** What is read and written, and in which order, when a lease is judged, recorded and ended. */
import { MICROSECONDS_PER_SECOND } from '../dates.ts';
import type { Amount } from './amount.ts';
import type { Budget } from './budget.ts';
import {
  type Claim,
  type Claims,
  charge,
  formatClaims,
  type Proposal,
  parseClaims,
  type RecordedClaim,
  refund,
  type Standing,
} from './claim.ts';
import { rows, Undone, type Work } from './database.ts';
import { type LeaseIdentity, wellFormed } from './identity.ts';
import { type FilterClaims, type Reckoning, type Refusal, reckon, sums } from './reckoning.ts';
import type { LeaseRow } from './schema.ts';
import type { Statements } from './statements.ts';

/** A filter that claims something for leases. */
export interface Claimant {
  readonly name: string;
  readonly audit: boolean;
  claims(proposal: Proposal, standing: Standing): Claims;
}

/** A lease as it is to be, and as it is. */
export interface LedgerRequest {
  readonly identity: LeaseIdentity;
  /** What it is to be called. */
  readonly name: string;
  /** As `demandOf` tells it: asked for only where it matters, since it costs as much as some queries. */
  readonly demand: () => string;
  readonly proposal: Proposal;
  /** Of an update: the lease as it is. */
  readonly current: Proposal | undefined;
  readonly claimants: readonly Claimant[];
}

/** What time it is, in microseconds of the epoch. Asked when the project is locked: whoever comes later is later. */
export type Now = () => bigint;

/** What stands in the entries besides. */
export interface Author {
  readonly operation: 'create' | 'update' | 'end' | 'undo' | 'reconcile';
  readonly who: string;
  readonly requestId: string | null;
  readonly reason: string | null;
}

export interface Recording {
  readonly refusal: Refusal | undefined;
  readonly warnings: readonly Refusal[];
  /** The row of the lease, if it is there; `null` when it was refused. */
  readonly lease: bigint | null;
  /** What takes the recording back; `undefined` = nothing was written. */
  readonly undo: Undo | undefined;
}

/** A recording, as it is taken back when somebody else refuses the lease after all. */
export interface Undo {
  readonly lease: bigint;
  readonly projectId: string;
  /** The row before; `undefined` = there was none. */
  readonly before: LeaseRow | undefined;
  /** As it was written: when it is another one by then, the lease was acknowledged to somebody since. */
  readonly revision: bigint;
  readonly deltas: ReadonlyMap<string, Amount>;
}

/** What the lease would find, and do. */
interface Prospect {
  readonly row: LeaseRow | undefined;
  /** It is recorded already, as it is asked for. */
  readonly isRepeated: boolean;
  readonly overdue: readonly { id: bigint; returned: ReadonlyMap<string, Amount> }[];
  readonly balances: ReadonlyMap<string, Amount>;
  readonly reckoning: Reckoning;
}

/** What the filters would say now. Nothing is written, and nobody waits for it. */
export function* foresee(statements: Statements, request: LedgerRequest, now: bigint): Work<Prospect> {
  const { identity, demand, proposal, current, claimants } = request;
  const { projectId: project_id, userId: user_id } = identity;
  const overdueRows = yield* rows(statements.overdueLeases({ project_id, now }));
  const budgets = (yield* rows(statements.budgets({ project_id, user_id }))).map(budgetOf);
  const standing: Standing = { now, budgets };
  const claimed = (of: Proposal): FilterClaims[] =>
    claimants.map((claimant) => {
      const { name: filter, audit } = claimant;
      const claims = claimant.claims(of, standing);
      return 'allowed' in claims
        ? { filter, audit, claims: [], refusal: claims.message }
        : { filter, audit, claims: claims.map(kept), refusal: undefined };
    });
  const wanted = claimed(proposal);
  // Whether or not anybody has noticed: a lease that is over has ended.
  const found = (yield* findLease(statements, identity)).map((row) =>
    row.ends_at <= now ? { ...row, state: 'ended' as const, ended_at: row.ended_at ?? row.ends_at } : row,
  );
  const repeated =
    current === undefined
      ? found.find((row) => isSame(row, { proposal, demand, wanted, identity }))
      : undefined;
  // What was asked for again in other words may be there besides: both count, until somebody says which one is not.
  // One that was taken back, or has ended, begins anew under its id.
  const row =
    repeated ??
    (current === undefined
      ? found.find(({ state, lease_id }) => state === 'ended' && lease_id !== null)
      : nearest(found, current.end));
  const overdue = overdueRows.map(({ id, claims }) => ({ id, returned: heldBy(parseClaims(claims)) }));

  const recorded = row?.state === 'open' ? parseClaims(row.claims) : [];
  // What is over takes nothing that the lease could be said to have already.
  const isOver = current === undefined || current.end <= now || row?.state === 'ended';
  const inForce = isOver ? [] : claimed(current).flatMap(({ claims }) => claims);
  const accounts = new Set(
    [...recorded, ...wanted.flatMap(({ claims }) => claims)].map(({ account }) => account),
  );
  for (const { returned } of overdue) {
    for (const account of returned.keys()) {
      accounts.add(account);
    }
  }
  const balances = yield* balancesOf(statements, project_id, accounts);
  const reckoning = reckon({
    now: now / MICROSECONDS_PER_SECOND,
    wanted,
    recorded,
    current: inForce,
    isUpdate: current !== undefined,
    hasBegun: current !== undefined && current.start < now,
    returned: added(overdue.map(({ returned }) => returned)),
    balances,
  });
  return { row, isRepeated: repeated !== undefined, overdue, balances, reckoning };
}

/**
 * Records the lease if it fits, in a transaction of its own. `force`: also if it does not, since it is there.
 */
export function* record(
  statements: Statements,
  request: LedgerRequest,
  clock: Now,
  author: Author,
  force = false,
): Work<Recording | Undone<Recording>> {
  const { identity, demand, proposal } = request;
  const { projectId: project_id } = identity;
  yield* rows(statements.lockProject({ project_id }));
  const now = clock();
  const { row, isRepeated, overdue, balances, reckoning } = yield* foresee(statements, request, now);
  const { refusal, warnings } = reckoning;
  if (isRepeated && row !== undefined) {
    yield* rows(statements.setLease({ ...row, lease_id: row.lease_id ?? identity.leaseId }));
    return { refusal: undefined, warnings: [], lease: row.id, undo: undefined };
  }
  if (refusal !== undefined && !force) {
    return new Undone({ refusal, warnings, lease: null, undo: undefined });
  }

  const facts = {
    lease_id: identity.leaseId ?? row?.lease_id ?? null,
    name: request.name,
    starts_at: proposal.start,
    ends_at: proposal.end,
    state: 'open' as const,
    demand: demand(),
    claims: formatClaims(reckoning.claims),
    ended_at: null,
  };
  // First of all, since the lease may be one of them.
  const ended = yield* endOverdue(statements, overdue);
  let lease = row?.id;
  if (lease === undefined) {
    const { region, userId: user_id } = identity;
    const [added] = yield* rows(
      statements.addLease({ ...facts, region, project_id, user_id, recorded_at: now }),
    );
    lease = added?.id ?? 0n;
  } else {
    yield* rows(statements.setLease({ ...facts, id: lease }));
  }
  yield* post(statements, { project_id, at: now, balances, author }, [
    ...ended,
    { lease, operation: author.operation, deltas: reckoning.deltas },
  ]);
  const revision = (row?.revision ?? 0n) + 1n;
  const undo = { lease, projectId: project_id, before: row, revision, deltas: reckoning.deltas };
  return { refusal: undefined, warnings, lease, undo };
}

/** Takes a recording back: all balances are as they were before it. */
export function* takeBack(
  statements: Statements,
  { lease, projectId: project_id, before, revision, deltas }: Undo,
  clock: Now,
  author: Author,
): Work<boolean | Undone<boolean>> {
  yield* rows(statements.lockProject({ project_id }));
  const now = clock();
  const [row] = yield* rows(statements.leaseByRow({ id: lease }));
  if (row === undefined || row.state === 'ended' || row.revision !== revision) {
    return new Undone(false);
  }
  yield* rows(statements.setLease(before ?? { ...row, state: 'ended', ended_at: now }));
  const balances = yield* balancesOf(statements, project_id, new Set(deltas.keys()));
  yield* post(statements, { project_id, at: now, balances, author }, [
    { lease, operation: author.operation, deltas: negative(deltas) },
  ]);
  return true;
}

/** A lease that has ended, as far as the request says. */
export interface EndedLease {
  readonly identity: LeaseIdentity;
  readonly end: bigint | undefined;
}

/** Ends a lease, and gives back what it has not used. One that has ended already, or is not known, stays as it is. */
export function* end(
  statements: Statements,
  { identity, end: endsAt }: EndedLease,
  clock: Now,
  author: Author,
): Work<boolean | Undone<boolean>> {
  const { projectId: project_id } = identity;
  yield* rows(statements.lockProject({ project_id }));
  const now = clock();
  const row = nearest(yield* findLease(statements, identity), endsAt);
  if (row === undefined || row.state === 'ended') {
    return new Undone(false);
  }
  yield* release(statements, row, { now, author, leaseId: identity.leaseId });
  return true;
}

/** Ends the lease of a row that is open. */
export function* release(
  statements: Statements,
  row: LeaseRow,
  { now, author, leaseId }: { now: bigint; author: Author; leaseId: string | null },
): Work<void> {
  const { project_id } = row;
  const isOver = row.ends_at <= now;
  const claims = parseClaims(row.claims);
  const returned = isOver
    ? heldBy(claims)
    : sums(claims, (claim) => refund(claim, now / MICROSECONDS_PER_SECOND));
  const balances = yield* balancesOf(statements, project_id, new Set(returned.keys()));
  const ended_at = isOver ? row.ends_at : now;
  yield* rows(statements.setLease({ ...row, lease_id: row.lease_id ?? leaseId, state: 'ended', ended_at }));
  yield* post(statements, { project_id, at: now, balances, author }, [
    { lease: row.id, operation: author.operation, deltas: negative(returned) },
  ]);
}

interface Posting {
  readonly lease: bigint;
  readonly operation: string;
  readonly deltas: ReadonlyMap<string, Amount>;
}

/** Adds entries, and what they come to to the balances. */
function* post(
  statements: Statements,
  {
    project_id,
    at,
    balances,
    author,
  }: { project_id: string; at: bigint; balances: ReadonlyMap<string, Amount>; author: Author },
  postings: readonly Posting[],
): Work<void> {
  const { who, requestId: request_id, reason } = author;
  const entries = postings.flatMap(({ lease, operation, deltas }) =>
    [...deltas]
      .filter(([, delta]) => delta !== 0n)
      .map(([account, delta]) => ({
        at,
        project_id,
        account,
        delta,
        lease,
        operation,
        who,
        request_id,
        reason,
      })),
  );
  if (entries.length === 0) {
    return;
  }
  const changes = new Map<string, Amount>();
  for (const { account, delta } of entries) {
    changes.set(account, (changes.get(account) ?? 0n) + delta);
  }
  const changed = [...changes].map(([name, delta]) => ({
    project_id,
    name,
    balance: (balances.get(name) ?? 0n) + delta,
  }));
  for (const some of inBatches(changed)) {
    yield* rows(statements.setBalances(some));
  }
  for (const some of inBatches(entries)) {
    yield* rows(statements.addEntries(some));
  }
}

/** A query can't have any number of parameters. */
const BATCH = 500;

function* inBatches<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += BATCH) {
    yield items.slice(start, start + BATCH);
  }
}

function* endOverdue(statements: Statements, overdue: Prospect['overdue']): Work<Posting[]> {
  for (const { id } of overdue) {
    yield* rows(statements.endOverdue({ id }));
  }
  return overdue.map(({ id, returned }) => ({
    lease: id,
    operation: 'end-date',
    deltas: negative(returned),
  }));
}

function kept(claim: Claim): Claim {
  return { ...claim, account: wellFormed(claim.account) };
}

/** By its id; where none is known yet, all that it may be. */
function* findLease(statements: Statements, identity: LeaseIdentity): Work<LeaseRow[]> {
  const {
    leaseId: lease_id,
    region,
    projectId: project_id,
    userId: user_id,
    name,
    start: starts_at,
  } = identity;
  if (lease_id !== null) {
    const known = yield* rows(statements.leaseById({ region, project_id, lease_id }));
    if (known.length > 0) {
      return known;
    }
  }
  return yield* rows(statements.leasesByKey({ region, project_id, user_id, name, starts_at }));
}

/** Whether a new lease was recorded before: Blazar's client tries again, and what is built is reported by its id. */
function isSame(
  row: LeaseRow,
  {
    proposal,
    demand,
    wanted,
    identity,
  }: { proposal: Proposal; demand: () => string; wanted: readonly FilterClaims[]; identity: LeaseIdentity },
): boolean {
  if (row.lease_id !== null) {
    return row.state === 'open' && row.lease_id === identity.leaseId;
  }
  const isAlike = row.demand === demand();
  const takesAlike = () => includesAll(parseClaims(row.claims), wanted);
  // What is built is described by more than what was asked for: one of both is enough, with an id.
  const isRepeated = identity.leaseId === null ? isAlike && takesAlike() : isAlike || takesAlike();
  return row.ends_at === proposal.end && isRepeated;
}

/** A check is asked by one filter: what the others claim is recorded besides. */
function includesAll(recorded: readonly RecordedClaim[], wanted: readonly FilterClaims[]): boolean {
  const known = new Set(recorded.map((claim) => formatClaims([claim])));
  return wanted.every(({ claims }) => claims.every((claim) => known.has(formatClaims([claim]))));
}

/** Of those that it may be, the one that ends when it does; else the one that was recorded first. */
function nearest(found: readonly LeaseRow[], endsAt: bigint | undefined): LeaseRow | undefined {
  return found.find(({ ends_at }) => ends_at === endsAt) ?? found[0];
}

function* balancesOf(
  statements: Statements,
  project_id: string,
  accounts: ReadonlySet<string>,
): Work<Map<string, Amount>> {
  const balances = new Map<string, Amount>();
  const names = [...accounts].map((name) => ({ project_id, name }));
  for (const some of inBatches(names)) {
    for (const { name, balance } of yield* rows(statements.balances(some))) {
      balances.set(name, balance);
    }
  }
  return balances;
}

export function budgetOf(row: {
  id: bigint;
  project_id: string;
  user_id: string | null;
  valid_from: bigint;
  valid_until: bigint;
  amount: bigint;
}): Budget {
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    validFrom: row.valid_from,
    validUntil: row.valid_until,
    amount: row.amount,
  };
}

function heldBy(claims: readonly RecordedClaim[]): Map<string, Amount> {
  return sums(
    claims.filter(({ kind }) => kind === 'held'),
    charge,
  );
}

function negative(amounts: ReadonlyMap<string, Amount>): Map<string, Amount> {
  return new Map([...amounts].map(([account, amount]) => [account, -amount]));
}

function added(maps: readonly ReadonlyMap<string, Amount>[]): Map<string, Amount> {
  const total = new Map<string, Amount>();
  for (const one of maps) {
    for (const [account, amount] of one) {
      total.set(account, (total.get(account) ?? 0n) + amount);
    }
  }
  return total;
}
