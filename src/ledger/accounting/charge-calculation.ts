/**
 * Whether a lease fits, and how balances change when it is recorded: arithmetic, without a database. Checks
 * and commits share it, so their results can differ only by time.
 */

import { type Amount, type Claim, larger, MAX_AMOUNT, refusalOf } from '../../filter/claim.ts';
import type { Instant } from '../../lease/dates.ts';
import {
  type Alternative,
  after,
  changesOf,
  chargedBy,
  covers,
  distinct,
  most,
  refundOf,
  restOf,
  usedBy,
} from './alternatives.ts';
import { notBefore } from './recorded-claim.ts';

export interface FilterClaims {
  readonly filter: string;
  /** An audited filter's refusals are warnings. */
  readonly audit: boolean;
  readonly claims: readonly Claim[];
  /** Why the filter cannot compute its claims: the lease is refused. */
  readonly refusal: string | undefined;
}

/** One state of the lease, with the claims of all filters for it. */
export interface Claimed {
  readonly start: bigint;
  readonly end: bigint;
  /** From `demandOf`. */
  readonly demand: string;
  readonly byFilter: readonly FilterClaims[];
}

export interface ChargeInput {
  /** In seconds of the epoch. */
  readonly now: bigint;
  /** The possible results of the request; the requested one comes first. */
  readonly wanted: readonly [Claimed, ...Claimed[]];
  /** The current lease according to the request, if it has one. Only the increase over it is judged. */
  readonly current: Claimed | undefined;
  /** The recorded alternatives; empty for a lease that is new to the ledger. */
  readonly recorded: readonly Alternative[];
  /** Whether the recorded alternatives stay possible, because the request does not show the current lease. */
  readonly staysOpen: boolean;
  /** Whether the request shows the real counts. If not, the lease may have the counts of an earlier request. */
  readonly countsAreSeen: boolean;
  /** Whether the lease is over, so that no current claims are set off against the change. */
  readonly isOver: boolean;
  /**
   * The second up to which the lease has run: used time is neither refunded nor charged again.
   * `undefined` = not started.
   */
  readonly begun: bigint | undefined;
  /**
   * The start of the lease, if the request shows it and the ledger found the lease by its id.
   * `undefined` = any alternative that has run is possible.
   */
  readonly shownStart: Instant | undefined;
  readonly isUpdate: boolean;
  /** Account → what other leases return because their end has passed. */
  readonly returned: ReadonlyMap<string, Amount>;
  readonly balances: ReadonlyMap<string, Amount>;
}

export interface ChargeCalculation {
  /** From the first enforced filter that refuses: the lease must not be recorded. */
  readonly refusal: Refusal | undefined;
  /** From audited filters. */
  readonly warnings: readonly Refusal[];
  /** The possible states of the lease from now on. */
  readonly alternatives: readonly [Alternative, ...Alternative[]];
  /** A claim is too large to be stored and is left out: the lease must not be recorded, not even by force. */
  readonly isTooMuch: boolean;
  /** Account → change of its balance; unchanged accounts are left out. */
  readonly deltas: ReadonlyMap<string, Amount>;
  /** Account → the current charge of the lease, except for what it has used. */
  readonly givenBack: ReadonlyMap<string, Amount>;
}

export interface Refusal {
  readonly filter: string;
  readonly message: string;
}

/** Normal use of one lease never reaches this number. */
const MOST_ALTERNATIVES = 16;
/** Limit of shortages in one message. */
const MOST_SHORTAGES = 5;

/** For a time between two moments: the larger change of each account, so that no refund is too large. */
export function calculateChargeWithin(early: ChargeInput, late: ChargeInput | undefined): ChargeCalculation {
  const first = calculateCharge(early);
  if (late === undefined) {
    return first;
  }
  const second = calculateCharge(late);
  const deltas = most([first.deltas, second.deltas]);
  for (const account of deltas.keys()) {
    // An account that is missing from one of them does not change there.
    const one = first.deltas.get(account) ?? 0n;
    const other = second.deltas.get(account) ?? 0n;
    deltas.set(account, larger(one, other));
  }
  const { refusal = second.refusal, isTooMuch } = first;
  return { ...first, refusal, isTooMuch: isTooMuch || second.isTooMuch, deltas };
}

