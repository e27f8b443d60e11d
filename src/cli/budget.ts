/** `budget`: how much leases of a project, or of a user in it, may use, and how much they have. */
import { Command } from 'commander';
import { InvalidRequestError } from '../errors.ts';
import { formatInstant } from '../lease/dates.ts';
import { budgetRow, budgetStandingObject, changeObject, whoseText } from './budget-output.ts';
import { NO_DEADLINE, systemUser, unitOf, withLedger } from './ledger-access.ts';
import { leaseObject, secondText, usageObject } from './ledger-output.ts';
import { printJson, printTable, UsageError } from './output.ts';
import { addSourceFlags, formatFlag, type SourceFlags } from './sources.ts';

interface FormatFlags extends SourceFlags {
  readonly format: 'table' | 'json';
}

interface AuthorFlags extends SourceFlags {
  readonly user?: string;
  readonly from: string;
  readonly who?: string;
  readonly reason?: string;
}

interface SetFlags extends AuthorFlags {
  readonly amount: string;
  readonly until: string;
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

export function budgetCommand(): Command {
  return new Command('budget')
    .description('Set budgets, and look at them.')
    .addCommand(
      addAuthorFlags(
        new Command('set').description(
          'Give a project, or a user in it, a budget for some time. One that begins at the same time is changed.',
        ),
      )
        .requiredOption('--amount <number>', 'How much, in the unit of [enforcement] usage_budget_unit.')
        .requiredOption('--until <date>', 'Until when it pays, in ISO 8601; UTC without an offset.')
        .action(set),
    )
    .addCommand(
      addAuthorFlags(
        new Command('remove').description('Take a budget away. What was charged to it stays charged.'),
      ).action(remove),
    )
    .addCommand(
      addSourceFlags(
        new Command('show').description(
          'Print the budgets of a project, and the open leases that they pay for.',
        ),
      )
        .argument('<project>', 'The id of the project.')
        .addOption(formatFlag('table', 'json'))
        .action(show),
    )
    .addCommand(
      addSourceFlags(new Command('list').description('Print all budgets.'))
        .addOption(formatFlag('table', 'json'))
        .action(list),
    )
    .addCommand(
      addSourceFlags(
        new Command('history').description('Print how budgets came about, the oldest change first.'),
      )
        .argument('[project]', 'The id of a project. Default: all.')
        .addOption(formatFlag('table', 'json'))
        .action(history),
    );
}

function addAuthorFlags(command: Command): Command {
  return addSourceFlags(command)
    .argument('<project>', 'The id of the project.')
    .option('--user <id>', 'The budget is of this user in the project.')
    .requiredOption('--from <date>', 'From when on it pays, in ISO 8601; UTC without an offset.')
    .option('--who <name>', 'Who wants it. Default: the user of the system.')
    .option('--reason <text>', 'Why.');
}

async function set(projectId: string, flags: SetFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { parseBudget } = await import('../ledger/budget-terms.ts');
    const { BudgetConflictError, setBudget } = await import('../ledger/budgets.ts');
    const unit = unitOf(configuration);
    const { user: userId, from, until, amount } = flags;
    const wanted = inFlags(() => parseBudget({ projectId, userId, from, until, amount }, unit));
    try {
      await setBudget(ledger, wanted, authorOf(flags), NO_DEADLINE);
    } catch (thrown) {
      if (!(thrown instanceof BudgetConflictError)) {
        throw thrown;
      }
      const { other } = thrown;
      throw new UsageError(
        `it would overlap with budget ${other.id} of ${whoseText(other)}, from ${secondText(other.validFrom)} until ${secondText(other.validUntil)}`,
      );
    }
    await printBudgets(ledger, projectId, unit);
  });
}

async function remove(projectId: string, flags: AuthorFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { parseBudgetKey } = await import('../ledger/budget-terms.ts');
    const { removeBudget } = await import('../ledger/budgets.ts');
    const { user: userId, from } = flags;
    const which = inFlags(() => parseBudgetKey({ projectId, userId, from }));
    const removed = await removeBudget(ledger, which, authorOf(flags), NO_DEADLINE);
    if (removed === undefined) {
      throw new UsageError(
        `${whoseText(which)} has no budget that begins at ${secondText(which.validFrom)}; budget show prints those there are`,
      );
    }
    await printBudgets(ledger, projectId, unitOf(configuration));
  });
}

type Ledger = import('../ledger/ledger.ts').Ledger;

async function printBudgets(ledger: Ledger, projectId: string | undefined, unit: string): Promise<void> {
  const { listBudgets } = await import('../ledger/budgets.ts');
  const budgets = await listBudgets(ledger, projectId, NO_DEADLINE);
  await printTable(
    BUDGET_COLUMNS,
    budgets.map((budget) => budgetRow(budget, unit)),
  );
}

async function list(flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    if (flags.format === 'table') {
      await printBudgets(ledger, undefined, unitOf(configuration));
      return;
    }
    const { listBudgets } = await import('../ledger/budgets.ts');
    printJson((await listBudgets(ledger, undefined, NO_DEADLINE)).map(budgetStandingObject));
  });
}

async function show(projectId: string, flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { listBudgets } = await import('../ledger/budgets.ts');
    const { chargedLeases } = await import('../ledger/reports.ts');
    const unit = unitOf(configuration);
    const leases = await chargedLeases(ledger, projectId, NO_DEADLINE);
    const { chargesOf } = await import('./budget-output.ts');
    if (flags.format === 'json') {
      const budgets = await listBudgets(ledger, projectId, NO_DEADLINE);
      printJson({
        unit,
        budgets: budgets.map(budgetStandingObject),
        leases: leases.map((lease) => ({
          ...leaseObject(lease),
          charges: chargesOf(lease).map(({ account, amount, from, until }) => ({
            account,
            ...usageObject(amount),
            from: secondText(from),
            until: secondText(until),
          })),
        })),
      });
      return;
    }
    await printBudgets(ledger, projectId, unit);
    process.stdout.write('\n');
    const { amountText } = await import('./ledger-output.ts');
    await printTable(
      ['ROW', 'LEASE', 'USER', 'NAME', 'CHARGED TO', 'AMOUNT', 'FROM', 'UNTIL'],
      leases.flatMap((lease) =>
        chargesOf(lease).map(({ account, amount, from, until }) => [
          `#${lease.row}`,
          lease.leaseId ?? '',
          lease.userId,
          lease.name,
          account,
          amountText(amount, true, unit),
          secondText(from),
          secondText(until),
        ]),
      ),
    );
  });
}

async function history(projectId: string | undefined, flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const { budgetHistory } = await import('../ledger/budgets.ts');
    const changes = await budgetHistory(ledger, projectId, NO_DEADLINE);
    if (flags.format === 'json') {
      printJson(changes.map(changeObject));
      return;
    }
    const { amountText } = await import('./ledger-output.ts');
    const unit = unitOf(configuration);
    await printTable(
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
  });
}

/** The flag or argument that a property of a budget comes from. */
const FLAGS: Readonly<Record<string, string>> = {
  projectId: 'project',
  userId: '--user',
  from: '--from',
  until: '--until',
  amount: '--amount',
};

/** A mistake in a budget, reported under the name of its flag. */
function inFlags<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (thrown) {
    if (!(thrown instanceof InvalidRequestError)) {
      throw thrown;
    }
    throw new UsageError(
      `${FLAGS[thrown.field] ?? thrown.field}${thrown.message.slice(thrown.field.length)}`,
    );
  }
}

function authorOf({ who, reason }: AuthorFlags): { who: string; reason: string | null } {
  return { who: who ?? systemUser(), reason: reason ?? null };
}
