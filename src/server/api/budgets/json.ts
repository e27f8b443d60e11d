/** Budgets and their changes as the API writes them. */
import { z } from 'zod';
import type { BudgetChange } from '../../../ledger/budgets/budgets.ts';
import { budgetAmountText } from '../../../ledger/budgets/terms.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import { budgetEtag } from '../../budgets/change-budgets.ts';
import {
  type Accounts,
  accountSchema,
  amountSchema,
  costText,
  leftText,
  secondText,
  timeSchema,
  timeText,
} from '../shown.ts';

export const idSchema = z
  .string()
  .regex(/^\d+$/)
  .meta({ examples: ['17'] });
export const exactSchema = z
  .string()
  .regex(/^\d+(\.\d{1,6})?$/)
  .meta({ description: 'Its size in unit-hours, exactly as it was set.', examples: ['1000'] });
const owner = {
  project: accountSchema,
  user: accountSchema.nullable().meta({ description: 'null = it is the budget of the whole project.' }),
  valid_from: timeSchema,
  valid_until: timeSchema.meta({ description: 'The first second that it does not pay for.' }),
  amount: exactSchema,
};
export const unit = z
  .string()
  .meta({ description: '`usage_budget_unit`, for display.', examples: ['node-hours'] });
const reason = z.string().nullable().meta({ description: 'null = none was given.' });

export const budgetSchema = z.strictObject({
  id: idSchema,
  ...owner,
  unit,
  taken: amountSchema.meta({ description: 'What leases have used, and are still to use; rounded up.' }),
  left: amountSchema.meta({
    description: 'Rounded down. Less than 0 = it was made smaller than what was already taken.',
  }),
  exact: z
    .strictObject({ amount: z.string(), taken: z.string() })
    .meta({ description: 'The same in millionths of a unit times seconds: whole numbers.' }),
  etag: z.string().meta({
    description: 'For `If-Match`: another one after each change.',
    examples: ['"42-1796083200000000"'],
  }),
  changed: z
    .strictObject({ at: timeSchema, who: z.string(), reason })
    .meta({ description: 'Its latest change.' }),
});

export const budgetChangeSchema = z.strictObject({
  id: idSchema.meta({ description: 'Rises with each change.' }),
  at: timeSchema,
  operation: z.enum(['set', 'removed']),
  budget_id: idSchema,
  ...owner,
  unit,
  exact: z
    .strictObject({ amount: z.string() })
    .meta({ description: 'The amount in millionths of a unit times seconds.' }),
  who: z.string(),
  reason,
});

export function budgetJson(budget: BudgetView, accounts: Accounts) {
  return {
    id: String(budget.id),
    ...ownerJson(budget, accounts),
    unit: accounts.unit,
    taken: costText(budget.taken),
    left: leftText(budget.left),
    exact: { amount: String(budget.amount), taken: String(budget.taken) },
    etag: budgetEtag(budget),
    changed: { at: timeText(budget.changedAt), who: budget.changedBy, reason: budget.reason },
  };
}

export function budgetChangeJson(change: BudgetChange, accounts: Accounts) {
  return {
    id: String(change.id),
    at: timeText(change.at),
    operation: change.operation,
    budget_id: String(change.budget),
    ...ownerJson(change, accounts),
    unit: accounts.unit,
    exact: { amount: String(change.amount) },
    who: change.who,
    reason: change.reason,
  };
}

function ownerJson(
  of: Pick<BudgetView, 'projectId' | 'userId' | 'validFrom' | 'validUntil' | 'amount'>,
  accounts: Accounts,
) {
  return {
    ...accounts.owner(of),
    valid_from: secondText(of.validFrom),
    valid_until: secondText(of.validUntil),
    amount: budgetAmountText(of.amount),
  };
}
