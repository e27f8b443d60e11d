/** A claim as the ledger stores it, and its remainder at a given time. */
import type { Amount, HeldClaim, UsageClaim } from '../../filter/claim.ts';

/** What a lease takes while it exists, as a filter claims it; without limit and message. */
type FilterClaim =
  | Pick<HeldClaim, 'kind' | 'account' | 'amount'>
  | Pick<UsageClaim, 'kind' | 'account' | 'perSecond' | 'from' | 'until'>;

/** `spent`: used by an earlier lease with the same id; never refunded. */
export type RecordedClaim =
  | FilterClaim
  | { readonly kind: 'spent'; readonly account: string; readonly amount: Amount };

/** The whole amount of a claim. */
export function charge(claim: RecordedClaim): Amount {
  return claim.kind === 'usage' ? claim.perSecond * (claim.until - claim.from) : claim.amount;
}

/** The refund of a claim that ends at `now`, in seconds: its unused part. */
export function refund(claim: RecordedClaim, now: bigint): Amount {
  return claim.kind === 'spent' ? 0n : charge(notBefore(claim, now));
}

/** The part of a claim from a second on. */
export function notBefore<Some extends RecordedClaim>(claim: Some, second: bigint): Some {
  if (claim.kind !== 'usage' || claim.from >= second) {
    return claim;
  }
  return { ...claim, from: second < claim.until ? second : claim.until };
}

/** As text for the database: JSON without floating point. */
export function formatClaims(claims: readonly RecordedClaim[]): string {
  return JSON.stringify(claims.map(textsOf));
}

function textsOf(claim: RecordedClaim): string[] {
  switch (claim.kind) {
    case 'held':
      return [claim.account, String(claim.amount)];
    case 'spent':
      return [claim.account, String(claim.amount), claim.kind];
    case 'usage':
      return [claim.account, String(claim.perSecond), String(claim.from), String(claim.until)];
  }
}

/** Throws an `Error` for a text that is not from `formatClaims`. */
export function parseClaims(text: string): RecordedClaim[] {
  const written: unknown = JSON.parse(text);
  if (!Array.isArray(written)) {
    throw new TypeError('expected a list of claims');
  }
  return written.map((parts: unknown) => {
    if (!isTexts(parts)) {
      throw new TypeError('expected a claim as a list of texts');
    }
    const [account = '', first = '', from, until] = parts;
    if (from === undefined || until === undefined) {
      return { kind: from === 'spent' ? 'spent' : 'held', account, amount: BigInt(first) };
    }
    return { kind: 'usage', account, perSecond: BigInt(first), from: BigInt(from), until: BigInt(until) };
  });
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
