/** `budget`: sets, removes and prints budgets of projects and users. */
import { Command } from 'commander';
import { budgetUnit } from '../enforcement/budget-unit.ts';
import type { Configuration } from '../enforcement/configuration.ts';
import { InvalidRequestError } from '../errors.ts';
import { formatInstant } from '../lease/dates.ts';
import { overlapText, whoseText } from '../ledger/budget-texts.ts';
import { budgetRow, budgetStandingObject, changeObject } from './budget-output.ts';
import { commandNames, typedId } from './command-names.ts';
import { type LedgerAccess, NO_DEADLINE, systemUser, withLedger } from './ledger-access.ts';
import { leaseObject, secondText, usageObject } from './ledger-output.ts';
import { onOneLine, printJson, printTable, UsageError } from './output.ts';
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
    .description('Set, remove and print budgets.')
    .addCommand(
      addAuthorFlags(
        new Command('set').description(
          'Give a project, or one user in it, a budget for a period. Replaces the budget that starts at the same time.',
        ),
      )
        .requiredOption(
          '--amount <number>',
          'Size of the budget, in the unit of [enforcement] usage_budget_unit.',
        )
        .requiredOption('--until <date>', 'End of validity, in ISO 8601; UTC without an offset.')
        .action(set),
    )
    .addCommand(
      addAuthorFlags(
        new Command('remove').description('Remove a budget. What was charged to it stays charged.'),
      ).action(remove),
    )
    .addCommand(
      addSourceFlags(
        new Command('show').description(
          'Print the budgets of a project, and the open leases that are charged to them.',
        ),
      )
        .argument('<project>', 'The project: its id, or name@domain with [keystone] resolve_names.')
        .addOption(formatFlag('table', 'json'))
        .action(show),
    )
    .addCommand(
      addSourceFlags(new Command('list').description('Print all budgets.'))
        .addOption(formatFlag('table', 'json'))
        .action(list),
    )
    .addCommand(
      addSourceFlags(new Command('history').description('Print all changes of budgets, oldest first.'))
        .argument('[project]', 'The project: its id, or name@domain. Default: all projects.')
        .addOption(formatFlag('table', 'json'))
        .action(history),
    );
}

function addAuthorFlags(command: Command): Command {
  return addSourceFlags(command)
    .argument('<project>', 'The project: its id, or name@domain with [keystone] resolve_names.')
    .option(
      '--user <id>',
      'The budget is for this user of the project, as the project by id or name@domain. Default: for the whole project.',
    )
    .requiredOption('--from <date>', 'Start of validity, in ISO 8601; UTC without an offset.')
    .option('--who <name>', 'Who makes the change. Default: the system user.')
    .option('--reason <text>', 'Why, for budget history.');
}

async function set(project: string, flags: SetFlags): Promise<void> {
  await withLedger(flags, async (access) => {
    const { ledger, configuration } = access;
    const { parseBudget } = await import('../ledger/budget-terms.ts');
    const { BudgetConflictError, setBudget } = await import('../ledger/budgets.ts');
    const unit = budgetUnit(configuration);
    const { from, until, amount } = flags;
    const { projectId, userId } = await typedIds(configuration, project, flags.user);
    const wanted = inFlags(() => parseBudget({ projectId, userId, from, until, amount }, unit));
    try {
      await setBudget(ledger, wanted, authorOf(flags), NO_DEADLINE);
    } catch (thrown) {
      if (!(thrown instanceof BudgetConflictError)) {
        throw thrown;
      }
      throw new UsageError(overlapText(thrown.other));
    }
    await printBudgets(access, projectId);
  });
}

async function remove(project: string, flags: AuthorFlags): Promise<void> {
  await withLedger(flags, async (access) => {
    const { ledger, configuration } = access;
    const { parseBudgetKey } = await import('../ledger/budget-terms.ts');
    const { removeBudget } = await import('../ledger/budgets.ts');
    const { from } = flags;
    const { projectId, userId } = await typedIds(configuration, project, flags.user);
    const which = inFlags(() => parseBudgetKey({ projectId, userId, from }));
    const removed = await removeBudget(ledger, which, authorOf(flags), NO_DEADLINE);
    if (removed === undefined) {
      throw new UsageError(
        `${whoseText(which)} has no budget that starts at ${secondText(which.validFrom)}; budget show prints its budgets`,
      );
    }
    await printBudgets(access, projectId);
  });
}

