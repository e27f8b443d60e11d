import { type Instant, MICROSECONDS_PER_SECOND } from '../lease/dates.ts';
import type { Amount } from './amount.ts';

/** What leases of a project, or of one user in it, may use within a period. */
export interface Budget {
  readonly id: bigint;
  readonly projectId: string;
  /** `null` = for the whole project. */
  readonly userId: string | null;
  /** In seconds of the epoch. */
  readonly validFrom: bigint;
  /** The first second after the period. */
  readonly validUntil: bigint;
  readonly amount: Amount;
}

/** The account to which leases that this budget pays for are charged. */
export function budgetAccount({ id }: Pick<Budget, 'id'>): string {
  return `usage_budget/${id}`;
}

/** The id of the budget whose account has this name; `undefined` = it is the account of something else. */
export function budgetIdOf(account: string): bigint | undefined {
  const id = /^usage_budget\/(\d{1,18})$/.exec(account)?.[1];
  return id === undefined ? undefined : BigInt(id);
}

/** The second in which an instant lies. */
export function floor(instant: Instant): bigint {
  return instant / MICROSECONDS_PER_SECOND;
}

/** The first second that does not begin before an instant. */
export function ceil(instant: Instant): bigint {
  return (instant + MICROSECONDS_PER_SECOND - 1n) / MICROSECONDS_PER_SECOND;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
