/** What `reconcile` does about one lease, in a transaction of its own. A lease that has changed meanwhile stays as it is. */

import { formatInstant, type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Reservation } from '../../lease/lease.ts';
import { type Alternative, alternativesOf, chargedBy } from '../alternatives.ts';
import type { Claimant } from '../claimant.ts';
import { rows, Undone, type Work } from '../database/database.ts';
import type { LeaseRow } from '../database/schema.ts';
import type { LeaseIdentity } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import type { LedgerRequest } from '../ledger-request.ts';
import { movedClaims } from '../moved-claims.ts';
import type { Author } from '../posting.ts';
import { foresee } from '../prospect.ts';
import { revisionStep } from '../statements.ts';
import { record, release } from '../transactions.ts';
import type { Turn } from '../turn.ts';
import { fits, type ListedLease } from './lease-pairing.ts';

export interface ReconcileOptions {
  /** The region that the list is of: leases of other regions stay as they are. */
  readonly region: string;
  /** The projects that the list is of; `undefined` = all. */
  readonly projectIds: ReadonlySet<string> | undefined;
  /** In seconds. Leases recorded or ended more recently may be newer than the list, and stay as they are. */
  readonly olderThan: bigint;
  /** Report what would be done, and write nothing. */
  readonly isDryRun: boolean;
  /** The filters that say what a lease takes. */
  readonly claimants: readonly Claimant[];
  /** Projects whose leases are not recorded. */
  readonly exemptProjects: readonly string[];
  readonly who: string;
  readonly reason: string | null;
}

/** What was done about a lease on which list and ledger disagreed. */
export interface Reconciled {
  /** `identified`: the ledger now knows its id. `left`: nothing was done; `note` says why. */
  readonly outcome: 'released' | 'recorded' | 'corrected' | 'identified' | 'left';
  /** The row of the ledger; `null` = the ledger does not have the lease. */
  readonly row: bigint | null;
  readonly leaseId: string | null;
  readonly projectId: string | null;
  readonly userId: string | null;
  readonly name: string;
  readonly start: Instant;
  readonly end: Instant;
  readonly note: string | null;
  /** It was left because of an error, which is the note. */
  readonly isFailure?: boolean;
}

/** In a dry run everything is rolled back. */
export function* settled<Result>(
  work: Work<Result | Undone<Result>>,
  { isDryRun }: Pick<ReconcileOptions, 'isDryRun'>,
): Work<Result | Undone<Result>> {
  const result = yield* work;
  return isDryRun && !(result instanceof Undone) ? new Undone(result) : result;
}

/** Ends a lease that the list does not have. */
export function* released(
  ledger: Ledger,
  turn: Turn,
  before: LeaseRow,
  options: ReconcileOptions,
): Work<Reconciled | Undone<Reconciled>> {
  const moment = yield* turn.lock(before.project_id);
  const row = yield* sameRow(ledger, before);
  if (row === undefined) {
    return new Undone(left(before, CHANGED));
  }
  yield* release(ledger.statements, row, { moment, author: authorOf(options), leaseId: null });
  return { ...left(row, null), outcome: 'released' };
}

/** Makes a recorded lease what the list says. */
export function* corrected(
  ledger: Ledger,
  turn: Turn,
  before: LeaseRow,
  lease: ListedLease,
  options: ReconcileOptions,
): Work<Reconciled | Undone<Reconciled>> {
  const { statements } = ledger;
  const { now } = yield* turn.lock(before.project_id);
  const found = yield* sameRow(ledger, before);
  if (found === undefined) {
    return new Undone(left(before, CHANGED));
  }
  const { ended_at: endedAt } = found;
  const isNews = endedAt !== null && endedAt > now - options.olderThan * MICROSECONDS_PER_SECOND;
  if (found.state === 'ended' && isNews) {
    return new Undone(left(found, `it ended at ${formatInstant(endedAt)}; the list may be older`));
  }
  const row = { ...found, lease_id: lease.id };
  if (found.lease_id === null) {
    yield* rows(statements.setLease({ ...row, step: revisionStep() }));
  }
  const shown = { ...left(row, null), start: lease.start, end: lease.end };
  if (found.state === 'open' && !differs(found, lease, options.claimants)) {
    return { ...shown, outcome: 'identified' };
  }
  const { reservations } = lease;
  const isTold = reservations !== undefined && options.claimants.length > 0;
  const alternatives = alternativesOf(row);
  const known = dearestOf(alternatives, lease);
  if (!isTold && known === undefined) {
    return new Undone(
      left(found, 'an update was asked for, and the list does not say what the lease reserves'),
    );
  }
  const owner = ownerOf(row);
  const request = requestOf(
    { ...owner, userId: lease.userId ?? owner.userId },
    {
      lease: { ...lease, reservations: reservations ?? [] },
      current: { start: alternatives.map(({ start }) => start).reduce(smaller), end: row.ends_at },
      // Where no filter can tell what the lease takes, it takes as much as before.
      claimants: isTold || known === undefined ? options.claimants : [movedClaims(known)],
    },
  );
  const demand = reservations === undefined ? (known?.demand ?? row.demand) : undefined;
  yield* record(statements, { ...request, demand }, turn, authorOf(options), true);
  const was = `it was ${formatInstant(row.starts_at)} to ${formatInstant(row.ends_at)}`;
  const note = hasOtherDates(found, lease)
    ? was
    : found.state === 'ended'
      ? 'it had ended'
      : found.alternatives === null
        ? 'it reserves something else'
        : 'it was not known which of its changes had been made';
  return { ...shown, outcome: 'corrected', note };
}

