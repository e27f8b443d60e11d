/**
 * The changes of a comparison with Blazar to one lease, in one transaction. A row that changed since it was
 * read is left.
 */
import type { Instant } from '../../lease/dates.ts';
import { demandOf } from '../accounting/demand.ts';
import type { LeaseIdentity } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import type { Claimant, LedgerRequest } from '../ledger-request.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import type { Author } from '../transactions/journal.ts';
import { record, release } from '../transactions/lease-transactions.ts';
import { previewLease } from '../transactions/preview.ts';
import type { Transaction } from '../transactions/transaction.ts';
import { begun, digestOf, isOverdue, type ListedLease, type ShownLease, type WholeLease } from './leases.ts';

/** The common settings of the transactions of a comparison. */
export interface Terms {
  /** The region of the list: leases of other regions are not changed. */
  readonly region: string;
  readonly claimants: readonly Claimant[];
  /** Only report what would be done; write nothing. */
  readonly isDryRun: boolean;
  /** The author of the entries. */
  readonly who: string;
  /** Prefix for the reason of each entry; `null` = none. */
  readonly reason: string | null;
}

/** The result for a lease that differed between list and ledger. */
export interface Reconciled {
  /** `identified`: its id was added to the ledger. `left`: unchanged, for the reason in `note`. */
  readonly outcome: 'released' | 'recorded' | 'corrected' | 'identified' | 'left';
  /** The row of the ledger; `null` = not in the ledger. */
  readonly row: bigint | null;
  readonly leaseId: string | null;
  readonly projectId: string | null;
  readonly userId: string | null;
  readonly name: string;
  readonly start: Instant;
  readonly end: Instant;
  readonly note: string | null;
  /** It was left because of an error; `note` has its message. */
  readonly isFailure?: boolean;
}

/** `undefined` = no change worth reporting. */
export type Result = Reconciled | undefined;

/** The time when the rows were read, and their revisions then. */
export interface Seen {
  readonly readAt: Instant;
  readonly revisions: ReadonlyMap<bigint, bigint>;
}

export const CHANGED = 'it was asked for meanwhile';
export const NOT_ENDED = 'Blazar has not ended it';

/** A lease of the ledger that is not changed. */
export function left(row: LeaseRow, note: string | null): Reconciled {
  const { id, lease_id: leaseId, project_id: projectId, user_id: userId, name } = row;
  const { starts_at: start, ends_at: end } = row;
  return { outcome: 'left', row: id, leaseId, projectId, userId, name, start, end, note };
}

/** A listed lease that is not recorded. */
export function unrecorded(lease: ListedLease, note: string | null): Reconciled {
  const { id: leaseId, projectId = null, userId = null, name, start, end } = lease;
  return { outcome: 'left', row: null, leaseId, projectId, userId, name, start, end, note };
}

/** Whether the lease was observed, not read from a list. */
export function isObserved(lease: object): lease is ShownLease {
  return 'given' in lease;
}

/** Ends a lease that Blazar does not have. `isUnused`: it never existed. */
export function* releaseLease(
  ledger: Ledger,
  transaction: Transaction,
  before: LeaseRow,
  { isUnused, note }: { readonly isUnused: boolean; readonly note: string | null },
  terms: Terms,
): Work<Reconciled | Undone<Reconciled>> {
  const moment = yield* transaction.lock(before.project_id);
  const row = yield* untouched(ledger, before);
  if (row === undefined || row.state === 'ended') {
    return new Undone(left(before, CHANGED));
  }
  yield* release(ledger.statements, row, { moment, author: authorOf(terms, note), leaseId: null, isUnused });
  return { ...left(row, note), outcome: 'released' };
}

