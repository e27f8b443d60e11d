/** Finds the row of a request. */

import type { CompiledQuery } from 'kysely';
import type { Repetition } from '../../filter/verdict.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { alternativesOf, refundOf } from '../accounting/alternatives.ts';
import { isComparable } from '../accounting/demand.ts';
import type { LeaseIdentity } from '../identity.ts';
import type { LedgerRequest } from '../ledger-request.ts';
import { rows, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import type { Statements } from './statements.ts';

/** Identifies a lease without a known id. Names are not used: Blazar renames leases without a call. */
export interface LeaseShape {
  readonly start: bigint;
  readonly end: bigint;
  /** From `demandOf`. */
  readonly demand: string;
}

/** The row with this id in the same region and project: elsewhere it is another lease. */
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
 * The row of a lease without a known id: one with the same user, dates and reservations. Of several, the
 * cheapest: whichever it really is, the remaining charges cover the remaining leases.
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
            // A row of the first version does not contain its reservations: it may be any of these leases.
            (one.demand === demand || !isComparable(one.demand)),
        ),
      )
      .map((row) => [row.id, row]),
  );
  return cheapest([...fitting.values()], now);
}

/** `undefined` = no row is the cheapest in every account, so the safe refund is unknown. */
function cheapest(found: readonly LeaseRow[], now: bigint): LeaseRow | undefined {
  const priced = found.map((row) => ({
    row,
    refund: refundOf(alternativesOf(row), now / MICROSECONDS_PER_SECOND),
  }));
  const isCheaper = (one: ReadonlyMap<string, bigint>, other: ReadonlyMap<string, bigint>) =>
    [...one].every(([account, amount]) => amount <= (other.get(account) ?? 0n));
  return priced.find(({ refund }) => priced.every((other) => isCheaper(refund, other.refund)))?.row;
}

/** The row that the same request recorded before: same key, same content. */
export function repeatedAmong(
  ofKey: readonly LeaseRow[],
  { content }: Pick<Repetition, 'content'>,
  now: bigint,
): LeaseRow | undefined {
  return ofKey.find((row) => row.repetition_content === content && row.ends_at > now);
}

/**
 * How long a transaction may wait for its project before time-dependent rows are read again, in microseconds.
 */
const LOOKS_AHEAD = 10_000_000n;

export interface FirstReads {
  /** End of the time for which `overdue` has the ended leases, in microseconds of the epoch. */
  readonly until: bigint;
  readonly overdue: ReturnType<Statements['overdueLeases']>;
  readonly budgets: ReturnType<Statements['budgets']>;
  /** `undefined` = the request has no key. */
  readonly byKey: ReturnType<Statements['leasesByKey']> | undefined;
  /** `undefined` = the request has no id. */
  readonly byId: ReturnType<Statements['leaseById']> | undefined;
  /** The expected accounts and their balances. */
  readonly accounts: readonly string[];
  readonly balances: ReturnType<Statements['balances']> | undefined;
  /** For a new lease. */
  readonly nextId: ReturnType<NonNullable<Statements['nextLeaseIds']>> | undefined;
}

/** `isAhead`: whether it is read before the project is locked, which may take a while. */
export function firstReads(
  statements: Statements,
  { identity, repetition, current }: Pick<LedgerRequest, 'identity' | 'repetition' | 'current'>,
  now: bigint,
  isAhead = false,
): FirstReads {
  const { projectId: project_id, userId: user_id, region, leaseId: lease_id } = identity;
  // Whole seconds: the parts of a group then send equal queries.
  const until = isAhead ? now - (now % MICROSECONDS_PER_SECOND) + LOOKS_AHEAD : now;
  // Only for commits: checks share their reads in another form.
  const accounts = isAhead ? statements.expected.of(identity) : [];
  return {
    until,
    overdue: statements.overdueLeases({ project_id, now: until }),
    budgets: statements.budgets([{ project_id, user_id }]),
    byKey: repetition && statements.leasesByKey({ region, project_id, repetition_key: repetition.key }),
    byId: lease_id === null ? undefined : statements.leaseById({ region, project_id, lease_id }),
    accounts,
    balances:
      accounts.length === 0 ? undefined : statements.balances(accounts.map((name) => ({ project_id, name }))),
    // Checks need no id.
    nextId: isAhead && current === undefined ? statements.nextLeaseIds?.({ count: 1 }) : undefined,
  };
}

/** All queries, in the order of use. */
export function listOf({ overdue, budgets, byKey, byId, balances, nextId }: FirstReads): CompiledQuery[] {
  return [overdue, budgets, byKey, byId, balances, nextId].filter((query) => query !== undefined);
}
