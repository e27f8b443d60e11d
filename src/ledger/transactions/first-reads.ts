/** What a new or changed lease needs to know in any case: asked for before anything else is known, together with the lock. */
import type { CompiledQuery } from 'kysely';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { LedgerRequest } from '../ledger-request.ts';
import type { Statements } from './statements.ts';

/** How long a transaction may wait for its project until what it has read of the time is read again, in microseconds. */
const LOOKS_AHEAD = 10_000_000n;

export interface FirstReads {
  /** Until when `overdue` has the leases that have ended, in microseconds of the epoch. */
  readonly until: bigint;
  readonly overdue: ReturnType<Statements['overdueLeases']>;
  readonly budgets: ReturnType<Statements['budgets']>;
  /** `undefined` = the request has no key. */
  readonly byKey: ReturnType<Statements['leasesByKey']> | undefined;
  /** `undefined` = the request has no id. */
  readonly byId: ReturnType<Statements['leaseById']> | undefined;
  /** The accounts that were expected, and their balances. */
  readonly accounts: readonly string[];
  readonly balances: ReturnType<Statements['balances']> | undefined;
  /** For a new lease. */
  readonly nextId: ReturnType<NonNullable<Statements['nextLeaseIds']>> | undefined;
}

/** `isAhead`: whether it is asked before the project is locked, which may take a while. */
export function firstReads(
  statements: Statements,
  { identity, repetition, current }: Pick<LedgerRequest, 'identity' | 'repetition' | 'current'>,
  now: bigint,
  isAhead = false,
): FirstReads {
  const { projectId: project_id, userId: user_id, region, leaseId: lease_id } = identity;
  // A whole number of seconds: the parts of a group ask the same.
  const until = isAhead ? now - (now % MICROSECONDS_PER_SECOND) + LOOKS_AHEAD : now;
  // Only a commit asks for them: checks share what they have read, in another form.
  const accounts = isAhead ? statements.expected.of(identity) : [];
  return {
    until,
    overdue: statements.overdueLeases({ project_id, now: until }),
    budgets: statements.budgets({ project_id, user_id }),
    byKey: repetition && statements.leasesByKey({ region, project_id, repetition_key: repetition.key }),
    byId: lease_id === null ? undefined : statements.leaseById({ region, project_id, lease_id }),
    accounts,
    balances:
      accounts.length === 0 ? undefined : statements.balances(accounts.map((name) => ({ project_id, name }))),
    // A check needs none.
    nextId: isAhead && current === undefined ? statements.nextLeaseIds?.({ count: 1 }) : undefined,
  };
}

/** All of them, in the order in which they are needed. */
export function listOf({ overdue, budgets, byKey, byId, balances, nextId }: FirstReads): CompiledQuery[] {
  return [overdue, budgets, byKey, byId, balances, nextId].filter((query) => query !== undefined);
}
