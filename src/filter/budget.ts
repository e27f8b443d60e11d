import type { Amount } from './amount.ts';

/** So much may leases of a project, or of one user in it, use within a time. */
export interface Budget {
  readonly id: bigint;
  readonly projectId: string;
  /** `null` = of the whole project. */
  readonly userId: string | null;
  /** In seconds of the epoch. */
  readonly validFrom: bigint;
  /** The first second that it does not pay for any more. */
  readonly validUntil: bigint;
  readonly amount: Amount;
}

/** The account that leases charge what this budget pays for. */
export function budgetAccount({ id }: Pick<Budget, 'id'>): string {
  return `usage_budget/${id}`;
}
