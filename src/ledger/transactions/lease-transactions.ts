/** The transactions that record, take back and end a lease. */

import type { Amount } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { IS_CHANGING, MAKING } from '../../lease/lease.ts';
import {
  alternativesOf,
  chargedBy,
  distinct,
  heldBy,
  recordedAs,
  refundOf,
} from '../accounting/alternatives.ts';
import { type Refusal, TOO_MUCH } from '../accounting/charge-calculation.ts';
import { demandOf, NO_RESOURCES, recordedResources } from '../accounting/demand.ts';
import type { LeaseIdentity } from '../identity.ts';
import type { LedgerRequest } from '../ledger-request.ts';
import { ASKED } from '../reconciliation/leases.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { type FirstReads, findById, findByShape, type LeaseShape, listOf } from './find-lease.ts';
import { type Author, balancesOf, negative, post } from './journal.ts';
import { begunOf, type LeasePreview, previewLease } from './preview.ts';
import { type NewLease, revisionStep, type Statements } from './statements.ts';
import type { Moment, Transaction } from './transaction.ts';

export interface Recording {
  readonly refusal: Refusal | undefined;
  readonly warnings: readonly Refusal[];
  /** The row of the lease; `null` = it was refused. */
  readonly lease: bigint | null;
  /** Takes the recording back; `undefined` = nothing was written. */
  readonly undo: Undo | undefined;
}

/** The data to take a recording back when a later filter refuses the lease. */
export interface Undo {
  readonly lease: bigint;
  readonly projectId: string;
  /** The row before the recording; `undefined` = there was none. */
  readonly before: LeaseRow | undefined;
  /** The written revision: if it has changed, the lease was acknowledged to another request since. */
  readonly revision: bigint;
  readonly deltas: ReadonlyMap<string, Amount>;
}

/** Records the lease if it fits. `force`: also if it does not fit, because it exists. */
export function* record(
  statements: Statements,
  request: LedgerRequest,
  transaction: Transaction,
  author: Author,
  force = false,
): Work<Recording | Undone<Recording>> {
  const { identity, repetition } = request;
  const { projectId: project_id } = identity;
  const first = transaction.firstReads(request);
  const { now, latest } = yield* transaction.lock(project_id, listOf(first));
  // Reads from before leases were reopened are outdated.
  const isReopened = yield* reopened(statements, project_id, { now, latest }, author);
  const preview = yield* previewLease(statements, request, now, latest, isReopened ? undefined : first);
  const { row, isRepeated, overdue, balances, budgets, calculation } = preview;
  const { warnings, alternatives } = calculation;
  const refusal = calculation.refusal ?? changingRefusal(row, request, now);
  if (row !== undefined && (isRepeated || isUnchanged(row, request, calculation))) {
    // A new revision, so that an earlier request can no longer take it back.
    const lease_id = row.lease_id ?? identity.leaseId;
    yield* rows(
      statements.setLease({ ...row, lease_id, touched_at: now, shown: null, step: revisionStep() }),
    );
    return { refusal: undefined, warnings: [], lease: row.id, undo: undefined };
  }
  if (refusal !== undefined && !force) {
    return new Undone({ refusal, warnings, lease: null, undo: undefined });
  }
  if (force && calculation.isTooMuch) {
    throw new RangeError(TOO_MUCH);
  }

  const step = revisionStep();
  const { starts_at, ends_at, demand, claims, alternatives: others } = recordedAs(alternatives);
  // All columns at once: copying objects of this size takes as long as much of the computation.
  const facts = {
    lease_id: identity.leaseId ?? row?.lease_id ?? null,
    region: identity.region,
    project_id,
    // A failed request may have recorded the id for another user.
    user_id: identity.userId,
    name: request.name,
    starts_at,
    ends_at,
    state: 'open' as const,
    demand,
    claims,
    alternatives: others,
    repetition_key: repetition?.key ?? row?.repetition_key ?? null,
    repetition_content: repetition?.content ?? row?.repetition_content ?? null,
    revision: step,
    recorded_at: now,
    ended_at: null,
    touched_at: now,
    shown: request.shown ?? (request.current === undefined ? null : ASKED),
    resources:
      recordedResources(
        request.proposal.reservations,
        row?.resources ?? null,
        begunOf(request.current, now),
      ) ?? (row === undefined ? NO_RESOURCES : null),
  };
  // First: the lease itself may be one of them.
  if (overdue.length > 0) {
    yield* rows(statements.endOverdue({ project_id, now }));
  }
  const ended = overdue.map(({ id, returned }) => ({
    lease: id,
    operation: 'end-date',
    deltas: negative(returned),
  }));
  let lease = row?.id;
  if (lease === undefined) {
    lease = yield* addLease(statements, facts, first);
  } else {
    yield* rows(statements.setLease({ id: lease, ...facts, step }));
  }
  const revision = (row?.revision ?? 0n) + step;
  const recording = { lease, revision };
  yield* post(statements, { project_id, at: latest, balances, author, budgets, recording }, [
    ...ended,
    { lease, operation: author.operation, deltas: calculation.deltas },
  ]);
  const undo = { lease, projectId: project_id, before: row, revision, deltas: calculation.deltas };
  return { refusal: undefined, warnings, lease, undo };
}

