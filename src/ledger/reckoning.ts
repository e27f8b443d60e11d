/**
 * Whether a lease fits, and how balances change when it is recorded: arithmetic on what was read, without a database. A check
 * and a commit come to their answers here, so that they can't differ in anything but time.
 */

import { type Amount, MAX_AMOUNT } from '../filter/amount.ts';
import type { Claim } from '../filter/claim.ts';
import {
  type Alternative,
  chargedBy,
  covers,
  distinct,
  most,
  refundOf,
  sums,
  without,
} from './alternatives.ts';
import { charge, notBefore, type RecordedClaim } from './recorded-claim.ts';

/** What a filter claims for the lease. */
export interface FilterClaims {
  readonly filter: string;
  /** Its refusals are warnings. */
  readonly audit: boolean;
  readonly claims: readonly Claim[];
  /** What the filter says where it can't tell what to claim: the lease is refused. */
  readonly refusal: string | undefined;
}

/** What the lease may be, and what all filters claim for it then. */
export interface Claimed {
  readonly start: bigint;
  readonly end: bigint;
  readonly demand: string;
  readonly byFilter: readonly FilterClaims[];
}

export interface Reckoned {
  /** In seconds of the epoch. */
  readonly now: bigint;
  /** What the lease may become; the first is what is asked for. */
  readonly wanted: readonly [Claimed, ...Claimed[]];
  /** What the lease is by what the request says, where it says that: it is charged, and the change is judged by what it takes more. */
  readonly current: Claimed | undefined;
  /** What the ledger takes the lease for; empty where it is new to the ledger. */
  readonly recorded: readonly Alternative[];
  /** Whether it may still be all that, since nobody says how it is. */
  readonly staysOpen: boolean;
  /** Whether what the request says of its counts is all that it has. Where not, it may have what was asked for before. */
  readonly countsAreSeen: boolean;
  /** Whether there is nothing that it could be said to have already, since it is over. */
  readonly isOver: boolean;
  /** Up to this second the lease has run: what is used is neither given back nor charged again. `undefined` = it has not begun. */
  readonly begun: bigint | undefined;
  readonly isUpdate: boolean;
  /** What is given back since other leases have ended. */
  readonly returned: ReadonlyMap<string, Amount>;
  readonly balances: ReadonlyMap<string, Amount>;
}

export interface Reckoning {
  /** Of the first filter that is enforced; the lease must not be recorded. */
  readonly refusal: Refusal | undefined;
  /** Of filters that are tried. */
  readonly warnings: readonly Refusal[];
  /** What the lease may be from now on. */
  readonly alternatives: readonly [Alternative, ...Alternative[]];
  /** What a filter claims can't be kept, and is not in them: whoever records the lease all the same must not. */
  readonly isTooMuch: boolean;
  /** By how much it changes which account; accounts that do not change are left out. */
  readonly deltas: ReadonlyMap<string, Amount>;
}

export interface Refusal {
  readonly filter: string;
  readonly message: string;
}

/** Nobody asks for one lease in so many different ways but to see what happens. */
const MOST_ALTERNATIVES = 16;

/** Where it may be any time from one moment to a later one: no account gets more back than it would at either. */
export function reckonWithin(early: Reckoned, late: Reckoned | undefined): Reckoning {
  const first = reckon(early);
  if (late === undefined) {
    return first;
  }
  const second = reckon(late);
  const deltas = most([first.deltas, second.deltas]);
  for (const account of deltas.keys()) {
    // What stands in one of them alone does not change in the other.
    const [one, other] = [first.deltas.get(account) ?? 0n, second.deltas.get(account) ?? 0n];
    deltas.set(account, one > other ? one : other);
  }
  const { refusal = second.refusal, isTooMuch } = first;
  return { ...first, refusal, isTooMuch: isTooMuch || second.isTooMuch, deltas };
}

export function reckon(of: Reckoned): Reckoning {
  const { now, recorded, staysOpen, balances } = of;
  const { wanted, current, overflowing } = withoutOverflow(of);

  const likely = [...wanted, ...(current === undefined ? [] : [current])].map(alternativeOf);
  // Asked for once more, it takes nothing more. Asked for in another way it may be one that has its id after it: what that has
  // used is used.
  const isKnown = staysOpen && distinct([...recorded, ...likely]).length === recorded.length;
  const open = isKnown ? recorded : recorded.map((one) => without(one, now));
  const next = distinct([...likely, ...(staysOpen ? open : withOtherCounts(of, likely))]);
  const charged = chargedBy(next);
  // Of what the lease was taken for, the rest is given back: all but the most that it can have used by now.
  const givenBack = isKnown ? chargedBy(recorded) : refundOf(recorded, now);
  const judged = chargedBy(wanted.map(alternativeOf));
  const standing =
    current === undefined || of.isOver ? new Map<string, Amount>() : chargedBy([alternativeOf(current)]);
  const had = most([givenBack, standing]);

  const taken = (account: string) =>
    (balances.get(account) ?? 0n) - (of.returned.get(account) ?? 0n) - (givenBack.get(account) ?? 0n);
  const all = [
    ...untold([...wanted, ...(current === undefined ? [] : [current])]),
    ...overflowing,
    ...shortages(wanted, (claim) => {
      const { account, limit } = claim;
      const total = judged.get(account) ?? 0n;
      const before = had.get(account) ?? 0n;
      if (limit === undefined || total <= before || taken(account) + total <= limit) {
        return undefined;
      }
      const left = limit - taken(account) - before;
      return claim.refuse({
        asked: total - before,
        left: left > 0n ? left : 0n,
        taken: taken(account),
        isUpdate: of.isUpdate,
      });
    }),
    ...(next.length > MOST_ALTERNATIVES ? tooMany(wanted[0]) : []),
  ];
  const refusals = wanted[0].byFilter.flatMap((one) => all.filter(({ filter }) => filter === one.filter));

  const deltas = new Map<string, Amount>();
  for (const account of new Set([...charged.keys(), ...givenBack.keys()])) {
    const delta = (charged.get(account) ?? 0n) - (givenBack.get(account) ?? 0n);
    if (delta !== 0n) {
      deltas.set(account, delta);
    }
  }
  const [first = alternativeOf(wanted[0]), ...others] = next;
  return {
    refusal: refusals.find(({ audit }) => !audit),
    warnings: refusals.filter(({ audit }) => audit),
    alternatives: [first, ...others],
    isTooMuch: overflowing.length > 0,
    deltas,
  };
}