/** Records a lease that is not in the ledger, like an update: past time is not charged. */
export function* recordLease(
  ledger: Ledger,
  transaction: Transaction,
  listed: WholeLease,
  { readAt, revisions }: Seen,
  terms: Terms,
): Work<Reconciled | Undone<Reconciled>> {
  const { statements } = ledger;
  const { region } = terms;
  const lease = isObserved(listed) ? begun(listed) : listed;
  const { id: lease_id, projectId: project_id, userId: user_id, start, end } = lease;
  const { now } = yield* transaction.lock(project_id);
  const found = yield* rows(statements.leaseById({ region, project_id, lease_id }));
  const alike = yield* rows(
    statements.namelessLeases({ region, project_id, user_id, starts_at: listed.start }),
  );
  // A row that is new or changed since the rows were read may be this lease; expired rows are not.
  const isNew = ({ id, revision, ends_at }: LeaseRow) => ends_at > readAt && revisions.get(id) !== revision;
  if (found.length > 0 || alike.some(isNew)) {
    return new Undone(unrecorded(lease, CHANGED));
  }
  const identity = { leaseId: lease_id, region, projectId: project_id, userId: user_id };
  const request = requestFor(identity, lease, { start, end }, terms.claimants);
  const why = isOverdue(lease)
    ? NOT_ENDED
    : isObserved(lease)
      ? 'Blazar has it, and the ledger had not'
      : null;
  const note = why ?? (yield* refusalOf(ledger, request, now));
  const recording = yield* resultOf(record(statements, request, transaction, authorOf(terms, why), true));
  return { ...unrecorded(lease, note), row: terms.isDryRun ? null : recording.lease, outcome: 'recorded' };
}

/** The limit that the rest of a lease exceeds. */
function* refusalOf({ statements }: Ledger, request: LedgerRequest, now: Instant): Work<string | null> {
  const { start } = request.proposal;
  const rest = { ...request.proposal, start: start < now ? now : start };
  const { calculation } = yield* previewLease(
    statements,
    { ...request, proposal: rest, current: undefined },
    now,
  );
  return calculation.refusal?.message ?? null;
}

/** The request to record a lease; `current`: its old dates. An observed lease takes what it was given. */
export function requestFor(
  identity: LeaseIdentity,
  lease: Pick<WholeLease, 'name' | 'start' | 'end' | 'reservations'> | ShownLease,
  current: { readonly start: Instant; readonly end: Instant },
  claimants: readonly Claimant[],
): LedgerRequest {
  const shown = isObserved(lease) ? lease : undefined;
  const { projectId: project_id, userId: user_id, region: region_name } = identity;
  const { name, start, end, reservations } = lease;
  const proposal = {
    context: { project_id, user_id, region_name },
    start,
    end,
    reservations: shown?.given ?? reservations,
    allocationsAreExact: true,
  };
  return {
    identity,
    name,
    proposal,
    current: { ...proposal, ...current },
    halfway: undefined,
    isCertain: true,
    adopts: false,
    repetition: undefined,
    claimants: claimants.map((one) => throwing(shown === undefined ? one : exact(one))),
    ...(shown && { demand: demandOf(reservations), shown: digestOf(shown) }),
  };
}

/**
 * Makes a claimant throw instead of refusing: otherwise a lease that a filter cannot judge would be recorded
 * without claims.
 */
export function throwing(claimant: Claimant): Claimant {
  return {
    ...claimant,
    claims(proposal, state) {
      const claims = claimant.claims(proposal, state);
      if ('allowed' in claims) {
        throw new Error(claims.message);
      }
      return claims;
    },
  };
}

/** Makes a claimant use the actual allocations of each reservation. */
export function exact(claimant: Claimant): Claimant {
  return {
    ...claimant,
    claims: (proposal, state) => claimant.claims({ ...proposal, allocationsAreByReservation: true }, state),
  };
}

/**
 * The row, unless it was recorded, ended or reopened since it was read. `mayBeOver`: it may have ended by its date, as all
 * leases do at the next transaction of their project.
 */
export function* untouched(
  { statements }: Ledger,
  before: LeaseRow,
  mayBeOver = false,
): Work<LeaseRow | undefined> {
  const [row] = yield* rows(statements.leaseByRow({ id: before.id }));
  const isSame = row?.revision === before.revision && (mayBeOver || row.state === before.state);
  return isSame ? row : undefined;
}

export function* resultOf<Result>(work: Work<Result | Undone<Result>>): Work<Result> {
  const result = yield* work;
  return result instanceof Undone ? result.result : result;
}

export function authorOf({ who, reason }: Terms, note: string | null): Author {
  const why = [reason, note].filter((part) => part !== null).join(': ');
  return { operation: 'reconcile', who, requestId: null, reason: why || null };
}