/** As `MAKING`, if only dates change: Blazar makes such changes at once, and the last one alone counts. */
const MOVING = 5_000_000n;

/**
 * Blazar does not lock a lease: it releases its lock when any other change fails, such as an invalid one that is sent
 * at the same moment. Of several changes, it makes all: each adds hosts to those of the lease, or changes another
 * reservation. So a change is refused if another one was allowed just before, unless the request shows that it has
 * been made.
 */
function changingRefusal(
  row: LeaseRow | undefined,
  { proposal, current, adopts, claimants }: LedgerRequest,
  now: bigint,
): Refusal | undefined {
  const enforced = claimants.find(({ audit }) => !audit);
  if (current === undefined || adopts || enforced === undefined || row?.shown !== ASKED) {
    return undefined;
  }
  const { start, end } = current;
  const demand = demandOf(current.reservations);
  const recorded = alternativesOf(row);
  const isMoved = [demandOf(proposal.reservations), ...recorded.map((one) => one.demand)].every(
    (one) => one === demand,
  );
  if (row.touched_at > now || now >= row.touched_at + (isMoved ? MOVING : MAKING)) {
    return undefined;
  }
  const [asked, ...before] = recorded.map(
    (one) => one.start === start && one.end === end && one.demand === demand,
  );
  const isMade = asked === true && !before.includes(true);
  return isMade || before.length === 0 ? undefined : { filter: enforced.name, message: IS_CHANGING };
}

/** Returns the id of the lease: the id that was read ahead, if any. */
function* addLease(statements: Statements, lease: NewLease, { nextId }: FirstReads): Work<bigint> {
  const [next] = nextId === undefined ? [] : yield* rows(nextId);
  if (next?.id != null) {
    yield* rows(statements.addLeaseWithId({ id: next.id, ...lease }));
    return next.id;
  }
  const [added] = yield* rows(statements.addLease(lease));
  return added?.id ?? 0n;
}

/** Takes a recording back: restores all balances. */
export function* takeBack(
  statements: Statements,
  { lease, projectId: project_id, before, revision, deltas }: Undo,
  transaction: Transaction,
  author: Author,
): Work<boolean> {
  const { latest } = yield* transaction.lock(project_id);
  const [row] = yield* rows(statements.leaseByRow({ id: lease }));
  if (row === undefined || row.state === 'ended' || row.revision !== revision) {
    // The lock is committed nevertheless. It overwrites an unconfirmed commit in SQLite's log, which recovery
    // would apply although no process sees it now.
    return false;
  }
  const restored = before ?? { ...row, state: 'ended' as const, ended_at: latest };
  yield* rows(statements.setLease({ ...restored, step: revisionStep() }));
  const balances = yield* balancesOf(statements, project_id, new Set(deltas.keys()));
  yield* post(statements, { project_id, at: latest, balances, author }, [
    { lease, operation: author.operation, deltas: negative(deltas) },
  ]);
  if (statements.crossings !== undefined) {
    yield* statements.crossings.withdraw({ lease, revision }, deltas);
  }
  return true;
}

