/**
 * The states that a lease may have. Blazar calls before it changes a lease, and the change may fail after it
 * was allowed. Until a later request shows the lease, it may be as before, as requested, or something
 * between: these are its alternatives. It is charged for the most expensive of them.
 */
import { budgetClaims } from '../../filter/budget-claims.ts';
import {
  type Amount,
  BUDGET_ACCOUNT,
  type Budget,
  budgetAccount,
  type Claim,
  ceil,
  floor,
  larger,
  smaller,
} from '../../filter/claim.ts';
import type { Instant } from '../../lease/dates.ts';
import type { Claimant } from '../ledger-request.ts';
import type { LeaseRow } from '../storage/schema.ts';
import {
  charge,
  formatClaims,
  notBefore,
  parseClaims,
  type RecordedClaim,
  refund,
} from './recorded-claim.ts';

export interface Alternative {
  readonly start: Instant;
  readonly end: Instant;
  /** From `demandOf`. */
  readonly demand: string;
  readonly claims: readonly RecordedClaim[];
}

type Recorded = Pick<LeaseRow, 'starts_at' | 'ends_at' | 'demand' | 'claims' | 'alternatives'>;

/** The alternatives of a row; the latest request comes first. */
export function alternativesOf(row: Recorded): Alternative[] {
  const first = { start: row.starts_at, end: row.ends_at, demand: row.demand };
  if (row.alternatives === null) {
    return [{ ...first, claims: parseClaims(row.claims) }];
  }
  const written: unknown = JSON.parse(row.alternatives);
  if (!Array.isArray(written) || written.length === 0) {
    throw new TypeError('expected a list of alternatives');
  }
  return written.map(parsed);
}

export function recordedAs(alternatives: readonly [Alternative, ...Alternative[]]): Recorded {
  const [{ start, demand, claims }] = alternatives;
  return {
    starts_at: start,
    // The latest possible end: the lease counts until then.
    ends_at: alternatives.map(({ end }) => end).reduce(larger),
    demand,
    claims: formatClaims(claims),
    alternatives: alternatives.length === 1 ? null : JSON.stringify(alternatives.map(formatted)),
  };
}

/** Without duplicates, in the same order. */
export function distinct<Some extends Alternative>(alternatives: readonly Some[]): Some[] {
  return [...new Map(alternatives.map((one) => [JSON.stringify(formatted(one)), one])).values()];
}

/** Account → the highest charge of any alternative. */
export function chargedBy(alternatives: readonly Pick<Alternative, 'claims'>[]): Map<string, Amount> {
  return most(alternatives.map(({ claims }) => sums(claims, charge)));
}

/** Account → the highest held amount of any alternative. */
export function heldBy(alternatives: readonly Pick<Alternative, 'claims'>[]): Map<string, Amount> {
  return chargedOfKind(alternatives, 'held');
}

/**
 * Account → the refund when the lease ends at `second`: the charge, minus the most that it can have used by
 * then. `start`: see `usedBy`.
 */
export function refundOf(
  alternatives: readonly Pick<Alternative, 'start' | 'claims'>[],
  second: bigint,
  start?: Instant,
): Map<string, Amount> {
  const used = usedBy(alternatives, second, start);
  const back = chargedBy(alternatives);
  for (const [account, amount] of back) {
    back.set(account, amount - (used.get(account) ?? 0n));
  }
  return back;
}

/**
 * Account → the most that any alternative has used by `second`. `start`: the start of the lease, if known.
 * Only alternatives with this start count, since Blazar does not move the start of a running lease.
 */
export function usedBy(
  alternatives: readonly Pick<Alternative, 'start' | 'claims'>[],
  second: bigint,
  start?: Instant,
): Map<string, Amount> {
  return most(
    beginningAt(alternatives, start).map(({ claims }) =>
      sums(claims, (claim) => charge(claim) - refund(claim, second)),
    ),
  );
}

/** Account → what earlier leases with the same id have used, for a lease that begins at `start`. */
export function spentBefore(alternatives: readonly Alternative[], start: Instant): Map<string, Amount> {
  return chargedOfKind(beginningAt(alternatives, start), 'spent');
}

function chargedOfKind(
  alternatives: readonly Pick<Alternative, 'claims'>[],
  wanted: RecordedClaim['kind'],
): Map<string, Amount> {
  return chargedBy(
    alternatives.map(({ claims }) => ({ claims: claims.filter(({ kind }) => kind === wanted) })),
  );
}

/** All alternatives, if none starts then. */
function beginningAt<Some extends Pick<Alternative, 'start'>>(
  alternatives: readonly Some[],
  start: Instant | undefined,
): readonly Some[] {
  const fitting = alternatives.filter((one) => start === undefined || one.start === start);
  return fitting.length > 0 ? fitting : alternatives;
}

/** Account → the sum of the claims on it. */
export function sums<Some extends RecordedClaim>(
  claims: readonly Some[],
  amountOf: (claim: Some) => Amount,
): Map<string, Amount> {
  const total = new Map<string, Amount>();
  for (const claim of claims) {
    total.set(claim.account, (total.get(claim.account) ?? 0n) + amountOf(claim));
  }
  return total;
}

/** Account → the largest of its amounts. */
export function most([first, ...others]: readonly ReadonlyMap<string, Amount>[]): Map<string, Amount> {
  const largest = new Map(first);
  for (const one of others) {
    for (const [account, amount] of one) {
      const before = largest.get(account);
      if (before === undefined || amount > before) {
        largest.set(account, amount);
      }
    }
  }
  return largest;
}