type Ledger = import('../ledger/ledger.ts').Ledger;

async function printBudgets(
  { ledger, configuration }: Pick<LedgerAccess, 'ledger' | 'configuration'>,
  projectId?: string,
): Promise<void> {
  const { listBudgets } = await import('../ledger/budgets.ts');
  const budgets = await listBudgets(ledger, projectId, NO_DEADLINE);
  const names = await commandNames(configuration, budgets);
  const unit = budgetUnit(configuration);
  await printTable(
    BUDGET_COLUMNS,
    budgets.map((budget) => budgetRow(budget, unit, names)),
  );
}

async function typedIds(
  configuration: Configuration,
  project: string,
  user: string | undefined,
): Promise<{ projectId: string; userId: string | undefined }> {
  return {
    projectId: await typedId(configuration, 'project', project),
    userId: user === undefined ? undefined : await typedId(configuration, 'user', user),
  };
}

async function list(flags: FormatFlags): Promise<void> {
  await withLedger(flags, async (access) => {
    if (flags.format === 'table') {
      await printBudgets(access);
      return;
    }
    const { listBudgets } = await import('../ledger/budgets.ts');
    const budgets = await listBudgets(access.ledger, undefined, NO_DEADLINE);
    const names = await commandNames(access.configuration, budgets);
    printJson(budgets.map((budget) => budgetStandingObject(budget, names)));
  });
}

async function show(project: string, flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const projectId = await typedId(configuration, 'project', project);
    const { listBudgets } = await import('../ledger/budgets.ts');
    const { chargedLeases } = await import('../ledger/reports.ts');
    const unit = budgetUnit(configuration);
    const budgets = await listBudgets(ledger, projectId, NO_DEADLINE);
    const leases = await chargedLeases(ledger, projectId, NO_DEADLINE);
    if (budgets.length === 0) {
      await warnOfNoBudget(ledger, projectId);
    }
    const { chargesOf } = await import('./budget-output.ts');
    const names = await commandNames(configuration, [...budgets, ...leases]);
    if (flags.format === 'json') {
      printJson({
        unit,
        budgets: budgets.map((budget) => budgetStandingObject(budget, names)),
        leases: leases.map((lease) => ({
          ...leaseObject(lease, names),
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
    if (budgets.length === 0 && leases.length === 0) {
      return;
    }
    await printTable(
      BUDGET_COLUMNS,
      budgets.map((budget) => budgetRow(budget, unit, names)),
    );
    process.stdout.write('\n');
    const { amountText } = await import('./ledger-output.ts');
    await printTable(
      ['ROW', 'LEASE', 'USER', 'NAME', 'CHARGED TO', 'AMOUNT', 'FROM', 'UNTIL'],
      leases.flatMap((lease) =>
        chargesOf(lease).map(({ account, amount, from, until }) => [
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
  });
}

/** An empty answer would hide a mistyped id. */
async function warnOfNoBudget(ledger: Ledger, projectId: string): Promise<void> {
  const { listLeases } = await import('../ledger/reports.ts');
  const isKnown = (await listLeases(ledger, { projectId, limit: 1 }, NO_DEADLINE)).length > 0;
  const more = isKnown ? '' : ', and the ledger has none of its leases: is this the id of the project?';
  process.stderr.write(`${onOneLine(`warning: project ${projectId} has no budget${more}`)}\n`);
}

async function history(project: string | undefined, flags: FormatFlags): Promise<void> {
  await withLedger(flags, async ({ ledger, configuration }) => {
    const projectId = project && (await typedId(configuration, 'project', project));
    const { budgetHistory } = await import('../ledger/budgets.ts');
    const changes = await budgetHistory(ledger, projectId, NO_DEADLINE);
    if (flags.format === 'json') {
      printJson(changes.map(changeObject));
      return;
    }
    const { amountText } = await import('./ledger-output.ts');
    const unit = budgetUnit(configuration);
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