/** A lease that has ended, as far as the request describes it. */
export interface EndedLease {
  readonly identity: LeaseIdentity;
  /** `undefined` = the request is incomplete: only the id can identify the lease. */
  readonly shape: LeaseShape | undefined;
}

/** Ends a lease and refunds its unused part. Does nothing for an ended or unknown lease. */
export function* end(
  statements: Statements,
  { identity, shape }: EndedLease,
  transaction: Transaction,
  author: Author,
): Work<boolean | Undone<boolean>> {
  const { projectId: project_id } = identity;
  const moment = yield* transaction.lock(project_id);
  const { now } = moment;
  const row =
    (yield* findById(statements, identity)) ??
    (shape === undefined
      ? undefined
      : yield* findByShape(statements, identity, shape, { now, isOver: true }));
  if (row === undefined || row.state === 'ended') {
    return new Undone(false);
  }
  yield* release(statements, row, { moment, author, leaseId: identity.leaseId });
  return true;
}

interface Release {
  readonly moment: Moment;
  readonly author: Author;
  readonly leaseId: string | null;
  /** It never existed: the time until now is refunded, too. */
  readonly isUnused?: boolean;
}

/** Ends the lease of an open row. */
export function* release(
  statements: Statements,
  row: LeaseRow,
  { moment: { now, latest }, author, leaseId, isUnused = false }: Release,
): Work<void> {
  const { project_id } = row;
  const isOver = row.ends_at <= now;
  const alternatives = alternativesOf(row);
  const returned = isUnused
    ? chargedBy(alternatives)
    : isOver
      ? heldBy(alternatives)
      : refundOf(alternatives, latest / MICROSECONDS_PER_SECOND);
  const balances = yield* balancesOf(statements, project_id, new Set(returned.keys()));
  const ended = {
    lease_id: row.lease_id ?? leaseId,
    state: 'ended' as const,
    ended_at: isOver ? row.ends_at : latest,
  };
  yield* rows(statements.setLease({ ...row, ...ended, step: revisionStep() }));
  yield* post(statements, { project_id, at: latest, balances, author }, [
    { lease: row.id, operation: author.operation, deltas: negative(returned) },
  ]);
}

/** Whether the ledger already has a new lease exactly as requested: a repeated request takes nothing more. */
function isUnchanged(
  row: LeaseRow,
  { current }: LedgerRequest,
  { alternatives, deltas, isTooMuch }: LeasePreview['calculation'],
): boolean {
  return (
    current === undefined &&
    row.state === 'open' &&
    deltas.size === 0 &&
    !isTooMuch &&
    distinct([...alternativesOf(row), ...alternatives]).length === alternativesOf(row).length
  );
}

/**
 * Reopens leases that ended by date although their end is in the future. An end that was reported while the
 * clock was ahead looks the same; such a lease then counts until its end date, too. Needed only if the clock
 * is behind the last entry. Returns whether there were any.
 */
function* reopened(
  statements: Statements,
  project_id: string,
  { now, latest }: Moment,
  author: Author,
): Work<boolean> {
  if (latest <= now) {
    return false;
  }
  const early = yield* rows(statements.endedEarly({ project_id, now }));
  const changes = early.map((row) => ({
    lease: row.id,
    operation: 'reopen',
    deltas: heldBy(alternativesOf(row)),
  }));
  if (early.length > 0) {
    yield* rows(statements.reopenEndedEarly({ project_id, now }));
  }
  const accounts = new Set(changes.flatMap(({ deltas }) => [...deltas.keys()]));
  const balances = yield* balancesOf(statements, project_id, accounts);
  yield* post(statements, { project_id, at: latest, balances, author }, changes);
  return early.length > 0;
}
