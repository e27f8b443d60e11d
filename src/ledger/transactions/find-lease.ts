/** Finds the row of the ledger that a request is about. */
import type { Repetition } from '../../filter/call.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { alternativesOf, refundOf } from '../accounting/alternatives.ts';
import { isComparable } from '../accounting/demand.ts';
import type { LeaseIdentity } from '../identity.ts';
import { rows, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import type { Statements } from './statements.ts';

/** What identifies a lease whose id is unknown. A name does not: Blazar renames leases without telling us. */
export interface LeaseShape {
  readonly start: bigint;
  readonly end: bigint;
  /** From `demandOf`. */
  readonly demand: string;
}

/** The row with this id, in the same region and project: elsewhere it is another lease. */
export function* findById(
  statements: Statements,
  { leaseId: lease_id, region, projectId: project_id }: LeaseIdentity,
): Work<LeaseRow | undefined> {
  if (lease_id === null) {
    return undefined;
  }
  const [known] = yield* rows(statements.leaseById({ region, project_id, lease_id }));
  return known;
}

/**
 * The row of a lease without a known id: one with the same user, dates and reservations. When several match, the cheapest: whichever
 * it really is, what stays charged covers the leases that are left.
 */
export function* findByShape(
  statements: Statements,
  { region, projectId: project_id, userId: user_id }: LeaseIdentity,
  { start: starts_at, end, demand }: LeaseShape,
  {
    now,
    isOver,
  }: { readonly now: bigint /** Whether leases past their end match, too. */; readonly isOver: boolean },
): Work<LeaseRow | undefined> {
  const nameless = { region, project_id, user_id };
  const found = [
    ...(yield* rows(statements.namelessLeases({ ...nameless, starts_at }))),
    ...(yield* rows(statements.unsettledNamelessLeases(nameless))),
  ];
  const fitting = new Map(
    found
      .filter((row) => isOver || row.ends_at > now)
      .filter((row) =>
        alternativesOf(row).some(
          (one) =>
            one.start === starts_at &&
            one.end === end &&
            // A row of the first version does not say what it reserves: it may be any of them.
            (one.demand === demand || !isComparable(one.demand)),
        ),
      )
      .map((row) => [row.id, row]),
  );
  return cheapest([...fitting.values()], now);
}

/** `undefined` when no row is the cheapest in every account: then it is unknown what may be given back. */
function cheapest(found: readonly LeaseRow[], now: bigint): LeaseRow | undefined {
  const priced = found.map((row) => ({
    row,
    refund: refundOf(alternativesOf(row), now / MICROSECONDS_PER_SECOND),
  }));
  const isCheaper = (one: ReadonlyMap<string, bigint>, other: ReadonlyMap<string, bigint>) =>
    [...one].every(([account, amount]) => amount <= (other.get(account) ?? 0n));
  return priced.find(({ refund }) => priced.every((other) => isCheaper(refund, other.refund)))?.row;
}

/** The row that the same request has recorded before: same key, same content. */
export function repeatedAmong(
  ofKey: readonly LeaseRow[],
  { content }: Pick<Repetition, 'content'>,
  now: bigint,
): LeaseRow | undefined {
  return ofKey.find((row) => row.repetition_content === content && row.ends_at > now);
}
