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
