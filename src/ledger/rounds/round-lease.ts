/** What a round does about one lease, in a transaction of its own. A row that was touched since the round began stays as it is. */
import { MAX_AMOUNT } from '../../filter/amount.ts';
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { type Alternative, added, alternativesOf, chargedBy, spentBefore, sums } from '../alternatives.ts';
import { budgetOf } from '../budgets/rows.ts';
import type { Claimant } from '../claimant.ts';
import { rows, Undone, type Work } from '../database/database.ts';
import type { LeaseRow } from '../database/schema.ts';
import { demandOf } from '../demand.ts';
import { accountName } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import { type Author, balancesOf, post } from '../posting.ts';
import { TOO_MUCH } from '../reckoning.ts';
import { charge, formatClaims, notBefore, type RecordedClaim } from '../recorded-claim.ts';
import { recordedResources } from '../resources.ts';
import { revisionStep } from '../statements.ts';
import { record, release } from '../transactions.ts';
import type { Turn } from '../turn.ts';
import { left, type Reconciled, requestOf, resultOf, throwing, unrecorded } from './reconcile-lease.ts';
import { ABSENT, digestOf, isShown, type ShownLease } from './shown-lease.ts';

/** What the transactions of a round have in common. */
export interface RoundTerms {
  readonly region: string;
  readonly claimants: readonly Claimant[];
  readonly who: string;
  /** Precedes the reason of each entry; `null` = nothing does. */
  readonly reason: string | null;
}

type Result = Reconciled | undefined;

const CHANGED = 'it was asked for meanwhile';

/**
 * Makes a row what Blazar shows. Since the row was last asked for, nothing but that request has changed the lease: so it has been as it
 * is shown since then, and is charged for exactly that. What was used before stays charged as it was. `undefined` = nothing changed.
 */
export function* settle(
  ledger: Ledger,
  turn: Turn,
  before: LeaseRow,
  shown: ShownLease,
  terms: RoundTerms,
): Work<Result | Undone<Result>> {
  const { statements } = ledger;
  const { now, latest } = yield* turn.lock(before.project_id);
  const row = yield* untouched(ledger, before);
  if (row === undefined) {
    return new Undone(left(before, CHANGED));
  }
  const recorded = alternativesOf(row);
  const query = { project_id: row.project_id, user_id: shown.userId };
  const budgets = (yield* rows(statements.budgets(query))).map(budgetOf);
  const from = runSince(recorded);
  const claims = claimsOf(shown, terms, { now, budgets }).map((claim) =>
    from === undefined ? claim : notBefore(claim, from),
  );
  // What an earlier lease with its id has used stays charged for good, and is no claim of this one.
  const charged = added([sums(claims, charge), spentBefore(recorded, shown.start)]);
  const before_ = chargedBy(recorded);
  if (row.state === 'ended' || isShown(row) || (shown.isHealed && isCheaper(charged, before_))) {
    return yield* unheard(ledger, turn, row, shown, terms);
  }
  const deltas = new Map<string, bigint>();
  for (const account of new Set([...charged.keys(), ...before_.keys()])) {
    const delta = (charged.get(account) ?? 0n) - (before_.get(account) ?? 0n);
    if (delta !== 0n) {
      deltas.set(account, delta);
    }
  }
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
  const done = { ...left({ ...row, ...facts }, note), start: shown.start, end: shown.end };
  if (note !== null) {
    return { ...done, outcome: 'corrected' };
  }
  return row.lease_id === null ? { ...done, outcome: 'identified' } : undefined;
}

/** A change of which the ledger has not heard: nobody knows when it was made, so what was used until now stays charged. */
function* unheard(
  ledger: Ledger,
  turn: Turn,
  row: LeaseRow,
  shown: ShownLease,
  terms: RoundTerms,
): Work<Result> {
  const starts = alternativesOf(row).map(({ start }) => start);
  const identity = {
    leaseId: shown.id,
    region: row.region,
    projectId: row.project_id,
    userId: shown.userId,
  };
  const request = requestOf(identity, {
    lease: { ...shown, reservations: shown.given },
    current: { start: starts.reduce(earlier), end: row.ends_at },
    claimants: terms.claimants.map(exact),
  });
  const note = row.state === 'ended' ? 'it had ended, and is there' : 'Blazar has changed it without asking';
  yield* resultOf(
    record(
      ledger.statements,
      { ...request, demand: demandOf(shown.reservations), shown: digestOf(shown) },
      turn,
      authorOf(terms, note),
      true,
    ),
  );
  return { ...left(row, note), leaseId: shown.id, start: shown.start, end: shown.end, outcome: 'corrected' };
}

/** Ends a lease that Blazar does not have. `looksOften`: one that was not in the list before either has used nothing. */
export function* releaseAbsent(
  ledger: Ledger,
  turn: Turn,
  before: LeaseRow,
  terms: RoundTerms,
  looksOften: boolean,
): Work<Result | Undone<Result>> {
  const moment = yield* turn.lock(before.project_id);
  const row = yield* untouched(ledger, before);
  if (row === undefined || row.state === 'ended') {
    return new Undone(left(before, CHANGED));
  }
  const isUnused = looksOften && row.shown === ABSENT;
  const note = isUnused ? 'Blazar has not built it' : 'Blazar does not have it any more';
  const author = authorOf(terms, note);
  yield* release(ledger.statements, row, { moment, author, leaseId: null, isUnused });
  return { ...left(row, note), outcome: 'released' };
}

