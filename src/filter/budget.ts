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

/** A row of the table. */
export function budgetOf(row: {
  id: bigint;
  project_id: string;
  user_id: string | null;
  valid_from: bigint;
  valid_until: bigint;
  amount: bigint;
}): Budget {
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    validFrom: row.valid_from,
    validUntil: row.valid_until,
    amount: row.amount,
  };
}
