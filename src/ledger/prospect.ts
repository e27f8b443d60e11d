/** What recording a lease would do: reads all that is needed, and computes the result. A check ends here; a commit goes on and writes. */

import type { Amount } from '../filter/amount.ts';
import type { Budget } from '../filter/budget.ts';
import type { Repetition } from '../filter/call.ts';
import type { Claim, Proposal, Standing } from '../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../lease/dates.ts';
import { added, alternativesOf, heldBy } from './alternatives.ts';
import { budgetOf } from './budget-rows.ts';
import type { Claimant } from './claimant.ts';
import { rows, type Work } from './database.ts';
import { demandOf } from './demand.ts';
import { findById, findByShape, findRepeated } from './find-lease.ts';
import { accountName, type LeaseIdentity } from './identity.ts';
import { movedClaims } from './moved-claims.ts';
import { balancesOf } from './posting.ts';
import { type Claimed, type FilterClaims, type Reckoning, reckonWithin } from './reckoning.ts';
import type { LeaseRow } from './schema.ts';
import { isShown } from './shown-lease.ts';
import type { Statements } from './statements.ts';

/** A lease as it is requested, and as it is. */
export interface LedgerRequest {
  readonly identity: LeaseIdentity;
  /** The requested name. */
  readonly name: string;
  /** As requested. */
  readonly proposal: Proposal;
  /** For an update: the lease as it is. */
  readonly current: Proposal | undefined;
  /** For an update: what the lease may be if Blazar fails half way through. */
  readonly halfway: Proposal | undefined;
  /** Whether the lease is known to be as requested, because Blazar listed it. */
  readonly isCertain: boolean;
  /** What Blazar shows of the lease, from `digestOf`; `undefined` = the request is not from Blazar's list. */
  readonly shown?: string | undefined;
  /** From `demandOf`, when the reservations are unknown; `undefined` = computed from them. */
  readonly demand?: string | undefined;
  /** For a new lease with an id: whether it may have been recorded before, without the id. */
  readonly adopts: boolean;
  /** For a new lease: identifies a request that is sent again; `undefined` = it is not. */
  readonly repetition: Repetition | undefined;
  readonly claimants: readonly Claimant[];
}

/** The result of `foresee`. */
export interface Prospect {
  readonly row: LeaseRow | undefined;
  /** The request was sent before, and is recorded. */
  readonly isRepeated: boolean;
  readonly overdue: readonly { id: bigint; returned: ReadonlyMap<string, Amount> }[];
  readonly balances: ReadonlyMap<string, Amount>;
  /** The claims of all filters for the lease as it is requested. */
  readonly wanted: Claimed;
  /** Of the project, and of the user in it. */
  readonly budgets: readonly Budget[];
  readonly reckoning: Reckoning;
}

/**
 * What the filters would answer now. Writes nothing and locks nothing. `latest`: as in `Moment`; when it differs from `now`, the lease
 * is charged the larger of both results.
 */
