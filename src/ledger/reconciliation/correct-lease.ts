/** Changes a row of the ledger to match Blazar, in one transaction. */

import { MAX_AMOUNT, smaller } from '../../filter/claim.ts';
import { formatInstant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import {
  type Alternative,
  added,
  alternativesOf,
  changesOf,
  chargedBy,
  continuedClaims,
  movedClaims,
  spentBefore,
  sums,
} from '../accounting/alternatives.ts';
import { TOO_MUCH } from '../accounting/charge-calculation.ts';
import { demandOf, recordedResources } from '../accounting/demand.ts';
import { charge, formatClaims, notBefore, type RecordedClaim } from '../accounting/recorded-claim.ts';
import { budgetOf } from '../budgets/rows.ts';
import { accountName } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import type { Claimant } from '../ledger-request.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { balancesOf, post } from '../transactions/journal.ts';
import { record } from '../transactions/lease-transactions.ts';
import { revisionStep } from '../transactions/statements.ts';
import type { Moment, Transaction } from '../transactions/transaction.ts';
import {
  authorOf,
  CHANGED,
  exact,
  isObserved,
  left,
  NOT_ENDED,
  type Reconciled,
  type Result,
  requestFor,
  resultOf,
  type Terms,
  throwing,
  untouched,
} from './change-lease.ts';
import {
  ASKED,
  digestOf,
  isOverdue,
  isShown,
  type ListedLease,
  type OverdueLease,
  type ShownLease,
} from './leases.ts';
import { fitting } from './pairing.ts';

interface Correction {
  readonly ledger: Ledger;
  readonly transaction: Transaction;
  readonly row: LeaseRow;
  readonly moment: Moment;
  readonly terms: Terms;
}

export function* correctLease(
  ledger: Ledger,
  transaction: Transaction,
  before: LeaseRow,
  lease: ListedLease,
  terms: Terms,
): Work<Result | Undone<Result>> {
  const moment = yield* transaction.lock(before.project_id);
  const row = yield* untouched(ledger, before, isOverdue(lease));
  if (row === undefined) {
    return new Undone(left(before, CHANGED));
  }
  const correction = { ledger, transaction, row, moment, terms };
  if (isOverdue(lease)) {
    return yield* asOverdue(correction, lease);
  }
  return isObserved(lease) ? yield* asObserved(correction, lease) : yield* asListed(correction, lease);
}

/** A list has dates, and perhaps reservations: past use stays charged. */
function* asListed(
  { ledger: { statements }, transaction, row: found, terms }: Correction,
  lease: ListedLease,
): Work<Reconciled | Undone<Reconciled>> {
  const row = yield* named(statements, found, lease.id);
  const done = { ...left(row, null), start: lease.start, end: lease.end };
  if (found.state === 'open' && !differs(found, lease, terms.claimants)) {
    return { ...done, outcome: 'identified' };
  }
  const { reservations } = lease;
  const isTold = reservations !== undefined && terms.claimants.length > 0;
  const alternatives = alternativesOf(row);
  const known = mostExpensiveOf(alternatives, lease);
  if (!isTold && known === undefined) {
    return new Undone(
      left(found, 'an update was asked for, and the list does not say what the lease reserves'),
    );
  }
  const current = currentOf(row, alternatives);
  const userId = lease.userId ?? row.user_id;
  const whole = { ...lease, projectId: row.project_id, userId, reservations: reservations ?? [] };
  // If no filter can compute the claims, they stay as before.
  const claimants = isTold || known === undefined ? terms.claimants : [movedClaims(known)];
  const request = requestFor(identityOf(row, whole), whole, current, claimants);
  const demand = reservations === undefined ? (known?.demand ?? row.demand) : undefined;
  yield* record(statements, { ...request, demand }, transaction, authorOf(terms, null), true);
  const note = hasOtherDates(found, lease)
    ? `it was ${formatInstant(row.starts_at)} to ${formatInstant(row.ends_at)}`
    : found.state === 'ended'
      ? 'it had ended'
      : found.alternatives === null
        ? 'it reserves something else'
        : 'it was not known which of its changes had been made';
  return { ...done, outcome: 'corrected', note };
}

/**
 * It is charged as it was last, since Blazar does not show its hosts any more: from the time until which it is charged
 * already.
 */
function* asOverdue(
  { ledger: { statements }, transaction, row, terms }: Correction,
  lease: OverdueLease,
): Work<Reconciled> {
  // Another lease with its id, which was asked for meanwhile, begins later.
  const own = alternativesOf(row).filter(({ start }) => start <= lease.start);
  const known = mostExpensiveOf(own, lease);
  const { ended_at, ends_at, touched_at } = row;
  const until = [ended_at ?? ends_at, ends_at, known?.end ?? touched_at].reduce(smaller);
  const whole = { ...lease, start: known?.start ?? lease.start };
  const claimants = known === undefined ? terms.claimants : [continuedClaims(known)];
  const request = requestFor(identityOf(row, whole), whole, { ...whole, end: until }, claimants);
  const author = authorOf(terms, NOT_ENDED);
  yield* record(statements, { ...request, demand: known?.demand, shown: ASKED }, transaction, author, true);
  return { ...left(row, NOT_ENDED), start: whole.start, end: whole.end, outcome: 'corrected' };
}

/** Whether the ledger has other dates or reservations than the list, or several alternatives. */
export function differs(row: LeaseRow, lease: ListedLease, claimants: readonly Claimant[]): boolean {
  const hasOtherCounts = claimants.length > 0 && !fitting(lease)(alternativesOf(row));
  return row.alternatives !== null || hasOtherDates(row, lease) || hasOtherCounts;
}

function hasOtherDates(row: LeaseRow, { start, end }: ListedLease): boolean {
  return row.starts_at !== start || row.ends_at !== end;
}

/** Of the alternatives with these dates, the one that takes the most of every account, if there is one. */
function mostExpensiveOf(
  alternatives: readonly Alternative[],
  { start, end }: ListedLease,
): Alternative | undefined {
  const fitting = alternatives.filter((one) => one.start === start && one.end === end);
  const possible = fitting.length > 0 ? fitting : alternatives;
  const total = chargedBy(possible);
  return possible.find((one) => !isCheaper(chargedBy([one]), total));
}

/**
 * Since the last request for the row, only that request has changed the lease. So the lease has been as shown
 * since then, and is charged for exactly that. Use before it stays charged. `undefined` = nothing changed.
 */
function* asObserved(correction: Correction, shown: ShownLease): Work<Result> {
  const { ledger, row, moment, terms } = correction;
  const { statements } = ledger;
  const { now, latest } = moment;
  const recorded = alternativesOf(row);
  const owner = { project_id: row.project_id, user_id: shown.userId };
  const budgets = (yield* rows(statements.budgets([owner]))).map(budgetOf);
  const from = runSince(recorded);
  const claims = claimsOf(shown, terms, { now, budgets }).map((claim) =>
    from === undefined ? claim : notBefore(claim, from),
  );
  // Use by an earlier lease with the same id stays charged, and is not a claim of this lease.
  const charged = added([sums(claims, charge), spentBefore(recorded, shown.start)]);
  const before = chargedBy(recorded);
  if (row.state === 'ended' || isShown(row) || (shown.hasChangedResources && isCheaper(charged, before))) {
    return yield* unrequested(correction, shown);
  }
  const deltas = changesOf(charged, before);
  const note = differenceOf(row, shown, deltas.size > 0);
  const balances = yield* balancesOf(statements, row.project_id, new Set(deltas.keys()));
  for (const [account, delta] of deltas) {
    const balance = (balances.get(account) ?? 0n) + delta;
    if (delta > 0n && ((charged.get(account) ?? 0n) > MAX_AMOUNT || balance > MAX_AMOUNT)) {
      throw new RangeError(TOO_MUCH);
    }
  }
  const facts = {
    lease_id: shown.id,
    user_id: shown.userId,
    name: shown.name,
    starts_at: shown.start,
    ends_at: shown.end,
    demand: demandOf(shown.reservations),
    claims: formatClaims(claims),
    alternatives: null,
    shown: digestOf(shown),
    resources: recordedResources(shown.given, row.resources),
  };
  yield* rows(statements.setLease({ ...row, ...facts, step: revisionStep() }));
  yield* post(
    statements,
    { project_id: row.project_id, at: latest, balances, author: authorOf(terms, note) },
    [{ lease: row.id, operation: 'reconcile', deltas }],
  );
  const done = left({ ...row, ...facts }, note);
  if (note !== null) {
    return { ...done, outcome: 'corrected' };
  }
  return row.lease_id === null ? { ...done, outcome: 'identified' } : undefined;
}

/** A change that the ledger was not called for: its time is unknown, so past use stays charged. */
function* unrequested(
  { ledger, transaction, row: found, terms }: Correction,
  shown: ShownLease,
): Work<Result> {
  const row = yield* named(ledger.statements, found, shown.id);
  const current = currentOf(row, alternativesOf(row));
  const request = requestFor(identityOf(row, shown), shown, current, terms.claimants);
  const note = row.state === 'ended' ? 'it had ended, and is there' : 'Blazar has changed it without asking';
  yield* resultOf(record(ledger.statements, request, transaction, authorOf(terms, note), true));
  return { ...left(row, note), leaseId: shown.id, start: shown.start, end: shown.end, outcome: 'corrected' };
}

/** Adds the id to a row without one, so that recording the lease finds the row. */
function* named(statements: Ledger['statements'], row: LeaseRow, leaseId: string): Work<LeaseRow> {
  const withId = { ...row, lease_id: leaseId };
  if (row.lease_id === null) {
    yield* rows(statements.setLease({ ...withId, step: revisionStep() }));
  }
  return withId;
}

function identityOf(
  { region, project_id: projectId }: LeaseRow,
  { id, userId }: { id: string; userId: string },
) {
  return { leaseId: id, region, projectId, userId };
}

function currentOf({ ends_at: end }: LeaseRow, alternatives: readonly Alternative[]) {
  return { start: alternatives.map(({ start }) => start).reduce(smaller), end };
}

/**
 * The second up to which the lease had run at its last request. Its claims begin there, since earlier use
 * stays charged. `undefined` = it had not started.
 */
function runSince(recorded: readonly Alternative[]): bigint | undefined {
  let since: bigint | undefined;
  for (const { start, claims } of recorded) {
    const first = beginOf(claims);
    if (first !== undefined && first > start / MICROSECONDS_PER_SECOND) {
      since = since === undefined || first < since ? first : since;
    }
  }
  return since;
}

/**
 * The start of a lease's claims. A claim on a budget that had ended by then is empty, and starts at the end
 * of that budget.
 */
function beginOf(claims: readonly RecordedClaim[]): bigint | undefined {
  const usage = claims.filter((claim) => claim.kind === 'usage');
  const rest = usage.filter(({ from, until }) => from < until);
  return rest.length > 0
    ? rest.map(({ from }) => from).reduce(smaller)
    : usage
        .map(({ from }) => from)
        .reduce<bigint | undefined>((a, b) => (a !== undefined && a > b ? a : b), undefined);
}

function claimsOf(
  shown: ShownLease,
  { claimants, region }: Terms,
  state: Parameters<Claimant['claims']>[1],
): RecordedClaim[] {
  const { projectId: project_id, userId: user_id, start, end, given: reservations } = shown;
  const context = { project_id, user_id, region_name: region };
  const proposal = { context, start, end, reservations, allocationsAreExact: true };
  return claimants.flatMap((claimant) => {
    const claims = throwing(exact(claimant)).claims(proposal, state);
    if ('allowed' in claims) {
      return [];
    }
    return claims.map((claim): RecordedClaim => {
      const account = accountName(claim.account);
      return claim.kind === 'held'
        ? { kind: 'held', account, amount: claim.amount }
        : { kind: 'usage', account, perSecond: claim.perSecond, from: claim.from, until: claim.until };
    });
  });
}

function isCheaper(one: ReadonlyMap<string, bigint>, other: ReadonlyMap<string, bigint>): boolean {
  return [...other].some(([account, amount]) => (one.get(account) ?? 0n) < amount);
}

/** The difference from the record; `null` = only the id, or none. */
function differenceOf(row: LeaseRow, shown: ShownLease, costsOtherwise: boolean): string | null {
  if (row.alternatives !== null) {
    return 'Blazar shows which of its changes were made';
  }
  if (hasOtherDates(row, shown)) {
    return `it was ${formatInstant(row.starts_at)} to ${formatInstant(row.ends_at)}`;
  }
  return costsOtherwise ? 'Blazar shows what it was given' : null;
}