export function calculateCharge(of: ChargeInput): ChargeCalculation {
  const { now, recorded, staysOpen, balances } = of;
  const { wanted, current, overflowing } = withoutOverflow(of);

  const asked = wanted.map(alternativeOf);
  const likely = current === undefined ? asked : [...asked, alternativeOf(current)];
  // Repeating a request takes nothing more. A different request with the same id may be about another lease.
  // Either the first lease is gone and what it has used stays used, or it exists and Blazar refuses the new
  // one.
  const others = recorded.filter((one) => !likely.some((other) => isSame(restOf(one, undefined), other)));
  const spent = staysOpen ? usedBy(others, now) : new Map<string, Amount>();
  const next = staysOpen
    ? [...distinct(likely.map((one) => after(spent, one))), ...others]
    : distinct([...likely, ...withOtherCounts(of, likely)]);
  const charged = chargedBy(next);
  // An update returns everything that was recorded, except the most that the lease can have used by now.
  const givenBack = staysOpen ? chargedBy(recorded) : refundOf(recorded, now, of.shownStart);
  const judged = chargedBy(asked.map((one) => after(spent, one)));
  const had =
    current === undefined || of.isOver ? givenBack : most([givenBack, chargedBy([alternativeOf(current)])]);

  const taken = (account: string) =>
    (balances.get(account) ?? 0n) - (of.returned.get(account) ?? 0n) - (givenBack.get(account) ?? 0n);
  const all = [
    ...uncomputable([...wanted, ...(current === undefined ? [] : [current])]),
    ...overflowing,
    ...shortages(wanted, (claim) => {
      const { account, limit } = claim;
      const total = judged.get(account) ?? 0n;
      const before = had.get(account) ?? 0n;
      if (limit === undefined || total <= before || taken(account) + total <= limit) {
        return undefined;
      }
      const left = limit - taken(account) - before;
      return refusalOf(claim, {
        asked: total - before,
        left: left > 0n ? left : 0n,
        taken: taken(account),
        isUpdate: of.isUpdate,
      });
    }),
    ...(next.length > MOST_ALTERNATIVES ? tooMany(wanted[0]) : []),
  ];
  const refusals =
    all.length === 0
      ? []
      : wanted[0].byFilter.flatMap((one) => all.filter(({ filter }) => filter === one.filter));

  const deltas = changesOf(charged, givenBack);
  const [first = alternativeOf(wanted[0]), ...further] = next;
  return {
    refusal: refusals.find(({ audit }) => !audit),
    warnings: refusals.filter(({ audit }) => audit),
    alternatives: [first, ...further],
    isTooMuch: overflowing.length > 0,
    deltas,
    givenBack,
  };
}

/**
 * Alternatives with other counts, left by a change that may have failed halfway: a request shows dates, but
 * no counts.
 */
function withOtherCounts(
  { recorded, current, wanted, countsAreSeen, begun }: ChargeInput,
  likely: readonly Alternative[],
): Alternative[] {
  if (countsAreSeen) {
    return [];
  }
  const { demand } = current ?? wanted[0];
  const kept: Alternative[] = [];
  for (const one of recorded.filter((other) => other.demand !== demand)) {
    const rest = restOf(one, begun);
    if (![...likely, ...kept].some((other) => covers(other, rest))) {
      kept.push(rest);
    }
  }
  return kept;
}

function isSame(one: Alternative, other: Alternative): boolean {
  return distinct([one, other]).length === 1;
}

type Judged = Refusal & { readonly audit: boolean };

