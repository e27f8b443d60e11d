/**
 * Charges usage to budgets: each pays for its period; time without a budget is charged to an account with the
 * limit 0.
 */

import { secondText, toInstant } from '../lease/dates.ts';
import {
  type Amount,
  type Budget,
  budgetAccount,
  type Claim,
  ceil,
  floor,
  formatUnitHours,
  larger,
  parseUnitHours,
  type Shortage,
  smaller,
} from './claim.ts';

/** Whole seconds: from `from` (inclusive) to `until` (exclusive). */
interface Seconds {
  readonly from: bigint;
  readonly until: bigint;
}

/** Usage to charge, and its budgets. */
export interface BudgetedUsage {
  /** In microseconds of the epoch. */
  readonly start: bigint;
  readonly end: bigint;
  readonly perSecond: Amount;
  /** Of the project, and of the user in it. */
  readonly budgets: readonly Budget[];
  /** Whether usage without a project budget is refused. */
  readonly isRequired: boolean;
  readonly userId: string;
  /** For messages: `the project climate`. */
  readonly project: string;
  /** For messages: `the user alice`. */
  readonly user: string;
  /** For messages: `node-hours`. */
  readonly unit: string;
  /** What is charged, for messages: `lease` or `launch`. */
  readonly what: string;
}

/** A project, or a user in a project, with the budgets that pay. */
interface Payer {
  readonly whose: string;
  readonly budgets: readonly Budget[];
  /** The account for usage at times without a budget. Its limit is 0. */
  readonly uncovered: string;
}

/** The claims of the usage on the budgets of the project and, if there are any, of the user in it. */
export function budgetClaims(usage: BudgetedUsage): Claim[] {
  const { budgets, userId, project, user } = usage;
  const ofProject = budgets.filter((budget) => budget.userId === null);
  const ofUser = budgets.filter((budget) => budget.userId !== null);
  const isUnlimited = ofProject.length === 0 && !usage.isRequired;
  const payers: Payer[] = [
    ...(isUnlimited ? [] : [{ whose: project, budgets: ofProject, uncovered: 'usage_budget/uncovered' }]),
    ...(ofUser.length === 0
      ? []
      : [
          {
            whose: `${user} in ${project}`,
            budgets: ofUser,
            uncovered: `usage_budget/uncovered/user/${userId}`,
          },
        ]),
  ];
  return payers.flatMap((payer) => charged(usage, payer));
}

/** Budgets of one payer never overlap: each pays for its period. */
function charged(usage: BudgetedUsage, { whose, budgets, uncovered }: Payer): Claim[] {
  const { perSecond } = usage;
  const byTime = [...budgets].sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1));
  const whole: Seconds = { from: floor(usage.start), until: ceil(usage.end) };
  const claims: Claim[] = [];
  let { from } = whole;
  const chargeUncovered = (until: bigint) => {
    if (from < until) {
      const refuse = () => notCoveredMessage(usage.what, whose, byTime, whole);
      claims.push({ kind: 'usage', account: uncovered, perSecond, from, until, limit: 0n, refuse });
    }
  };
  for (const budget of byTime) {
    const part = { from: larger(budget.validFrom, from), until: smaller(budget.validUntil, whole.until) };
    if (part.from >= part.until) {
      continue;
    }
    chargeUncovered(part.from);
    const isWhole = part.from === whole.from && part.until === whole.until;
    claims.push({
      kind: 'usage',
      account: budgetAccount(budget),
      perSecond,
      ...part,
      limit: budget.amount,
      refuse: (shortage) => exceededMessage(usage, whose, budget, isWhole ? undefined : part, shortage),
    });
    from = part.until;
  }
  chargeUncovered(whole.until);
  return claims;
}

function exceededMessage(
  { unit, what }: BudgetedUsage,
  whose: string,
  budget: Budget,
  part: Seconds | undefined,
  { asked, left, isUpdate }: Shortage,
): string {
  const subject = isUpdate ? 'The change would cost' : `The ${what} would cost`;
  const more = isUpdate ? ' more' : '';
  const when = part === undefined ? '' : ` from ${secondText(part.from)} to ${secondText(part.until)}`;
  return `${subject} ${formatUnitHours(asked, 'up')} ${unit}${more}${when}; ${whose} has ${formatUnitHours(left, 'down')} ${unit} left, of a budget that is valid until ${secondText(budget.validUntil)}.`;
}

/** What a budget lacks for a lease, from the text of a refusal. */
interface MissingBudget {
  /** `undefined` = no budget at all, or none for the whole time. */
  readonly amount: Amount | undefined;
  /** End of the budget that is too small, in seconds of the epoch; `undefined` = no budget. */
  readonly validUntil: bigint | undefined;
  /** Whether it is a user's budget. */
  readonly isOfUser: boolean;
}

const EXCEEDED =
  / would cost ([\d.]+) .*; (user|project) .* has ([\d.]+) \S.* left, of a budget that is valid until (\S+)\.$/s;
/** Our messages are shorter; the pattern is slow on long texts. */
const LONGEST = 2000;
const NOT_COVERED = /^(User|Project) .* has no budget(?:\.| for a )/s;
/** Between the sentences of a refusal by several limits. */
const NEXT = /(?<=\.) (?=(?:The (?:change|launch|lease) would cost|Project|User|And) )/;

/**
 * Parses a refusal with the messages above; empty = it has others. Ids are user-chosen: use the result only as
 * a suggestion.
 */
export function missingBudgets(refusal: string): MissingBudget[] {
  return refusal.split(NEXT).flatMap((message) => missingBudget(message) ?? []);
}

function missingBudget(message: string): MissingBudget | undefined {
  if (message.length > LONGEST) {
    return undefined;
  }
  const exceeded = EXCEEDED.exec(message);
  if (exceeded !== null) {
    const [, asked = '', owner, size = '', end = ''] = exceeded;
    const cost = parseUnitHours(asked);
    const left = parseUnitHours(size);
    const amount = cost === undefined || left === undefined ? undefined : cost - left;
    const until = toInstant(end);
    const validUntil = until === undefined ? undefined : floor(until);
    return { amount, validUntil, isOfUser: owner === 'user' };
  }
  const owner = NOT_COVERED.exec(message)?.[1];
  return owner === undefined
    ? undefined
    : { amount: undefined, validUntil: undefined, isOfUser: owner === 'User' };
}

/** Limit of budgets in one message; the latest ones are shown. */
const MOST_SHOWN = 5;

/** `budgets`: by time. */
function notCoveredMessage(
  what: string,
  whose: string,
  budgets: readonly Budget[],
  { from, until }: Seconds,
): string {
  const shown = budgets
    .slice(-MOST_SHOWN)
    .map(({ validFrom, validUntil }) => `from ${secondText(validFrom)} to ${secondText(validUntil)}`);
  const more = budgets.length > MOST_SHOWN ? [`and ${budgets.length - MOST_SHOWN} earlier`] : [];
  const valid = [...shown, ...more].join(', ');
  const asked = `for a ${what} from ${secondText(from)} to ${secondText(until)}`;
  const lack = `${whose.slice(0, 1).toUpperCase()}${whose.slice(1)} has no budget`;
  return valid === '' ? `${lack}.` : `${lack} ${asked}; it has one ${valid}.`;
}
