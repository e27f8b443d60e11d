/** What is taken of budgets, for metrics: how many are nearly or wholly taken, and which. The cost is bounded. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Amount } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';

/** By how much of a budget is taken. Each budget is in one class; one of 0 is in the last. */
export const BUDGET_CLASSES = [
  'under_50_percent',
  '50_to_75_percent',
  '75_to_90_percent',
  '90_to_100_percent',
  '100_percent',
] as const;

export type BudgetClass = (typeof BUDGET_CLASSES)[number];

/** The newest budgets that are counted: the cost must not grow with the age of the ledger. */
export const COUNTED_BUDGETS = 10_000;

/** How many of the budgets in force are in each class. @throws LedgerUnavailableError */
export async function budgetUse(ledger: Ledger, wait: Wait): Promise<Map<BudgetClass, number>> {
  const { queries } = ledger.database;
  const second = ledger.now() / MICROSECONDS_PER_SECOND;
  // Fractions are subtracted: a product of two amounts would not fit into 64 bits.
  const query = sql<{ taken: BudgetClass; budgets: bigint }>`
    select taken, count(*) as budgets from (
      select case
        when coalesce(balance, 0) >= amount then '100_percent'
        when balance >= amount - amount / 10 then '90_to_100_percent'
        when balance >= amount - amount / 4 then '75_to_90_percent'
        when balance >= amount - amount / 2 then '50_to_75_percent'
        else 'under_50_percent' end as taken
      from (select * from budgets order by id desc limit ${sql.lit(COUNTED_BUDGETS)}) as newest
      left join accounts on accounts.project_id = newest.project_id
        and accounts.name = 'usage_budget/' || newest.id
      where removed_at is null and valid_from <= ${second} and valid_until > ${second}
    ) as classified group by taken`;
  // Not `ledger.read`: a look at the metrics is no use of the ledger, and must not count itself.
  const found = await ledger.database.read(() => rows(query.compile(queries)), wait);
  const counts = new Map<BudgetClass, number>(BUDGET_CLASSES.map((one) => [one, 0]));
  for (const { taken, budgets } of found) {
    counts.set(taken, Number(budgets));
  }
  return counts;
}

/** A budget in force, and what leases have taken of it. */
export interface UsedBudget {
  readonly projectId: string;
  /** `null` = for the whole project. */
  readonly userId: string | null;
  readonly amount: Amount;
  readonly taken: Amount;
}

/** The budgets in force of which the largest share is taken, up to a number. @throws LedgerUnavailableError */
export async function fullestBudgets(ledger: Ledger, most: number, wait: Wait): Promise<UsedBudget[]> {
  const { queries } = ledger.database;
  const second = ledger.now() / MICROSECONDS_PER_SECOND;
  const query = sql<{ project_id: string; user_id: string | null; amount: Amount; taken: Amount }>`
    select newest.project_id as project_id, user_id, amount, coalesce(balance, 0) as taken
    from (select * from budgets order by id desc limit ${sql.lit(COUNTED_BUDGETS)}) as newest
    left join accounts on accounts.project_id = newest.project_id
      and accounts.name = 'usage_budget/' || newest.id
    where removed_at is null and valid_from <= ${second} and valid_until > ${second}
    order by case when amount > 0 then coalesce(balance, 0) * 1.0 / amount else 1 end desc, newest.id
    limit ${most}`;
  const found = await ledger.database.read(() => rows(query.compile(queries)), wait);
  return found.map(({ project_id: projectId, user_id: userId, amount, taken }) => ({
    ...{ projectId, userId, amount, taken },
  }));
}
