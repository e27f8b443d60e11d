/**
 * The result of recording a lease: reads everything needed, and computes. A check ends here; a commit
 * continues and writes.
 */

import {
  type Amount,
  type Budget,
  budgetAccount,
  type Claim,
  type OtherLeases,
  type ProjectState,
  type Proposal,
} from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import {
  added,
  alternativesOf,
  chargedBy,
  heldBy,
  movedClaims,
  refundOf,
} from '../accounting/alternatives.ts';
import {
  type ChargeCalculation,
  type Claimed,
  calculateChargeWithin,
  type FilterClaims,
} from '../accounting/charge-calculation.ts';
import { demandOf } from '../accounting/demand.ts';
import { budgetOf } from '../budgets/rows.ts';
import { accountName, type LeaseIdentity } from '../identity.ts';
import type { Claimant, LedgerRequest } from '../ledger-request.ts';
import { isShown } from '../reconciliation/leases.ts';
import { announcing, rows, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { type FirstReads, findByShape, firstReads, listOf, repeatedAmong } from './find-lease.ts';
import { balancesOf } from './journal.ts';
import type { Statements } from './statements.ts';

export interface LeasePreview {
  readonly row: LeaseRow | undefined;
  /** The same request was recorded before. */
  readonly isRepeated: boolean;
  readonly overdue: readonly { id: bigint; returned: ReadonlyMap<string, Amount> }[];
  readonly balances: ReadonlyMap<string, Amount>;
  /** The claims of all filters for the lease as requested. */
  readonly wanted: Claimed;
  /** Budgets of the project, and of the user in it. */
  readonly budgets: readonly Budget[];
  readonly calculation: ChargeCalculation;
  /** The claims of the filters, if `wanted` has the recorded claims moved to other dates. */
  readonly asked: readonly FilterClaims[];
  /** Only for a change. */
  readonly changed: ChangedLease | undefined;
}

interface ChangedLease {
  /** As in `ChargeInput`. */
  readonly begun: bigint | undefined;
  /** Computes the claims of the filters for the current lease. */
  current(): readonly FilterClaims[];
}

/**
 * The results that filters would return now. No writes, no locks. `latest`: as in `Moment`; if it differs
 * from `now`, the lease is charged the larger of both results. `sent`: queries that were already sent.
 */
export function* previewLease(
  statements: Statements,
  request: LedgerRequest,
  now: bigint,
  latest = now,
  sent?: FirstReads,
): Work<LeasePreview> {
  const { identity, proposal, current, halfway, isCertain, claimants } = request;
  const isSent = sent !== undefined && now <= sent.until;
  const reads = isSent ? sent : firstReads(statements, request, now);
  const ended = yield* rows(announcing(reads.overdue, isSent ? [] : listOf(reads).slice(1)));
  const overdueRows = ended.filter(({ ends_at }) => ends_at <= now);
  const budgets = (yield* rows(reads.budgets)).map(budgetOf);
  const { row, isRepeated } = yield* findLease(statements, request, reads, now);

  const others = claimants.some(({ readsProject }) => readsProject)
    ? yield* otherLeases(statements, request, { row, overdueRows, budgets, now })
    : undefined;
  const state = { now, budgets, others };
  const claimed = (of: Proposal) => formOf(of, claimedBy(claimants, of, state));
  const known = knownAs(row, request);
  const asClaimed = (of: Proposal) => formOf(of, claimedBy(known, of, { now, budgets }));
  const asked = claimedBy(claimants, proposal, state);
  // Blazar keeps the allocations: the lease keeps its claims, at other times.
  const keeps =
    known.length > 0 && halfway === undefined && asked.every(({ refusal }) => refusal === undefined);
  const first = formOf(proposal, keeps ? asClaimed(proposal).byFilter : asked, request.demand);
  const halves = halfway === undefined || isCertain ? [] : [claimed(halfway)];
  const currentClaims =
    current === undefined || isCertain ? undefined : known.length > 0 ? asClaimed(current) : claimed(current);
  const overdue = overdueRows.map((one) => ({ id: one.id, returned: heldBy(alternativesOf(one)) }));

  const recorded = row?.state === 'open' ? alternativesOf(row) : [];
  const forms = [first, ...halves, ...(currentClaims === undefined ? [] : [currentClaims])];
  const accounts = new Set([
    ...[...recorded, ...forms.flatMap(({ byFilter }) => byFilter)].flatMap(({ claims }) =>
      claims.map(({ account }) => account),
    ),
    ...overdue.flatMap(({ returned }) => [...returned.keys()]),
  ]);
  if (sent !== undefined) {
    // Only a commit has the claims of all filters, and expected accounts.
    statements.expected.learn(identity, accounts);
  }
  const balances = yield* readBalances(statements, identity, accounts, reads);
  const input = {
    now: now / MICROSECONDS_PER_SECOND,
    begun: begunOf(current, now),
    wanted: [first, ...halves] as const,
    current: currentClaims,
    recorded,
    staysOpen: current === undefined,
    // An observation is complete.
    countsAreSeen: request.shown !== undefined || showsCounts(isCertain ? proposal : (current ?? proposal)),
    // An ended lease has no claims to set off against the change.
    isOver:
      current === undefined ||
      current.end <= now ||
      row?.state === 'ended' ||
      // It may be an ended and folded lease.
      (row === undefined && current.start < (yield* foldedUntil(statements, identity))),
    shownStart: isKnownById(row, identity) ? (isCertain ? proposal : current)?.start : undefined,
    isUpdate: current !== undefined,
    returned: added(overdue.map(({ returned }) => returned)),
    balances,
  };
  const late =
    latest === now
      ? undefined
      : { ...input, now: latest / MICROSECONDS_PER_SECOND, begun: begunOf(current, latest) };
  const calculation = calculateChargeWithin(input, late);
  const changed =
    current === undefined
      ? undefined
      : { begun: input.begun, current: () => claimedBy(claimants, current, state) };
  return { row, isRepeated, overdue, balances, wanted: first, budgets, calculation, asked, changed };
}

/**
 * The claims of the current lease of an update, if Blazar's list has shown it since the last request: a
 * request does not contain the number of hosts of each of several reservations. Empty = use the request.
 */
function knownAs(
  row: LeaseRow | undefined,
  { current, isCertain, identity }: LedgerRequest,
): readonly Claimant[] {
  if (row?.state !== 'open' || current === undefined || isCertain || !isKnownById(row, identity)) {
    return [];
  }
  const [recorded, ...others] = isShown(row) ? alternativesOf(row) : [];
  const { start, end, demand } = shapeOf(current);
  const isSame =
    recorded !== undefined &&
    others.length === 0 &&
    recorded.start === start &&
    recorded.end === end &&
    recorded.demand === demand;
  return isSame ? [movedClaims(recorded)] : [];
}

/** From the expected accounts, if they are sufficient. */
function* readBalances(
  statements: Statements,
  identity: LeaseIdentity,
  accounts: ReadonlySet<string>,
  { accounts: expected, balances }: FirstReads,
): Work<Map<string, Amount>> {
  const isExpected = balances !== undefined && [...accounts].every((name) => expected.includes(name));
  return isExpected
    ? new Map((yield* rows(balances)).map(({ name, balance }) => [name, balance]))
    : yield* balancesOf(statements, identity.projectId, accounts);
}

/**
 * The row of the request. A lease past its end date counts as ended, even if its end is not processed yet.
 */
function* findLease(
  statements: Statements,
  { identity, proposal, current, adopts, repetition }: LedgerRequest,
  { byKey, byId }: FirstReads,
  now: bigint,
): Work<{ row: LeaseRow | undefined; isRepeated: boolean }> {
  if (repetition !== undefined && byKey !== undefined) {
    const repeated = repeatedAmong(yield* rows(byKey), repetition, now);
    if (repeated !== undefined) {
      return { row: repeated, isRepeated: true };
    }
  }
  let [row] = byId === undefined ? [] : yield* rows(byId);
  if (row === undefined && (current !== undefined || (adopts && identity.leaseId !== null))) {
    row = yield* findByShape(statements, identity, shapeOf(current ?? proposal), { now, isOver: false });
  }
  if (row !== undefined && row.ends_at <= now) {
    row = { ...row, state: 'ended', ended_at: row.ended_at ?? row.ends_at };
  }
  return { row, isRepeated: false };
}

/** The end of the time in which leases of the project may be folded; 0 = none folded. */
function* foldedUntil(statements: Statements, { projectId, region }: LeaseIdentity): Work<bigint> {
  const [fold] = yield* rows(statements.latestFold({ project_id: projectId, region }));
  return fold?.until ?? 0n;
}

/**
 * Whether a request shows the real counts of a lease. Blazar lists the hosts of a reservation that is the
 * only one of its type. For instances and addresses it reports the amount, which it writes before removing
 * some, or after adding some.
 */
function showsCounts({ reservations }: Proposal): boolean {
  return reservations.length === 1 && reservations[0]?.resource_type === 'physical:host';
}

/**
 * The second up to which the lease has run. For an expired lease its end: the time since then is not free.
 */
export function begunOf(current: Proposal | undefined, now: bigint): bigint | undefined {
  if (current === undefined || current.start >= now) {
    return undefined;
  }
  return (current.end < now ? current.end : now) / MICROSECONDS_PER_SECOND;
}

/** Found by its shape, the row may belong to another lease, which has run. */
function isKnownById(row: LeaseRow | undefined, { leaseId }: LeaseIdentity): boolean {
  return leaseId !== null && row?.lease_id === leaseId;
}

function shapeOf({ start, end, reservations }: Proposal) {
  return { start, end, demand: demandOf(reservations) };
}

function formOf(
  { start, end, reservations }: Proposal,
  byFilter: readonly FilterClaims[],
  demand = demandOf(reservations),
): Claimed {
  return { start, end, demand, byFilter };
}

function claimedBy(
  claimants: readonly Claimant[],
  proposal: Proposal,
  state: ProjectState,
): readonly FilterClaims[] {
  return claimants.map((claimant): FilterClaims => {
    const { name: filter, audit } = claimant;
    const claims = claimant.claims(proposal, state);
    return 'allowed' in claims
      ? { filter, audit, claims: [], refusal: claims.message }
      : { filter, audit, claims: claims.map(kept), refusal: undefined };
  });
}

/** Filters may build account names from user input. */
function kept(claim: Claim): Claim {
  const account = accountName(claim.account);
  return account === claim.account ? claim : { ...claim, account };
}

interface Read {
  /** The lease itself; `undefined` = new. */
  readonly row: LeaseRow | undefined;
  readonly overdueRows: readonly Parameters<typeof alternativesOf>[0][];
  readonly budgets: readonly Budget[];
  readonly now: bigint;
}

/** A commit calls this with the project locked: nothing changes before the lease is recorded. */
function* otherLeases(
  statements: Statements,
  { identity: { projectId: project_id }, current }: LedgerRequest,
  { row, overdueRows, budgets, now }: Read,
): Work<OtherLeases> {
  const [counted] = yield* rows(statements.openLeases({ project_id, now }));
  const isCounted = row?.state === 'open' && row.ends_at > now;
  const count = BigInt(counted?.count ?? 0) - (isCounted ? 1n : 0n);
  const own = row?.state === 'open' ? alternativesOf(row) : [];
  const givenBack = added([
    current !== undefined ? refundOf(own, now / MICROSECONDS_PER_SECOND) : chargedBy(own),
    ...overdueRows.map((one) => heldBy(alternativesOf(one))),
  ]);
  const balances = yield* balancesOf(statements, project_id, new Set(budgets.map(budgetAccount)));
  const takenOf = (budget: Budget): Amount => {
    const account = budgetAccount(budget);
    return (balances.get(account) ?? 0n) - (givenBack.get(account) ?? 0n);
  };
  return { count, takenOf };
}
