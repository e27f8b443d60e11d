/** Prints budgets and budget requests, and opens budget files. */
import { basename, extname } from 'node:path';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import { type Amount, formatUnitHours } from '../../filter/claim.ts';
import { formatInstant, secondText } from '../../lease/dates.ts';
import { charge } from '../../ledger/accounting/recorded-claim.ts';
import type { BudgetChange, BudgetUsage } from '../../ledger/budgets/budgets.ts';
import type { ImportReport } from '../../ledger/budgets/plan.ts';
import type { BudgetRequest, TakenStep } from '../../ledger/budgets/requests/rows.ts';
import type { LeaseReport } from '../../ledger/reports/reports.ts';
import type { CommandNames } from '../common/command-names.ts';
import { ExitCode, fail, printItems, printJson, printTable, UsageError } from '../common/output.ts';
import type { FormatFlags } from '../common/sources.ts';
import { amountText, leaseObject, usageObject } from '../ledger/output.ts';
import type { BudgetFile, ChargedLease, Listed, ShownProject } from './store.ts';

type Format = FormatFlags['format'];

function budgetObject(
  { id, projectId, userId, validFrom, validUntil, amount, taken, left }: BudgetUsage,
  names: CommandNames,
) {
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

export function chargesOf({ claims }: LeaseReport): ChargedLease['charges'] {
  return claims.flatMap((claim) =>
    claim.kind === 'usage'
      ? [{ account: claim.account, amount: charge(claim), from: claim.from, until: claim.until }]
      : [],
  );
}

/** One decimal; `null` for a budget of 0. */
function percentOf(part: Amount, whole: Amount): string | null {
  if (whole === 0n) {
    return null;
  }
  const tenths = (part * 1000n) / whole;
  return `${tenths / 10n}.${(tenths < 0n ? -tenths : tenths) % 10n}`;
}

export function printBudgets(
  { items, unit, names }: Listed<BudgetUsage>,
  format: Format = 'table',
): Promise<void> {
  return printItems(
    items,
    format,
    (budget) => budgetObject(budget, names),
    ['BUDGET', 'PROJECT', 'USER', 'FROM', 'UNTIL', 'AMOUNT', 'TAKEN', 'LEFT', '%'],
    ({ id, projectId, userId, validFrom, validUntil, amount, taken, left }) => [
      String(id),
      names.project(projectId),
      userId === null ? '' : names.user(userId),
      secondText(validFrom),
      secondText(validUntil),
      amountText(amount, true, unit),
      formatUnitHours(taken),
      formatUnitHours(left, 'down'),
      percentOf(taken, amount) ?? '',
    ],
  );
}

/** `budget show` */
export async function printShown(
  { items: budgets, leases, unit, names }: ShownProject,
  format: Format,
): Promise<void> {
  if (format === 'json') {
    printJson({
      unit,
      budgets: budgets.map((budget) => budgetObject(budget, names)),
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
  await printBudgets({ items: budgets, unit, names });
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
export function printChanges(
  { items, unit }: Omit<Listed<BudgetChange>, 'names'>,
  format: Format,
): Promise<void> {
  return printItems(
    items,
    format,
    ({ at, operation, budget, projectId, userId, validFrom, validUntil, amount, who, reason }) => ({
      at: formatInstant(at),
      operation,
      budget,
      project_id: projectId,
      user_id: userId,
      from: secondText(validFrom),
      until: secondText(validUntil),
      ...usageObject(amount),
      who,
      reason,
    }),
    ['AT', 'OPERATION', 'BUDGET', 'PROJECT', 'USER', 'FROM', 'UNTIL', 'AMOUNT', 'WHO', 'REASON'],
    ({ at, operation, budget, projectId, userId, validFrom, validUntil, amount, who, reason }) => [
      formatInstant(at),
      operation,
      String(budget),
      projectId,
      userId ?? '',
      secondText(validFrom),
      secondText(validUntil),
      amountText(amount, true, unit),
      who,
      reason ?? '',
    ],
  );
}

/** The default limit of the service. */
const MAX_BYTES = 8_388_608;

/** A file is JSON if its name ends in `.json`. @throws UsageError */
export function openBudgetFile(path: string): BudgetFile {
  let text: string;
  try {
    text = readTextFile(path, MAX_BYTES);
  } catch (thrown) {
    throw new UsageError(`${path}: ${systemErrorText(thrown)}`);
  }
  const isJson = extname(path).toLowerCase() === '.json';
  if (!isJson && mayBeCutOff(text)) {
    throw new UsageError(
      `${path}: the file does not end with a line break, so its last line may have been cut off; add one`,
    );
  }
  return { path, text, isJson };
}

/** A part of an amount is a smaller amount. A closing quote shows that the last cell is complete. */
function mayBeCutOff(text: string): boolean {
  const content = text.trimEnd();
  return content !== '' && !content.endsWith('"') && !/[\r\n]/.test(text.slice(content.length));
}

/** Prints what was or would be set, and the errors. Exit code 2 if there are any. */
export async function printImport(path: string, report: ImportReport, format: Format): Promise<void> {
  const { dry_run, lines, mistakes } = report;
  if (format === 'json') {
    printJson(report);
  } else if (mistakes.length === 0) {
    const changes = lines.filter(({ outcome }) => outcome !== 'unchanged');
    if (changes.length > 0) {
      await printTable(
        ['LINE', 'OUTCOME', 'PROJECT', 'USER', 'FROM', 'UNTIL', 'AMOUNT', 'BEFORE'],
        changes.map((one) => [
          String(one.line),
          one.outcome,
          one.project_id,
          one.user_id ?? '',
          one.valid_from,
          one.valid_until,
          one.amount,
          beforeText(one.before),
        ]),
      );
    }
    const { set, changed, unchanged } = report;
    const done = dry_run ? 'a dry run; it would be' : 'done';
    process.stdout.write(`${done}: ${set} set, ${changed} changed, ${unchanged} unchanged\n`);
  }
  for (const { line, field, message } of mistakes) {
    const place = [basename(path), ...(line === null ? [] : [line])].join(':');
    const where = field === null ? '' : `${field}: `;
    fail(`${place}: ${where}${message}`, ExitCode.usage);
  }
}

function beforeText(before: ImportReport['lines'][number]['before']): string {
  return before === null ? '' : `${before.amount} until ${before.valid_until}`;
}

export function printRequests({ items, unit, names }: Listed<BudgetRequest>, format: Format): Promise<void> {
  return printItems(
    items,
    format,
    (request) => requestObject(request, names),
    [
      'REQUEST',
      'STATE',
      'PROJECT',
      'USER',
      'AMOUNT',
      'UNTIL',
      'ASKED BY',
      'WHY',
      'ENDORSED BY',
      'DECIDED BY',
      'REASON',
      'GRANTED',
    ],
    ({ id, state, projectId, userId, amount, validUntil, asked, reason, endorsed, settled, granted }) => [
      String(id),
      state,
      names.project(projectId),
      userId === null ? '' : names.user(userId),
      amountText(amount, true, unit),
      secondText(validUntil),
      asked.who,
      reason,
      endorsed?.who ?? '',
      settled?.who ?? '',
      settled?.reason ?? '',
      granted === null ? '' : `${formatUnitHours(granted.amount)} until ${secondText(granted.validUntil)}`,
    ],
  );
}

function requestObject(request: BudgetRequest, names: CommandNames) {
  const { id, projectId, userId, amount, validUntil, reason, state, asked, granted } = request;
  return {
    request: id,
    project_id: projectId,
    user_id: userId,
    ...names.fields(projectId, userId),
    amount: usageObject(amount),
    until: secondText(validUntil),
    reason,
    state,
    asked: { at: formatInstant(asked.at), who: asked.who },
    endorsed: stepObject(request.endorsed),
    settled: stepObject(request.settled),
    granted: granted && {
      budget: granted.budget,
      amount: usageObject(granted.amount),
      until: secondText(granted.validUntil),
    },
  };
}

function stepObject(taken: TakenStep | null) {
  return taken && { at: formatInstant(taken.at), who: taken.who, reason: taken.reason };
}