/** Account → the sum of its amounts. */
export function added(maps: readonly ReadonlyMap<string, Amount>[]): Map<string, Amount> {
  const total = new Map<string, Amount>();
  for (const one of maps) {
    for (const [account, amount] of one) {
      total.set(account, (total.get(account) ?? 0n) + amount);
    }
  }
  return total;
}

/** Account → the change of its charge; unchanged accounts are left out. */
export function changesOf(
  charged: ReadonlyMap<string, Amount>,
  before: ReadonlyMap<string, Amount>,
): Map<string, Amount> {
  const changes = new Map<string, Amount>();
  for (const [account, amount] of charged) {
    const change = amount - (before.get(account) ?? 0n);
    if (change !== 0n) {
      changes.set(account, change);
    }
  }
  for (const [account, amount] of before) {
    if (amount !== 0n && !charged.has(account)) {
      changes.set(account, -amount);
    }
  }
  return changes;
}

/** The part of an alternative from a second on; `undefined` = all except what an earlier lease has used. */
export function restOf(one: Alternative, second: bigint | undefined): Alternative {
  const claims = one.claims.filter(({ kind }) => kind !== 'spent');
  return { ...one, claims: second === undefined ? claims : claims.map((claim) => notBefore(claim, second)) };
}

/** The alternative of a new lease whose id belonged to an earlier lease, which used `spent`. */
export function after(spent: ReadonlyMap<string, Amount>, one: Alternative): Alternative {
  const used = [...spent]
    .filter(([, amount]) => amount > 0n)
    .map(([account, amount]) => ({ kind: 'spent', account, amount }) as const);
  return used.length === 0 ? one : { ...one, claims: [...one.claims, ...used] };
}

/** Whether `one` takes at least as much as `rest` from every account, at every time. */
export function covers(one: Alternative, rest: Alternative): boolean {
  return (
    one.end >= rest.end &&
    rest.claims.every((other) =>
      one.claims.some((claim) =>
        claim.account !== other.account
          ? false
          : claim.kind === 'held'
            ? other.kind === 'held' && claim.amount >= other.amount
            : claim.kind === 'usage' &&
              other.kind === 'usage' &&
              claim.perSecond >= other.perSecond &&
              claim.from <= other.from &&
              claim.until >= other.until,
      ),
    )
  );
}

function formatted({ start, end, demand, claims }: Alternative): [string, string, string, string] {
  return [String(start), String(end), demand, formatClaims(claims)];
}

function parsed(written: unknown): Alternative {
  if (!Array.isArray(written) || !written.every((part) => typeof part === 'string')) {
    throw new TypeError('expected an alternative as a list of texts');
  }
  const [start = '', end = '', demand = '', claims = ''] = written;
  return { start: BigInt(start), end: BigInt(end), demand, claims: parseClaims(claims) };
}

/**
 * Throws if a budget would pay for time outside its validity: only filters know which budget pays instead.
 */
export function movedClaims({
  start,
  end,
  claims: recorded,
}: Pick<Alternative, 'start' | 'end' | 'claims'>): Claimant {
  const before = { from: floor(start), until: ceil(end) };
  return {
    name: 'what is recorded',
    audit: false,
    claims(proposal, { budgets }) {
      const lease = { from: floor(proposal.start), until: ceil(proposal.end) };
      return recorded.flatMap((claim): Claim[] => {
        if (claim.kind === 'held') {
          return [{ ...claim, ...UNLIMITED }];
        }
        if (claim.kind === 'spent') {
          return [];
        }
        const from = claim.from === before.from ? lease.from : larger(claim.from, lease.from);
        const until = claim.until === before.until ? lease.until : smaller(claim.until, lease.until);
        if (from >= until) {
          return [];
        }
        const moved = { ...claim, from, until };
        if ((from < claim.from || until > claim.until) && !isPaid(moved, budgets)) {
          throw new Error(
            "can't be corrected: its budget is not valid then, and the list does not say what it reserves",
          );
        }
        return [{ ...moved, ...UNLIMITED }];
      });
    },
  };
}

/** For a lease that is in use after its end: what it has taken last, from the budgets that are valid by then. */
export function continuedClaims(known: Pick<Alternative, 'start' | 'end' | 'claims'>): Claimant {
  const isOfBudget = ({ account }: RecordedClaim) => account.startsWith(BUDGET_ACCOUNT);
  const others = movedClaims({ ...known, claims: known.claims.filter((one) => !isOfBudget(one)) });
  const perSecond = known.claims
    .flatMap((one) => (isOfBudget(one) && one.kind === 'usage' && one.until === ceil(known.end) ? [one] : []))
    .reduce((most, one) => larger(most, one.perSecond), 0n);
  return {
    ...others,
    claims(proposal, state) {
      const { start, end, context } = proposal;
      const { budgets } = state;
      const texts = { project: '', user: '', unit: '', what: '' };
      const usage = { start, end, perSecond, budgets, isRequired: false, userId: context.user_id, ...texts };
      const rest = others.claims(proposal, state);
      return 'allowed' in rest ? rest : [...rest, ...(perSecond === 0n ? [] : budgetClaims(usage))];
    },
  };
}

const UNLIMITED = { limit: undefined, refuse: () => '' } as const;

function isPaid(
  { account, from, until }: { readonly account: string; readonly from: bigint; readonly until: bigint },
  budgets: readonly Budget[],
): boolean {
  const budget = budgets.find((one) => budgetAccount(one) === account);
  return budget !== undefined && budget.validFrom <= from && until <= budget.validUntil;
}