/** Of the alternatives that fit the dates, the one that takes the most of every account, if there is one. */
function dearestOf(
  alternatives: readonly Alternative[],
  { start, end }: Pick<ListedLease, 'start' | 'end'>,
): Alternative | undefined {
  const fitting = alternatives.filter((one) => one.start === start && one.end === end);
  const possible = fitting.length > 0 ? fitting : alternatives;
  const total = chargedBy(possible);
  return possible.find((one) => {
    const own = chargedBy([one]);
    return [...total].every(([account, amount]) => (own.get(account) ?? 0n) === amount);
  });
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** A listed lease with everything that recording it takes. */
export type WholeLease = ListedLease & {
  readonly projectId: string;
  readonly userId: string;
  readonly reservations: readonly Reservation[];
};

/** Records a lease that the ledger does not know, as an update would: the time that has passed is not charged. */
export function* recorded(
  ledger: Ledger,
  turn: Turn,
  lease: WholeLease,
  options: ReconcileOptions,
): Work<Reconciled | Undone<Reconciled>> {
  const { statements } = ledger;
  const { id, name, start, end, projectId: project_id, userId } = lease;
  const { now } = yield* turn.lock(project_id);
  const identity = { leaseId: id, region: options.region, projectId: project_id, userId };
  const found = yield* rows(statements.leaseById({ region: options.region, project_id, lease_id: id }));
  if (found.length > 0) {
    return new Undone(unrecorded(lease, CHANGED));
  }
  const request = requestOf(identity, { lease, current: { start, end }, claimants: options.claimants });
  const hasBegun = start < now;
  const rest = { ...request.proposal, start: hasBegun ? now : start };
  const { reckoning } = yield* foresee(statements, { ...request, proposal: rest, current: undefined }, now);
  const recording = yield* resultOf(record(statements, request, turn, authorOf(options), true));
  const row = options.isDryRun ? null : recording.lease;
  const note = reckoning.refusal?.message ?? null;
  return { outcome: 'recorded', row, leaseId: id, projectId: project_id, userId, name, start, end, note };
}

export function* resultOf<Result>(work: Work<Result | Undone<Result>>): Work<Result> {
  const result = yield* work;
  return result instanceof Undone ? result.result : result;
}

/** The row as it is now; `undefined` when it changed since `before` was read. */
function* sameRow({ statements }: Ledger, before: LeaseRow): Work<LeaseRow | undefined> {
  const [row] = yield* rows(statements.leaseByRow({ id: before.id }));
  const isSame =
    row !== undefined &&
    row.lease_id === before.lease_id &&
    row.state === before.state &&
    row.starts_at === before.starts_at &&
    row.ends_at === before.ends_at &&
    row.claims === before.claims &&
    row.alternatives === before.alternatives;
  return isSame ? row : undefined;
}

export interface Wanted {
  readonly lease: Pick<WholeLease, 'name' | 'start' | 'end' | 'reservations'>;
  readonly current: { readonly start: Instant; readonly end: Instant };
  readonly claimants: readonly Claimant[];
}

export function requestOf(identity: LeaseIdentity, { lease, current, claimants }: Wanted): LedgerRequest {
  const { name, start, end, reservations } = lease;
  const { projectId: project_id, userId: user_id, region: region_name } = identity;
  const context = { project_id, user_id, region_name };
  const proposal = { context, start, end, reservations, allocationsAreExact: true };
  return {
    identity,
    name,
    proposal,
    current: { ...proposal, ...current },
    halfway: undefined,
    isCertain: true,
    adopts: false,
    repetition: undefined,
    claimants: claimants.map(throwing),
  };
}

/** A claimant that throws where it would refuse: otherwise a lease that a filter cannot judge would be recorded as taking nothing. */
export function throwing(claimant: Claimant): Claimant {
  return {
    ...claimant,
    claims(proposal, standing) {
      const claims = claimant.claims(proposal, standing);
      if ('allowed' in claims) {
        throw new Error(claims.message);
      }
      return claims;
    },
  };
}

function ownerOf(row: LeaseRow): LeaseIdentity {
  const { lease_id: leaseId, region, project_id: projectId, user_id: userId } = row;
  return { leaseId, region, projectId, userId };
}

/** Whether the ledger has other dates or reservations than the list, or is not sure. */
export function differs(row: LeaseRow, lease: ListedLease, claimants: readonly Claimant[]): boolean {
  const hasOtherCounts = claimants.length > 0 && !fits(row, lease);
  return row.alternatives !== null || hasOtherDates(row, lease) || hasOtherCounts;
}

function hasOtherDates(row: LeaseRow, { start, end }: ListedLease): boolean {
  return row.starts_at !== start || row.ends_at !== end;
}

function authorOf({ who, reason }: ReconcileOptions): Author {
  return { operation: 'reconcile', who, requestId: null, reason };
}

export const CHANGED = 'it has changed meanwhile';

/** A lease of the ledger that stays as it is. */
export function left(row: LeaseRow, note: string | null): Reconciled {
  const { leaseId, projectId, userId } = ownerOf(row);
  const { id, name, starts_at: start, ends_at: end } = row;
  return { outcome: 'left', row: id, leaseId, projectId, userId, name, start, end, note };
}

/** A lease of the list that is not recorded. */
export function unrecorded(lease: ListedLease, note: string | null): Reconciled {
  const { id: leaseId, projectId = null, userId = null, name, start, end } = lease;
  return { outcome: 'left', row: null, leaseId, projectId, userId, name, start, end, note };
}