export function* foresee(
  statements: Statements,
  request: LedgerRequest,
  now: bigint,
  latest = now,
): Work<Prospect> {
  const { identity, proposal, current, halfway, isCertain, claimants } = request;
  const { projectId: project_id, userId: user_id } = identity;
  const overdueRows = yield* rows(statements.overdueLeases({ project_id, now }));
  const budgets = (yield* rows(statements.budgets({ project_id, user_id }))).map(budgetOf);
  const { row, isRepeated } = yield* findLease(statements, request, now);

  const claimed = (of: Proposal) => claimedBy(claimants, of, { now, budgets });
  const known = knownAs(row, request);
  const asClaimed = (of: Proposal) => claimedBy(known, of, { now, budgets });
  const asked = claimed(proposal);
  // Blazar keeps the allocations: the lease goes on to take what it takes, at other times.
  const keeps = known.length > 0 && halfway === undefined && isAgreed(asked);
  const first = {
    ...asked,
    ...(keeps && { byFilter: asClaimed(proposal).byFilter }),
    demand: request.demand ?? asked.demand,
  };
  const others = halfway === undefined || isCertain ? [] : [claimed(halfway)];
  const standing =
    current === undefined || isCertain ? undefined : known.length > 0 ? asClaimed(current) : claimed(current);
  const overdue = overdueRows.map((one) => ({ id: one.id, returned: heldBy(alternativesOf(one)) }));

  const recorded = row?.state === 'open' ? alternativesOf(row) : [];
  const accounts = new Set(
    [
      ...recorded.flatMap(({ claims }) => claims),
      ...[first, ...others, ...(standing === undefined ? [] : [standing])].flatMap(({ byFilter }) =>
        byFilter.flatMap(({ claims }) => claims),
      ),
    ].map(({ account }) => account),
  );
  for (const { returned } of overdue) {
    for (const account of returned.keys()) {
      accounts.add(account);
    }
  }
  const balances = yield* balancesOf(statements, project_id, accounts);
  const reckoned = {
    wanted: [first, ...others] as const,
    current: standing,
    recorded,
    staysOpen: current === undefined,
    countsAreSeen: showsCounts(isCertain ? proposal : (current ?? proposal)),
    // A lease that is over has nothing that could be set off against the change.
    isOver: current === undefined || current.end <= now || row?.state === 'ended',
    shownStart: isKnownById(row, identity) ? (isCertain ? proposal : current)?.start : undefined,
    isUpdate: current !== undefined,
    returned: added(overdue.map(({ returned }) => returned)),
    balances,
  };
  const at = (time: bigint) => ({
    ...reckoned,
    now: time / MICROSECONDS_PER_SECOND,
    begun: begunOf(current, time),
  });
  const reckoning = reckonWithin(at(now), latest === now ? undefined : at(latest));
  return { row, isRepeated, overdue, balances, wanted: first, budgets, reckoning };
}

/**
 * What the lease of an update takes as it is, where Blazar's list has shown it since the last request: a request does not say how many
 * hosts each of several reservations has. Empty = the request must tell.
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

function isAgreed({ byFilter }: Claimed): boolean {
  return byFilter.every(({ refusal }) => refusal === undefined);
}

/** The row that the request is about. One past its end date counts as ended, whether or not that was noticed. */
function* findLease(
  statements: Statements,
  { identity, proposal, current, adopts, repetition }: LedgerRequest,
  now: bigint,
): Work<{ row: LeaseRow | undefined; isRepeated: boolean }> {
  if (repetition !== undefined) {
    const repeated = yield* findRepeated(statements, identity, repetition, now);
    if (repeated !== undefined) {
      return { row: repeated, isRepeated: true };
    }
  }
  let row = yield* findById(statements, identity);
  if (row === undefined && (current !== undefined || (adopts && identity.leaseId !== null))) {
    row = yield* findByShape(statements, identity, shapeOf(current ?? proposal), { now, isOver: false });
  }
  if (row !== undefined && row.ends_at <= now) {
    row = { ...row, state: 'ended', ended_at: row.ended_at ?? row.ends_at };
  }
  return { row, isRepeated: false };
}

/**
 * Whether a request shows the real counts of a lease. Blazar names the hosts of a reservation that is the only one of its type. For
 * instances and addresses it reports the amount, which it writes before removing some, or after adding some.
 */
function showsCounts({ reservations }: Proposal): boolean {
  return reservations.length === 1 && reservations[0]?.resource_type === 'physical:host';
}

/** Up to where the lease has run. One past its end has run until its end: the time since then is not free. */
export function begunOf(current: Proposal | undefined, now: bigint): bigint | undefined {
  if (current === undefined || current.start >= now) {
    return undefined;
  }
  return (current.end < now ? current.end : now) / MICROSECONDS_PER_SECOND;
}

/** Found by its looks, it may be the row of another lease, which has run. */
function isKnownById(row: LeaseRow | undefined, { leaseId }: LeaseIdentity): boolean {
  return leaseId !== null && row?.lease_id === leaseId;
}

export function shapeOf({ start, end, reservations }: Proposal) {
  return { start, end, demand: demandOf(reservations) };
}

function claimedBy(claimants: readonly Claimant[], proposal: Proposal, standing: Standing): Claimed {
  const byFilter = claimants.map((claimant): FilterClaims => {
    const { name: filter, audit } = claimant;
    const claims = claimant.claims(proposal, standing);
    return 'allowed' in claims
      ? { filter, audit, claims: [], refusal: claims.message }
      : { filter, audit, claims: claims.map(kept), refusal: undefined };
  });
  return { ...shapeOf(proposal), byFilter };
}

/** Filters may build account names from what users send. */
function kept(claim: Claim): Claim {
  return { ...claim, account: accountName(claim.account) };
}
