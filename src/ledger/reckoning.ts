/**
 * Whether a lease fits, and how balances change when it is recorded: arithmetic on what was read, without a database. A check
 * and a commit come to their answers here, so that they can't differ in anything but time.
 */
import type { Amount } from './amount.ts';
import { type Claim, charge, notBefore, type RecordedClaim, refund } from './claim.ts';

/** What a filter claims for the lease. */
export interface FilterClaims {
  readonly filter: string;
  /** Its refusals are warnings. */
  readonly audit: boolean;
  readonly claims: readonly Claim[];
  /** What the filter says where it can't tell what to claim: the lease is refused. */
  readonly refusal: string | undefined;
}

export interface Reckoned {
  /** In seconds of the epoch. */
  readonly now: bigint;
  /** What the lease is to take, filter by filter. */
  readonly wanted: readonly FilterClaims[];
  /** What the ledger holds of the lease; empty where it is new to the ledger. */
  readonly recorded: readonly RecordedClaim[];
  /** What the lease takes as it is, also where the ledger does not hold it: an update is judged by what it takes more. */
  readonly current: readonly RecordedClaim[];
  readonly isUpdate: boolean;
  /** Whether the lease has begun: what is used already is neither given back nor charged again. */
  readonly hasBegun: boolean;
  /** What is given back since other leases have ended. */
  readonly returned: ReadonlyMap<string, Amount>;
  readonly balances: ReadonlyMap<string, Amount>;
}

export interface Reckoning {
  /** Of the first filter that is enforced; the lease must not be recorded. */
  readonly refusal: Refusal | undefined;
  /** Of filters that are tried. */
  readonly warnings: readonly Refusal[];
  /** What the lease takes from now on. */
  readonly claims: readonly RecordedClaim[];
  /** By how much it changes which account; accounts that do not change are left out. */
  readonly deltas: ReadonlyMap<string, Amount>;
}

export interface Refusal {
  readonly filter: string;
  readonly message: string;
}

/** Where it may be any time from `now` to `latest`: no account gets more back than it would at either. */
export function reckonWithin(of: Omit<Reckoned, 'now'>, now: bigint, latest: bigint): Reckoning {
  const early = reckon({ ...of, now });
  if (latest === now) {
    return early;
  }
  const late = reckon({ ...of, now: latest });
  const deltas = new Map<string, Amount>();
  for (const account of new Set([...early.deltas.keys(), ...late.deltas.keys()])) {
    const [one, other] = [early.deltas.get(account) ?? 0n, late.deltas.get(account) ?? 0n];
    deltas.set(account, one > other ? one : other);
  }
  return { ...early, refusal: early.refusal ?? late.refusal, deltas };
}

export function reckon(of: Reckoned): Reckoning {
  const { now, recorded, hasBegun, returned, balances } = of;
  const wanted = of.wanted.map((one) => ({
    ...one,
    claims: hasBegun ? one.claims.map((claim) => notBefore(claim, now)) : one.claims,
  }));
  const claims = wanted.flatMap((one) => one.claims);
  const charged = sums(claims, charge);
  const givenBack = sums(recorded, (claim) => refund(claim, now));
  const before = sums(of.current, (claim) => refund(claim, now));

  const refusals = wanted.flatMap(({ filter, audit, claims: own, refusal: untold }) => [
    ...(untold === undefined ? [] : [{ filter, audit, message: untold }]),
    ...own.flatMap((claim) => {
      const { account, limit } = claim;
      const total = charged.get(account) ?? 0n;
      const had = givenBack.get(account) ?? before.get(account) ?? 0n;
      const balance = (balances.get(account) ?? 0n) - (returned.get(account) ?? 0n);
      const taken = balance - (givenBack.get(account) ?? 0n);
      if (limit === undefined || total <= had || taken + total <= limit) {
        return [];
      }
      const left = limit - taken - had;
      const shortage = { asked: total - had, left: left > 0n ? left : 0n, taken, isUpdate: of.isUpdate };
      return [{ filter, audit, message: claim.refuse(shortage) }];
    }),
  ]);

  const deltas = new Map<string, Amount>();
  for (const account of new Set([...charged.keys(), ...givenBack.keys()])) {
    const delta = (charged.get(account) ?? 0n) - (givenBack.get(account) ?? 0n);
    if (delta !== 0n) {
      deltas.set(account, delta);
    }
  }
  return {
    refusal: refusals.find(({ audit }) => !audit),
    warnings: refusals.filter(({ audit }) => audit),
    claims: claims.map(recordable),
    deltas,
  };
}

/** Account → what all claims on it come to. */
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
