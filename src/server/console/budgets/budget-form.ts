/** Forms of budgets: their fields as they were sent, and what is wrong at which. */
import type { ApiError } from '../../api/route.ts';

/** Names of fields, as the API has them. */
export const BUDGET_FIELDS = [
  'project_id',
  'user_id',
  'amount',
  'valid_from',
  'valid_until',
  'reason',
] as const;
export type BudgetField = (typeof BUDGET_FIELDS)[number];
export type BudgetValues = Readonly<Record<BudgetField, string>>;

/** In characters: what is longer is refused by whoever reads it. */
const LONGEST = 2000;

export function budgetValues(form: URLSearchParams): BudgetValues {
  return Object.fromEntries(
    BUDGET_FIELDS.map((name) => [name, (form.get(name) ?? '').trim().slice(0, LONGEST)]),
  ) as Record<BudgetField, string>;
}

export interface FormMistake {
  /** `undefined` = it is about the whole form. */
  readonly field: BudgetField | undefined;
  readonly message: string;
}

export function mistakeOf({ message, field }: ApiError): FormMistake {
  return { field: BUDGET_FIELDS.find((name) => name === field), message };
}

/** Whether the person can mend it: in the form, or by looking at what others have done meanwhile. */
export function isMendable({ status }: ApiError): boolean {
  return status === 400 || status === 409 || status === 412 || status === 422;
}
