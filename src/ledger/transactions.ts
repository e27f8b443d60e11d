/** What is written, and in which order, when a lease is recorded, taken back and ended. */
import { MICROSECONDS_PER_SECOND } from '../dates.ts';
import type { Amount } from './amount.ts';
import { formatClaims, parseClaims, refund } from './claim.ts';
import { rows, Undone, type Work } from './database.ts';
import { findLease, nearest } from './find-lease.ts';
import type { LeaseIdentity } from './identity.ts';
import { type Author, balancesOf, negative, type Posting, post } from './posting.ts';
import { foresee, heldBy, type LedgerRequest, type Prospect } from './prospect.ts';
import { type Refusal, sums } from './reckoning.ts';
import type { LeaseRow } from './schema.ts';
import type { Statements } from './statements.ts';

/** What time it is, in microseconds of the epoch. Asked when the project is locked: whoever comes later is later. */
export type Now = () => bigint;

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
