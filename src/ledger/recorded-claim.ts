/** A claim as the ledger stores it, and what remains of it at a given time. */
import type { Amount } from '../filter/amount.ts';
import type { HeldClaim, UsageClaim } from '../filter/claim.ts';

/** A claim without its limit and message. */
export type RecordedClaim =
  | Pick<HeldClaim, 'kind' | 'account' | 'amount'>
  | Pick<UsageClaim, 'kind' | 'account' | 'perSecond' | 'from' | 'until'>;

/** All that a claim takes. */
export function charge(claim: RecordedClaim): Amount {
  return claim.kind === 'held' ? claim.amount : claim.perSecond * (claim.until - claim.from);
}

/** What a claim gives back when it ends at `now`, in seconds: all that is not used. */
export function refund(claim: RecordedClaim, now: bigint): Amount {
  return charge(notBefore(claim, now));
}

/** The part of a claim from a second on. */
export function notBefore<Some extends RecordedClaim>(claim: Some, second: bigint): Some {
  if (claim.kind === 'held' || claim.from >= second) {
    return claim;
  }
  return { ...claim, from: second < claim.until ? second : claim.until };
}

/** As text for the database: JSON without floating point. */
export function formatClaims(claims: readonly RecordedClaim[]): string {
  return JSON.stringify(
    claims.map((claim) =>
      claim.kind === 'held'
        ? [claim.account, String(claim.amount)]
        : [claim.account, String(claim.perSecond), String(claim.from), String(claim.until)],
    ),
  );
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
    return from === undefined || until === undefined
      ? { kind: 'held', account, amount: BigInt(first) }
      : { kind: 'usage', account, perSecond: BigInt(first), from: BigInt(from), until: BigInt(until) };
  });
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
