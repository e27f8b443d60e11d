/** How budgets are printed. */

import { type Amount, formatUnitHours } from '../../filter/amount.ts';
import { formatInstant } from '../../lease/dates.ts';
import { charge } from '../../ledger/accounting/recorded-claim.ts';
import type { BudgetChange, BudgetStanding } from '../../ledger/budgets/budgets.ts';
import type { LeaseReport } from '../../ledger/reports/reports.ts';
import type { CommandNames } from '../command-names.ts';
import { amountText, leaseObject, secondText, usageObject } from '../ledger/output.ts';
import { printJson, printTable } from '../output.ts';

export function budgetRow(budget: BudgetStanding, unit: string, names: CommandNames): string[] {
  const { id, projectId, userId, validFrom, validUntil, amount, taken, left } = budget;
  return [
    String(id),
    names.project(projectId),
    userId === null ? '' : names.user(userId),
    secondText(validFrom),
    secondText(validUntil),
    `${formatUnitHours(amount)} ${unit}`,
    formatUnitHours(taken),
    formatUnitHours(left, 'down'),
    percentOf(taken, amount) ?? '',
  ];
}

export function budgetStandingObject(budget: BudgetStanding, names: CommandNames) {
  const { id, projectId, userId, validFrom, validUntil, amount, taken, left } = budget;
  return {
    budget: id,
    project_id: projectId,
    user_id: userId,
    ...names.fields(projectId, userId),
    from: secondText(validFrom),
    until: secondText(validUntil),
    amount: usageObject(amount),
    taken: usageObject(taken),
    left: { unit_hours: formatUnitHours(left, 'down'), amount: String(left) },
    percent: percentOf(taken, amount),
  };
}

export function changeObject(change: BudgetChange) {
  const { budget, projectId, userId, operation, validFrom, validUntil, who, reason } = change;
  return {
    at: formatInstant(change.at),
    operation,
    budget,
    project_id: projectId,
    user_id: userId,
    from: secondText(validFrom),
    until: secondText(validUntil),
    ...usageObject(change.amount),
    who,
    reason,
  };
}

/** What a lease takes from budgets. */
export function chargesOf({
  claims,
}: LeaseReport): { account: string; amount: Amount; from: bigint; until: bigint }[] {
  return claims.flatMap((claim) =>
    claim.kind === 'usage'
      ? [{ account: claim.account, amount: charge(claim), from: claim.from, until: claim.until }]
      : [],
  );
}

/** With one decimal; `null` for a budget of 0. */
function percentOf(part: Amount, whole: Amount): string | null {
  if (whole === 0n) {
    return null;
  }
  const tenths = (part * 1000n) / whole;
  return `${tenths / 10n}.${(tenths < 0n ? -tenths : tenths) % 10n}`;
}

const BUDGET_COLUMNS = [
  'BUDGET',
  'PROJECT',
  'USER',
  'FROM',
  'UNTIL',
  'AMOUNT',
  'TAKEN',
  'LEFT',
  '%',
] as const;

export function printBudgets(
  budgets: readonly BudgetStanding[],
  unit: string,
  names: CommandNames,
): Promise<void> {
  return printTable(
    BUDGET_COLUMNS,
    budgets.map((budget) => budgetRow(budget, unit, names)),
  );
}

interface ShownProject {
  readonly budgets: readonly BudgetStanding[];
  readonly leases: readonly {
    readonly lease: LeaseReport;
    readonly charges: readonly { account: string; amount: Amount; from: bigint; until: bigint }[];
  }[];
  readonly unit: string;
  readonly names: CommandNames;
}

/** `budget show` */
export async function printShown(
  { budgets, leases, unit, names }: ShownProject,
  format: 'table' | 'json',
): Promise<void> {
  if (format === 'json') {
    printJson({
      unit,
      budgets: budgets.map((budget) => budgetStandingObject(budget, names)),
      leases: leases.map(({ lease, charges }) => ({
        ...leaseObject(lease, names),
        charges: charges.map(({ account, amount, from, until }) => ({
          account,
          ...usageObject(amount),
          from: secondText(from),
          until: secondText(until),
        })),
      })),
    });
    return;
  }
  if (budgets.length === 0 && leases.length === 0) {
    return;
  }
  await printBudgets(budgets, unit, names);
  process.stdout.write('\n');
  await printTable(
    ['ROW', 'LEASE', 'USER', 'NAME', 'CHARGED TO', 'AMOUNT', 'FROM', 'UNTIL'],
    leases.flatMap(({ lease, charges }) =>
      charges.map(({ account, amount, from, until }) => [
        `#${lease.row}`,
        lease.leaseId ?? '',
        names.user(lease.userId),
        lease.name,
        account,
        amountText(amount, true, unit),
        secondText(from),
        secondText(until),
      ]),
    ),
  );
}

/** `budget history` */
export function printChanges(changes: readonly BudgetChange[], unit: string): Promise<void> {
  return printTable(
    ['AT', 'OPERATION', 'BUDGET', 'PROJECT', 'USER', 'FROM', 'UNTIL', 'AMOUNT', 'WHO', 'REASON'],
    changes.map((change) => [
      formatInstant(change.at),
      change.operation,
      String(change.budget),
      change.projectId,
      change.userId ?? '',
      secondText(change.validFrom),
      secondText(change.validUntil),
      amountText(change.amount, true, unit),
      change.who,
      change.reason ?? '',
    ]),
  );
}
