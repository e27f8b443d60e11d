/** What would become of a lease: what is read, and reckoned with it. A check ends here; a commit goes on and writes. */

import type { Amount } from '../filter/amount.ts';
import type { Claim, Claims, Proposal, Standing } from '../filter/claim.ts';
import type { Repetition } from '../filter/services.ts';
import { MICROSECONDS_PER_SECOND } from '../lease/dates.ts';
import { alternativesOf, heldBy } from './alternatives.ts';
import { budgetOf } from './budget-rows.ts';
import { rows, type Work } from './database.ts';
import { demandOf } from './demand.ts';
import { findById, findByShape, findRepeated } from './find-lease.ts';
import { accountName, type LeaseIdentity } from './identity.ts';
import { balancesOf } from './posting.ts';
import { type Claimed, type FilterClaims, type Reckoning, reckonWithin } from './reckoning.ts';
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
  /** As it is asked for. */
  readonly proposal: Proposal;
  /** Of an update: the lease as it is. */
  readonly current: Proposal | undefined;
  /** Of an update: what it may be left as by who fails to make it. */
  readonly halfway: Proposal | undefined;
  /** Whether it is known to be as it is asked for, since it was read where leases are kept. */
  readonly isCertain: boolean;
  /** As `demandOf` tells it, where the reservations are not known; `undefined` = it is told from them. */
  readonly demand?: string | undefined;
  /** Of a new lease with an id: whether it may be one that was recorded without, since it was checked before it had one. */
  readonly adopts: boolean;
  /** Of a new lease: what tells whether it was asked for before; `undefined` = it was not. */
  readonly repetition: Repetition | undefined;
  readonly claimants: readonly Claimant[];
}

/** What the lease would find, and do. */
export interface Prospect {
  readonly row: LeaseRow | undefined;
  /** It is recorded already: the request was sent before. */
  readonly isRepeated: boolean;
  readonly overdue: readonly { id: bigint; returned: ReadonlyMap<string, Amount> }[];
  readonly balances: ReadonlyMap<string, Amount>;
  readonly reckoning: Reckoning;
}

/**
 * What the filters would say now. Nothing is written, and nobody waits for it. `latest`: as `Moment` has it; where it is not now, the
 * lease takes what is more.
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
  const asked = claimed(proposal);
  const first = { ...asked, demand: request.demand ?? asked.demand };
  const others = halfway === undefined || isCertain ? [] : [claimed(halfway)];
  const standing = current === undefined || isCertain ? undefined : claimed(current);
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
    // What is over takes nothing that the lease could be said to have already.
    isOver: current === undefined || current.end <= now || row?.state === 'ended',
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
  return { row, isRepeated, overdue, balances, reckoning };
}

/** The row that the request is about; one whose time is over has ended, whether or not anybody has noticed. */
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
 * Whether a request says how much a lease has. Blazar names the hosts of a reservation where it is the only one of its type. Of
 * instances and addresses it says the amount, which is written before they are taken away, or after they were added.
 */
function showsCounts({ reservations }: Proposal): boolean {
  return reservations.length === 1 && reservations[0]?.resource_type === 'physical:host';
}

/** A lease that has run over its end has run until then: nothing between its end and now is free. */
function begunOf(current: Proposal | undefined, now: bigint): bigint | undefined {
  if (current === undefined || current.start >= now) {
    return undefined;
  }
  return (current.end < now ? current.end : now) / MICROSECONDS_PER_SECOND;
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

/** Filters make names of accounts of what users send. */
function kept(claim: Claim): Claim {
  return { ...claim, account: accountName(claim.account) };
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
