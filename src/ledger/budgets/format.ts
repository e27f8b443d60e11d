/** Budgets in words and exact numbers. */
import { type Amount, formatUnitHours } from '../../filter/amount.ts';
import type { Budget } from '../../filter/budget.ts';
import { formatInstant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';

/** `user alice in project climate` */
export function whoseText({ projectId, userId }: Pick<Budget, 'projectId' | 'userId'>): string {
  return userId === null ? `project ${projectId}` : `user ${userId} in project ${projectId}`;
}

/** Why a budget cannot be set: another one is in force then. */
export function overlapText(other: Budget): string {
  return `it would overlap with budget ${other.id} of ${whoseText(other)}, from ${dateText(other.validFrom)} until ${dateText(other.validUntil)}`;
}

/** `second`: of the epoch. */
export function dateText(second: bigint): string {
  return formatInstant(second * MICROSECONDS_PER_SECOND);
}

const UNIT_HOUR = 3_600_000_000n;
const SECONDS_PER_HOUR = 3600n;

/**
 * The size of a budget in unit-hours, exactly as it was written: with up to six decimals. One that was not written so, which only a program could
 * have set, is rounded down.
 */
export function budgetAmountText(amount: Amount): string {
  const fraction = String((amount % UNIT_HOUR) / SECONDS_PER_HOUR)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${amount / UNIT_HOUR}${fraction === '' ? '' : `.${fraction}`}`;
}

/** The columns of a file. An empty `user_id` = for the whole project. */
export function exportedBudget(budget: Budget & { readonly taken: Amount; readonly left: Amount }) {
  const { projectId, userId, validFrom, validUntil, amount, taken, left } = budget;
  return {
    project_id: projectId,
    user_id: userId ?? '',
    valid_from: dateText(validFrom),
    valid_until: dateText(validUntil),
    amount: budgetAmountText(amount),
    taken: formatUnitHours(taken),
    left: formatUnitHours(left, 'down'),
  };
}
