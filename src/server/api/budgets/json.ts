/** JSON of budgets and their changes. */
import { z } from 'zod';
import { secondText } from '../../../lease/dates.ts';
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
  .meta({ description: 'Size in unit-hours, exactly as it was set.', examples: ['1000'] });
const owner = {
  project: accountSchema,
  user: accountSchema.nullable().meta({ description: 'null = the whole project.' }),
  valid_from: timeSchema,
  valid_until: timeSchema.meta({ description: 'End of validity, exclusive.' }),
  amount: exactSchema,
};
export const unit = z
  .string()
  .meta({ description: 'The label of the unit: the option `usage_budget_unit`.', examples: ['node-hours'] });
const reason = z.string().nullable().meta({ description: 'null = no reason was given.' });

export const budgetSchema = z.strictObject({
  id: idSchema,
  ...owner,
  unit,
  taken: amountSchema.meta({ description: 'Past and planned usage of its leases; rounded up.' }),
  left: amountSchema.meta({
    description: 'Rounded down. Below 0 = the budget was reduced to less than was already taken.',
  }),
  exact: z
    .strictObject({ amount: z.string(), taken: z.string() })
    .meta({ description: 'The same in millionths of a unit times seconds: whole numbers.' }),
  etag: z.string().meta({
    description: 'For `If-Match`: changes with each change of the budget.',
    examples: ['"42-1796083200000000"'],
  }),
  changed: z
    .strictObject({ at: timeSchema, who: z.string(), reason })
    .meta({ description: 'The latest change.' }),
});

export const budgetChangeSchema = z.strictObject({
  id: idSchema.meta({ description: 'Increases with each change.' }),
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