/**
 * Records a lease of which the ledger has never heard: the time that has passed is not charged. `known`: the revisions of the rows that were
 * open at `readAt`.
 */
export function* recordUnseen(
  ledger: Ledger,
  turn: Turn,
  shown: ShownLease,
  terms: RoundTerms,
  known: ReadonlyMap<bigint, bigint>,
  readAt: Instant,
): Work<Result | Undone<Result>> {
  const { statements } = ledger;
  const { projectId: project_id, userId, id, start, end } = shown;
  const { region } = terms;
  yield* turn.lock(project_id);
  const found = yield* rows(statements.leaseById({ region, project_id, lease_id: id }));
  const alike = yield* rows(
    statements.namelessLeases({ region, project_id, user_id: userId, starts_at: start }),
  );
  // A row that is new since the round began may be this lease; one that was past its end is not.
  const isNew = ({ id, revision, ends_at }: LeaseRow) => ends_at > readAt && known.get(id) !== revision;
  if (found.length > 0 || alike.some(isNew)) {
    return new Undone(unrecorded(shown, CHANGED));
  }
  const identity = { leaseId: id, region, projectId: project_id, userId };
  const request = requestOf(identity, {
    lease: { ...shown, reservations: shown.given },
    current: { start, end },
    claimants: terms.claimants.map(exact),
  });
  const note = 'Blazar has it, and the ledger had not';
  const recording = yield* resultOf(
    record(
      statements,
      { ...request, demand: demandOf(shown.reservations), shown: digestOf(shown) },
      turn,
      authorOf(terms, note),
      true,
    ),
  );
  return { ...unrecorded(shown, note), row: recording.lease, outcome: 'recorded' };
}

/** Notes what a complete list showed of rows of one project, where that changes no charge. */
export function* note(
  ledger: Ledger,
  turn: Turn,
  projectId: string,
  marks: readonly { readonly row: LeaseRow; readonly shown: string }[],
): Work<void> {
  yield* turn.lock(projectId);
  for (const { row, shown } of marks) {
    const query = ledger.database.queries
      .updateTable('leases')
      .set({ shown })
      .where('id', '=', row.id)
      .where('revision', '=', row.revision)
      .where('state', '=', 'open');
    yield* rows(query.compile());
  }
}

/** The row, unless it was recorded, ended or reopened since it was read. */
function* untouched({ statements }: Ledger, before: LeaseRow): Work<LeaseRow | undefined> {
  const [row] = yield* rows(statements.leaseByRow({ id: before.id }));
  const isSame = row?.revision === before.revision && row.state === before.state;
  return isSame ? row : undefined;
}

/**
 * Up to when the lease had run when it was last asked for, in seconds: its claims begin there, since what was used before is charged for
 * good. `undefined` = it had not begun.
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

/** When the claims of a lease begin. One on a budget that had ended by then is empty, and begins where the budget ended. */
function beginOf(claims: readonly RecordedClaim[]): bigint | undefined {
  const usage = claims.filter((claim) => claim.kind === 'usage');
  const rest = usage.filter(({ from, until }) => from < until);
  return rest.length > 0
    ? rest.map(({ from }) => from).reduce(earlier)
    : usage
        .map(({ from }) => from)
        .reduce<bigint | undefined>((a, b) => (a !== undefined && a > b ? a : b), undefined);
}

function claimsOf(
  shown: ShownLease,
  { claimants, region }: RoundTerms,
  standing: Parameters<Claimant['claims']>[1],
): RecordedClaim[] {
  const { projectId: project_id, userId: user_id, start, end, given: reservations } = shown;
  const context = { project_id, user_id, region_name: region };
  const proposal = { context, start, end, reservations, allocationsAreExact: true };
  return claimants.flatMap((claimant) => {
    const claims = throwing(exact(claimant)).claims(proposal, standing);
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

/** Asks a filter about the allocations that each reservation really has. */
function exact(claimant: Claimant): Claimant {
  return {
    ...claimant,
    claims: (proposal, standing) =>
      claimant.claims({ ...proposal, allocationsAreByReservation: true }, standing),
  };
}

function isCheaper(one: ReadonlyMap<string, bigint>, other: ReadonlyMap<string, bigint>): boolean {
  return [...other].some(([account, amount]) => (one.get(account) ?? 0n) < amount);
}

/** What was not as recorded; `null` = nothing but the id. */
function differenceOf(row: LeaseRow, shown: ShownLease, costsOtherwise: boolean): string | null {
  if (row.alternatives !== null) {
    return 'Blazar shows which of its changes were made';
  }
  if (row.starts_at !== shown.start || row.ends_at !== shown.end) {
    return `it was ${formatInstant(row.starts_at)} to ${formatInstant(row.ends_at)}`;
  }
  return costsOtherwise ? 'Blazar shows what it was given' : null;
}

function authorOf({ who, reason }: RoundTerms, note: string | null): Author {
  const why = [reason, note].filter((part) => part !== null).join(': ');
  return { operation: 'reconcile', who, requestId: null, reason: why || null };
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
