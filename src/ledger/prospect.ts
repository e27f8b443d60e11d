/** What would become of a lease: what is read, and reckoned with it. A check ends here; a commit goes on and writes. */
import { MICROSECONDS_PER_SECOND } from '../dates.ts';
import type { Amount } from './amount.ts';
import { budgetOf } from './budget.ts';
import {
  type Claim,
  type Claims,
  charge,
  type Proposal,
  parseClaims,
  type RecordedClaim,
  type Standing,
} from './claim.ts';
import { rows, type Work } from './database.ts';
import { findLease, isSame, nearest } from './find-lease.ts';
import { accountName, type LeaseIdentity } from './identity.ts';
import { balancesOf } from './posting.ts';
import { type FilterClaims, type Reckoning, reckonWithin, sums } from './reckoning.ts';
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
  /** As `demandOf` tells it: asked for only where it matters, since it costs as much as some queries. */
  readonly demand: () => string;
  readonly proposal: Proposal;
  /** Of an update: the lease as it is. */
  readonly current: Proposal | undefined;
  readonly claimants: readonly Claimant[];
}

/** What the lease would find, and do. */
export interface Prospect {
  readonly row: LeaseRow | undefined;
  /** It is recorded already, as it is asked for. */
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
  const { identity, demand, proposal, current, claimants } = request;
  const { projectId: project_id, userId: user_id } = identity;
  const overdueRows = yield* rows(statements.overdueLeases({ project_id, now }));
  const budgets = (yield* rows(statements.budgets({ project_id, user_id }))).map(budgetOf);
  const standing: Standing = { now, budgets };
  const claimed = (of: Proposal): FilterClaims[] =>
    claimants.map((claimant) => {
      const { name: filter, audit } = claimant;
      const claims = claimant.claims(of, standing);
      return 'allowed' in claims
        ? { filter, audit, claims: [], refusal: claims.message }
        : { filter, audit, claims: claims.map(kept), refusal: undefined };
    });
  const wanted = claimed(proposal);
  // Whether or not anybody has noticed: a lease that is over has ended, and one without an id is not found any more.
  const found = (yield* findLease(statements, identity))
    .filter(({ lease_id, ends_at }) => lease_id !== null || ends_at > now)
    .map((row) =>
      row.ends_at <= now ? { ...row, state: 'ended' as const, ended_at: row.ended_at ?? row.ends_at } : row,
    );
  const repeated =
    current === undefined
      ? found.find((row) => isSame(row, { proposal, demand, wanted, identity }))
      : undefined;
  // What was asked for again in other words may be there besides: both count, until somebody says which one is not.
  // One that was taken back, or has ended, begins anew under its id.
  const row =
    repeated ??
    (current === undefined ? found.find(({ state }) => state === 'ended') : nearest(found, current.end));
  const overdue = overdueRows.map(({ id, claims }) => ({ id, returned: heldBy(parseClaims(claims)) }));

  const recorded = row?.state === 'open' ? parseClaims(row.claims) : [];
  // What is over takes nothing that the lease could be said to have already.
  const isOver = current === undefined || current.end <= now || row?.state === 'ended';
  const inForce = isOver ? [] : claimed(current).flatMap(({ claims }) => claims);
  const accounts = new Set(
    [...recorded, ...wanted.flatMap(({ claims }) => claims)].map(({ account }) => account),
  );
  for (const { returned } of overdue) {
    for (const account of returned.keys()) {
      accounts.add(account);
    }
  }
  const balances = yield* balancesOf(statements, project_id, accounts);
  const reckoned = {
    wanted,
    recorded,
    current: inForce,
    isUpdate: current !== undefined,
    hasBegun: current !== undefined && current.start < now,
    returned: added(overdue.map(({ returned }) => returned)),
    balances,
  };
  const reckoning = reckonWithin(reckoned, now / MICROSECONDS_PER_SECOND, latest / MICROSECONDS_PER_SECOND);
  return { row, isRepeated: repeated !== undefined, overdue, balances, reckoning };
}

/** Filters make names of accounts of what users send. */
function kept(claim: Claim): Claim {
  return { ...claim, account: accountName(claim.account) };
}

export function heldBy(claims: readonly RecordedClaim[]): Map<string, Amount> {
  return sums(
    claims.filter(({ kind }) => kind === 'held'),
    charge,
  );
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