/** What a lease may have kept of a change of its counts that has failed half way: dates are seen, counts are not. */
function withOtherCounts(
  { recorded, current, wanted, countsAreSeen, begun }: Reckoned,
  likely: readonly Alternative[],
): Alternative[] {
  if (countsAreSeen) {
    return [];
  }
  const { demand } = current ?? wanted[0];
  const kept: Alternative[] = [];
  for (const one of recorded.filter((other) => other.demand !== demand)) {
    const rest = begun === undefined ? one : without(one, begun);
    if (![...likely, ...kept].some((other) => covers(other, rest))) {
      kept.push(rest);
    }
  }
  return kept;
}

type Judged = Refusal & { readonly audit: boolean };

function untold(claimed: readonly Claimed[]): Judged[] {
  const said = new Map<string, Judged>();
  for (const { filter, audit, refusal } of claimed.flatMap(({ byFilter }) => byFilter)) {
    if (refusal !== undefined && !said.has(filter)) {
      said.set(filter, { filter, audit, message: refusal });
    }
  }
  return [...said.values()];
}

/** Of each account once, by the claim that takes the most of it. */
function shortages(wanted: readonly Claimed[], judge: (claim: Claim) => string | undefined): Judged[] {
  const dearest = new Map<string, { filter: string; audit: boolean; claim: Claim; total: Amount }>();
  for (const { byFilter } of wanted) {
    const totals = sums(
      byFilter.flatMap(({ claims }) => claims),
      charge,
    );
    for (const { filter, audit, claims } of byFilter) {
      for (const claim of claims) {
        const total = totals.get(claim.account) ?? 0n;
        const before = dearest.get(claim.account);
        if (before === undefined || total > before.total) {
          dearest.set(claim.account, { filter, audit, claim, total });
        }
      }
    }
  }
  return [...dearest.values()].flatMap(({ filter, audit, claim }) => {
    const message = judge(claim);
    return message === undefined ? [] : [{ filter, audit, message }];
  });
}

function tooMany({ byFilter }: Claimed): Judged[] {
  return byFilter.slice(0, 1).map(({ filter }) => ({
    filter,
    audit: false,
    message: `A lease with this id was asked for in ${MOST_ALTERNATIVES} other ways already.`,
  }));
}

/**
 * A database holds no more than `MAX_AMOUNT`. A filter that claims more refuses the lease, and where it is only tried, nothing of it
 * is recorded: no other filter fails for it.
 */
function withoutOverflow(of: Reckoned): {
  wanted: readonly [Claimed, ...Claimed[]];
  current: Claimed | undefined;
  overflowing: Judged[];
} {
  const { begun, recorded, balances } = of;
  const cut = (claimed: Claimed): Claimed =>
    begun === undefined
      ? claimed
      : {
          ...claimed,
          byFilter: claimed.byFilter.map((one) => ({
            ...one,
            claims: one.claims.map((claim) => notBefore(claim, begun)),
          })),
        };
  const [first, ...others] = of.wanted;
  const wanted: [Claimed, ...Claimed[]] = [cut(first), ...others.map(cut)];
  const current = of.current && cut(of.current);
  const all = [...wanted, ...(current === undefined ? [] : [current])];
  const total = chargedBy([...all.map(alternativeOf), ...recorded]);
  const isTooMuch = (account: string) => {
    const amount = total.get(account) ?? 0n;
    const balance = balances.get(account) ?? 0n;
    return amount + (balance > 0n ? balance : 0n) > MAX_AMOUNT;
  };
  const overflowing = new Map<string, Judged>();
  for (const { filter, audit, claims } of all.flatMap(({ byFilter }) => byFilter)) {
    if (claims.some(({ account }) => isTooMuch(account))) {
      overflowing.set(filter, { filter, audit, message: TOO_MUCH });
    }
  }
  if (overflowing.size === 0) {
    return { wanted, current, overflowing: [] };
  }
  const emptied = (claimed: Claimed): Claimed => ({
    ...claimed,
    byFilter: claimed.byFilter.map((one) => (overflowing.has(one.filter) ? { ...one, claims: [] } : one)),
  });
  const [asked, ...rest] = wanted;
  return {
    wanted: [emptied(asked), ...rest.map(emptied)],
    current: current && emptied(current),
    overflowing: [...overflowing.values()],
  };
}

/** For the user, and of a lease that is there all the same. */
export const TOO_MUCH = 'The lease takes more than can be counted: ask for less, or for a shorter time.';

function alternativeOf({ start, end, demand, byFilter }: Claimed): Alternative {
  return { start, end, demand, claims: byFilter.flatMap(({ claims }) => claims.map(recordable)) };
}

function recordable(claim: Claim): RecordedClaim {
  return claim.kind === 'held'
    ? { kind: 'held', account: claim.account, amount: claim.amount }
    : {
        kind: 'usage',
        account: claim.account,
        perSecond: claim.perSecond,
        from: claim.from,
        until: claim.until,
      };
}