function uncomputable(claimed: readonly Claimed[]): Judged[] {
  const said: Judged[] = [];
  for (const { byFilter } of claimed) {
    for (const { filter, audit, refusal } of byFilter) {
      if (refusal !== undefined && !said.some((one) => one.filter === filter)) {
        said.push({ filter, audit, message: refusal });
      }
    }
  }
  return said;
}

/** One for each filter, which names every limit that the lease exceeds: a user who mends one is not refused for the next. */
function shortages(wanted: readonly Claimed[], judge: (claim: Claim) => string | undefined): Judged[] {
  const judged = new Map<string, { readonly audit: boolean; readonly messages: Map<string, string> }>();
  for (const { filter, audit, claims } of wanted.flatMap(({ byFilter }) => byFilter)) {
    for (const claim of claims) {
      const message = judge(claim);
      if (message !== undefined) {
        const { messages } = judged.get(filter) ?? { messages: new Map<string, string>() };
        messages.set(claim.account, messages.get(claim.account) ?? message);
        judged.set(filter, { audit, messages });
      }
    }
  }
  return [...judged].map(([filter, { audit, messages }]) => {
    const all = [...new Set(messages.values())];
    const more = all.length > MOST_SHORTAGES ? [`And ${all.length - MOST_SHORTAGES} more.`] : [];
    return { filter, audit, message: [...all.slice(0, MOST_SHORTAGES), ...more].join(' ') };
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
 * Removes claims beyond `MAX_AMOUNT`, the largest number that a database stores. Their filter refuses the
 * lease. If it is audited, its claims are not recorded, and other filters are not affected.
 */
function withoutOverflow(of: ChargeInput): {
  wanted: readonly [Claimed, ...Claimed[]];
  current: Claimed | undefined;
  overflowing: Judged[];
} {
  const { begun, recorded, balances } = of;
  const cut = (claimed: Claimed): Claimed =>
    begun === undefined
      ? claimed
      : changed(claimed, (one) => ({ ...one, claims: one.claims.map((claim) => notBefore(claim, begun)) }));
  const [first, ...others] = of.wanted;
  const wanted: [Claimed, ...Claimed[]] = [cut(first), ...others.map(cut)];
  const current = of.current && cut(of.current);
  const all = current === undefined ? wanted : [...wanted, current];
  const total = chargedBy([...all.map((form) => ({ claims: claimsOf(form) })), ...recorded]);
  const isTooMuch = ({ account }: Claim) => {
    const amount = total.get(account) ?? 0n;
    const balance = balances.get(account) ?? 0n;
    return amount + (balance > 0n ? balance : 0n) > MAX_AMOUNT;
  };
  const overflowing = new Map<string, Judged>();
  for (const { byFilter } of all) {
    for (const { filter, audit, claims } of byFilter) {
      if (claims.some(isTooMuch)) {
        overflowing.set(filter, { filter, audit, message: TOO_MUCH });
      }
    }
  }
  if (overflowing.size === 0) {
    return { wanted, current, overflowing: [] };
  }
  const emptied = (claimed: Claimed): Claimed =>
    changed(claimed, (one) => (overflowing.has(one.filter) ? { ...one, claims: [] } : one));
  const [asked, ...rest] = wanted;
  return {
    wanted: [emptied(asked), ...rest.map(emptied)],
    current: current && emptied(current),
    overflowing: [...overflowing.values()],
  };
}

/** For the user, and for `ledger reconcile`. */
export const TOO_MUCH = 'The lease takes more than can be counted: ask for less, or for a shorter time.';

function changed(form: Claimed, change: (one: FilterClaims) => FilterClaims): Claimed {
  return { ...form, byFilter: form.byFilter.map(change) };
}

function claimsOf({ byFilter }: Claimed): readonly Claim[] {
  const [only, ...others] = byFilter;
  return only !== undefined && others.length === 0 ? only.claims : byFilter.flatMap(({ claims }) => claims);
}

function alternativeOf(form: Claimed): Alternative {
  const { start, end, demand } = form;
  return { start, end, demand, claims: claimsOf(form) };
}
