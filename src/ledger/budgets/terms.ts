/** Budgets in user input, with dates and unit-hours, and in the form that the ledger stores. */
import { InvalidRequestError } from '../../base/errors.ts';
import { nameMistake } from '../../base/visible-text.ts';
import {
  type Amount,
  type Budget,
  formatUnitHours,
  MAX_AMOUNT,
  parseMillionths,
  parseUnitHours,
} from '../../filter/claim.ts';
import { type DateValue, MICROSECONDS_PER_SECOND, secondText, toInstant } from '../../lease/dates.ts';
import { textMistake } from '../identity.ts';
import type { WantedBudget } from './budgets.ts';

/** Microseconds of the epoch. Later dates are formatted differently, and no code here parses them. */
const YEAR_10000 = 253_402_300_800_000_000n;

/** Identifies a budget: its owner and its start. */
export interface BudgetKey {
  readonly projectId: string;
  /** Default: the budget belongs to the whole project. */
  readonly userId?: string | null | undefined;
  /** Start of validity, to the second. A text is ISO 8601; without an offset it means UTC. */
  readonly from: DateValue;
}

export interface NewBudget extends BudgetKey {
  /** End of validity, to the second; exclusive. */
  readonly until: DateValue;
  /** In unit-hours, such as node-hours: a decimal number, 0 or more, with up to six decimals. */
  readonly amount: string | number;
}

/** `unit` names the unit in messages. @throws InvalidRequestError with the name of the property as `field` */
export function parseBudget(budget: NewBudget, unit: string): WantedBudget {
  const { projectId, userId } = budget;
  newIdOf('projectId', projectId);
  if (userId !== undefined && userId !== null) {
    newIdOf('userId', userId);
  }
  const key = parseBudgetKey(budget);
  const validUntil = secondOf('until', budget.until);
  if (validUntil <= key.validFrom) {
    throw new InvalidRequestError('until', `expected a date after the start, got ${shown(budget.until)}`);
  }
  return { ...key, validUntil, amount: amountOf(budget.amount, unit) };
}

/**
 * The key of a budget that may exist already; its ids are not validated further. @throws InvalidRequestError
 * with the name of the property as `field`
 */
export function parseBudgetKey({
  projectId,
  userId,
  from,
}: BudgetKey): Pick<Budget, 'projectId' | 'userId' | 'validFrom'> {
  return {
    projectId: idOf('projectId', projectId),
    userId: userId === undefined || userId === null ? null : idOf('userId', userId),
    validFrom: secondOf('from', from),
  };
}

/** Any id that can be stored. @throws InvalidRequestError with `field` */
export function idOf(field: string, id: unknown): string {
  if (typeof id !== 'string' || id === '') {
    throw new InvalidRequestError(field, 'expected an id');
  }
  const mistake = textMistake(id);
  if (mistake !== undefined) {
    throw new InvalidRequestError(field, mistake);
  }
  return id;
}

/** An id for a new budget, not confusable with another one. @throws InvalidRequestError with `field` */
export function newIdOf(field: string, id: unknown): string {
  const text = idOf(field, id);
  const mistake = nameMistake(text);
  if (mistake !== undefined) {
    throw new InvalidRequestError(field, mistake);
  }
  return text;
}

/** A date to the second. @throws InvalidRequestError with `field` */
export function secondOf(field: string, date: DateValue): bigint {
  const instant = toInstant(date);
  if (instant === undefined || instant % MICROSECONDS_PER_SECOND !== 0n || instant >= YEAR_10000) {
    throw new InvalidRequestError(
      field,
      `expected an ISO 8601 date, to the second, such as 2026-12-01 or 2026-12-01T09:00:00Z, got ${shown(date)}`,
    );
  }
  return instant / MICROSECONDS_PER_SECOND;
}

/** More than `parseMillionths` reads. */
const MANY_DIGITS = /^\d{16,}(?:\.\d{1,6}0*)?$/;

/** @throws InvalidRequestError with the field `amount` */
export function amountOf(value: string | number, unit: string): Amount {
  const text = String(value);
  const amount = parseUnitHours(text);
  if (amount === undefined) {
    const isTooLarge = parseMillionths(text) !== undefined || MANY_DIGITS.test(text.trim());
    const expected = !isTooLarge
      ? `a decimal number of ${unit}, 0 or more, with up to six decimals`
      : `at most ${formatUnitHours(MAX_AMOUNT, 'down')} ${unit}`;
    throw new InvalidRequestError('amount', `expected ${expected}, got ${shown(text)}`);
  }
  return amount;
}

const SHOWN = 100;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** `user alice in project climate` */
export function whoseText({ projectId, userId }: Pick<Budget, 'projectId' | 'userId'>): string {
  return userId === null ? `project ${projectId}` : `user ${userId} in project ${projectId}`;
}

/** Why a budget cannot be set: it would overlap with another. */
export function overlapText(other: Budget): string {
  return `it would overlap with budget ${other.id} of ${whoseText(other)}, from ${secondText(other.validFrom)} until ${secondText(other.validUntil)}`;
}

const UNIT_HOUR = 3_600_000_000n;
const SECONDS_PER_HOUR = 3600n;

/**
 * The amount of a budget in unit-hours, exactly as entered, with up to six decimals. Amounts with more
 * precision, which only a program could have set, are rounded down.
 */
export function budgetAmountText(amount: Amount): string {
  const fraction = String((amount % UNIT_HOUR) / SECONDS_PER_HOUR)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${amount / UNIT_HOUR}${fraction === '' ? '' : `.${fraction}`}`;
}

/** The columns of a file. Empty `user_id` = whole project. */
export function exportedBudget(budget: Budget & { readonly taken: Amount; readonly left: Amount }) {
  const { projectId, userId, validFrom, validUntil, amount, taken, left } = budget;
  return {
    project_id: projectId,
    user_id: userId ?? '',
    valid_from: secondText(validFrom),
    valid_until: secondText(validUntil),
    amount: budgetAmountText(amount),
    taken: formatUnitHours(taken),
    left: formatUnitHours(left, 'down'),
  };
}
