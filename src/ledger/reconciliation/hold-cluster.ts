/**
 * Charges a cluster that is about to be launched. A cluster that is already charged takes nothing more,
 * unless it grows.
 */
import { larger } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { alternativesOf, chargedBy, heldBy, refundOf } from '../accounting/alternatives.ts';
import type { Refusal } from '../accounting/charge-calculation.ts';
import { formatClaims } from '../accounting/recorded-claim.ts';
import type { LeaseIdentity } from '../identity.ts';
import type { LedgerRequest } from '../ledger-request.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { findById } from '../transactions/find-lease.ts';
import type { Author } from '../transactions/journal.ts';
import { record } from '../transactions/lease-transactions.ts';
import { previewLease } from '../transactions/preview.ts';
import { revisionStep, type Statements } from '../transactions/statements.ts';
import type { Transaction } from '../transactions/transaction.ts';
import { clusterMark, LOOKED_BACK, writtenMark } from './cluster-mark.ts';

interface HoldResult {
  readonly refusal: Refusal | undefined;
  /** Whether an open lease already covered it. */
  readonly isCovered: boolean;
}

/** The result of `holdCluster`, without writing. */
export function* previewCluster(
  statements: Statements,
  request: LedgerRequest,
  now: bigint,
): Work<HoldResult> {
  const row = yield* findById(statements, request.identity);
  if (yield* isCovered(statements, request, row, now)) {
    return { refusal: undefined, isCovered: true };
  }
  const { calculation } = yield* previewLease(statements, request, now);
  return { refusal: calculation.refusal, isCovered: false };
}

/**
 * `requestOf`: the request as that of a user. A cluster that is up stays charged to its owner, whoever launches
 * on it: SkyPilot keeps the owner, too.
 */
export function* holdCluster(
  statements: Statements,
  identity: LeaseIdentity,
  requestOf: (userId: string) => LedgerRequest,
  transaction: Transaction,
  author: Author,
): Work<HoldResult | Undone<HoldResult>> {
  const { now } = yield* transaction.lock(identity.projectId);
  const row = yield* findById(statements, identity);
  const request = requestOf(row === undefined || isIdle(row, now) ? identity.userId : row.user_id);
  if (row !== undefined && (yield* isCovered(statements, request, row, now))) {
    // Requested again: the cluster may be launching, although SkyPilot does not show it yet.
    yield* rows(statements.setLease({ ...row, touched_at: now, step: revisionStep() }));
    return { refusal: undefined, isCovered: true };
  }
  yield* reopenUnsettled(statements, row, now);
  const recorded = yield* record(statements, { ...request, shown: markAfter(row, now) }, transaction, author);
  return recorded instanceof Undone
    ? new Undone({ refusal: recorded.result.refusal, isCovered: false })
    : { refusal: undefined, isCovered: false };
}

/** Whether an open lease takes at least as much as the cluster would until the end of that lease. */
function* isCovered(
  statements: Statements,
  request: LedgerRequest,
  row: LeaseRow | undefined,
  now: bigint,
): Work<boolean> {
  if (row === undefined || isOver(row, now)) {
    return false;
  }
  const { start, end } = request.proposal;
  // Until SkyPilot shows it, the charge is all that speaks for its time: one for an autostop is not enough without.
  if (clusterMark(row).state === 'awaited' && end - start > row.ends_at - row.starts_at) {
    return false;
  }
  const proposal = { ...request.proposal, end: row.ends_at };
  const { wanted } = yield* previewLease(statements, { ...request, proposal }, now);
  if (wanted.byFilter.some(({ refusal }) => refusal !== undefined)) {
    return false;
  }
  const asked = chargedBy([{ claims: wanted.byFilter.flatMap(({ claims }) => claims) }]);
  const left = refundOf(alternativesOf(row), now / MICROSECONDS_PER_SECOND);
  return [...asked].every(([account, amount]) => amount <= (left.get(account) ?? 0n));
}

/**
 * A lease that ended by its date while SkyPilot was not queried is charged for its whole time. It is reopened
 * with that charge, which the next observation replaces.
 */
function* reopenUnsettled(statements: Statements, row: LeaseRow | undefined, now: bigint): Work<void> {
  if (row === undefined || !isOver(row, now) || clusterMark(row).state === 'settled') {
    return;
  }
  const alternatives = alternativesOf(row);
  if (heldBy(alternatives).size > 0) {
    return;
  }
  const claims = [...chargedBy(alternatives)].map(
    ([account, amount]) => ({ kind: 'spent', account, amount }) as const,
  );
  if (claims.length > 0) {
    const facts = {
      claims: formatClaims(claims),
      alternatives: null,
      state: 'open',
      ended_at: null,
    } as const;
    yield* rows(statements.setLease({ ...row, ...facts, ends_at: now + 1n, step: revisionStep() }));
  }
}

/** Whether no charge covers the time in which the cluster is up. */
export function isIdle(row: LeaseRow, now: bigint): boolean {
  return isOver(row, now) || clusterMark(row).state === 'awaited';
}

function isOver(row: LeaseRow, now: bigint): boolean {
  return row.state === 'ended' || row.ends_at <= now;
}

function markAfter(row: LeaseRow | undefined, now: bigint): string {
  if (row === undefined) {
    return writtenMark({ state: 'awaited', since: now - LOOKED_BACK, hasAutostop: false });
  }
  return row.shown !== null && (!isOver(row, now) || clusterMark(row).state !== 'settled')
    ? row.shown
    : writtenMark({ state: 'awaited', since: settledUntil(row), hasAutostop: false });
}

/** Use of an ended lease is charged permanently up to this time. */
export function settledUntil(row: LeaseRow): bigint {
  const { since } = clusterMark(row);
  const { ended_at: endedAt, ends_at: endsAt } = row;
  const end = endedAt === null || endedAt > endsAt ? endsAt : endedAt;
  return larger(end, since);
}
