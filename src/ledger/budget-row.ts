import type { Budget } from '../filter/budget.ts';

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
