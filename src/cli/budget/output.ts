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
import { ExitCode, fail, printItems, printJson, printRows, UsageError } from '../common/output.ts';
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
  return printItems(items, format, (budget) => budgetObject(budget, names), {
    BUDGET: ({ id }) => id,
    PROJECT: ({ projectId }) => names.project(projectId),
    USER: ({ userId }) => userId && names.user(userId),
    FROM: ({ validFrom }) => secondText(validFrom),
    UNTIL: ({ validUntil }) => secondText(validUntil),
    AMOUNT: ({ amount }) => amountText(amount, true, unit),
    TAKEN: ({ taken }) => formatUnitHours(taken),
    LEFT: ({ left }) => formatUnitHours(left, 'down'),
    '%': ({ taken, amount }) => percentOf(taken, amount),
  });
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
  await printRows(
    leases.flatMap(({ lease, charges }) => charges.map((one) => ({ ...one, lease }))),
    {
      ROW: ({ lease }) => `#${lease.row}`,
      LEASE: ({ lease }) => lease.leaseId,
      USER: ({ lease }) => names.user(lease.userId),
      NAME: ({ lease }) => lease.name,
      'CHARGED TO': ({ account }) => account,
      AMOUNT: ({ amount }) => amountText(amount, true, unit),
      FROM: ({ from }) => secondText(from),
      UNTIL: ({ until }) => secondText(until),
    },
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
    {
      AT: ({ at }) => formatInstant(at),
      OPERATION: ({ operation }) => operation,
      BUDGET: ({ budget }) => budget,
      PROJECT: ({ projectId }) => projectId,
      USER: ({ userId }) => userId,
      FROM: ({ validFrom }) => secondText(validFrom),
      UNTIL: ({ validUntil }) => secondText(validUntil),
      AMOUNT: ({ amount }) => amountText(amount, true, unit),
      WHO: ({ who }) => who,
      REASON: ({ reason }) => reason,
    },
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
      await printRows(changes, {
        LINE: ({ line }) => line,
        OUTCOME: ({ outcome }) => outcome,
        PROJECT: ({ project_id }) => project_id,
        USER: ({ user_id }) => user_id,
        FROM: ({ valid_from }) => valid_from,
        UNTIL: ({ valid_until }) => valid_until,
        AMOUNT: ({ amount }) => amount,
        BEFORE: ({ before }) => before && `${before.amount} until ${before.valid_until}`,
      });
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

export function printRequests({ items, unit, names }: Listed<BudgetRequest>, format: Format): Promise<void> {
  return printItems(items, format, (request) => requestObject(request, names), {
    REQUEST: ({ id }) => id,
    STATE: ({ state }) => state,
    PROJECT: ({ projectId }) => names.project(projectId),
    USER: ({ userId }) => userId && names.user(userId),
    AMOUNT: ({ amount }) => amountText(amount, true, unit),
    UNTIL: ({ validUntil }) => secondText(validUntil),
    'ASKED BY': ({ asked }) => asked.who,
    WHY: ({ reason }) => reason,
    'ENDORSED BY': ({ endorsed }) => endorsed?.who,
    'DECIDED BY': ({ settled }) => settled?.who,
    REASON: ({ settled }) => settled?.reason,
    GRANTED: ({ granted }) =>
      granted && `${formatUnitHours(granted.amount)} until ${secondText(granted.validUntil)}`,
  });
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
