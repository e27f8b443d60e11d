/** `budget`: sets, removes and prints budgets of projects and users. */
import { Command } from 'commander';
import type {
  AuthorFlags,
  BudgetStore,
  ExportFlags,
  FormatFlags,
  ImportFlags,
  SetFlags,
} from './budget/store.ts';
import { addEndpointFlags, type EndpointFlags, localOrRemote } from './common/endpoint.ts';
import { addSourceFlags, formatFlag, type SourceFlags } from './common/sources.ts';
import { withLedger } from './ledger/access.ts';
import { printJson } from './output.ts';

const WHO =
  'Who makes the change. Default: the system user. Not with --endpoint, where it is the owner of the token.';
const WHY = 'Why, for budget history. Required with --endpoint.';

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
      addLocalOrRemote(
        new Command('show').description(
          'Print the budgets of a project, and the open leases that are charged to them.',
        ),
      )
        .argument('<project>', 'The project: its id, or name@domain with [keystone] resolve_names.')
        .addOption(formatFlag('table', 'json'))
        .action(show),
    )
    .addCommand(
      addLocalOrRemote(new Command('list').description('Print all budgets.'))
        .addOption(formatFlag('table', 'json'))
        .action(list),
    )
    .addCommand(
      addLocalOrRemote(new Command('history').description('Print all changes of budgets, oldest first.'))
        .argument('[project]', 'The project: its id, or name@domain. Default: all projects.')
        .addOption(formatFlag('table', 'json'))
        .action(history),
    )
    .addCommand(
      addLocalOrRemote(
        new Command('import').description(
          'Set the budgets of a file, CSV or JSON: all, or none. Budgets that the file does not name stay.',
        ),
      )
        .argument('<file>', 'A file as budget export writes it. JSON if its name ends in .json.')
        .option('--dry-run', 'Only print what would be set, and every mistake.')
        .option('--who <name>', WHO)
        .option('--reason <text>', WHY)
        .addOption(formatFlag('table', 'json'))
        .action(importFile),
    )
    .addCommand(
      addLocalOrRemote(new Command('export').description('Print all budgets as a file for budget import.'))
        .argument('[project]', 'The project: its id, or name@domain. Default: all projects.')
        .addOption(formatFlag('csv', 'json'))
        .action(exportFile),
    );
}

function addLocalOrRemote(command: Command): Command {
  return addEndpointFlags(addSourceFlags(command));
}

function addAuthorFlags(command: Command): Command {
  return addLocalOrRemote(command)
    .argument('<project>', 'The project: its id, or name@domain with [keystone] resolve_names.')
    .option(
      '--user <id>',
      'The budget is for this user of the project, as the project by id or name@domain. Default: for the whole project.',
    )
    .requiredOption('--from <date>', 'Start of validity, in ISO 8601; UTC without an offset.')
    .option('--who <name>', WHO)
    .option('--reason <text>', WHY);
}

/** The budgets of a service if there is one to ask, otherwise those of the ledger of the configuration. */
async function withBudgets(
  flags: EndpointFlags & SourceFlags,
  work: (budgets: BudgetStore) => Promise<void>,
): Promise<void> {
  await localOrRemote(
    flags,
    () =>
      withLedger(flags, async (access) => {
        const { localBudgets } = await import('./budget/local.ts');
        await work(localBudgets(access));
      }),
    async (client) => {
      const { remoteBudgets } = await import('./budget/remote.ts');
      await work(remoteBudgets(client));
    },
  );
}

async function set(project: string, flags: SetFlags): Promise<void> {
  const { printBudgets } = await import('./budget/output.ts');
  await withBudgets(flags, async (budgets) => printBudgets(await budgets.set(project, flags)));
}

async function remove(project: string, flags: AuthorFlags): Promise<void> {
  const { printBudgets } = await import('./budget/output.ts');
  await withBudgets(flags, async (budgets) => printBudgets(await budgets.remove(project, flags)));
}

async function list(flags: FormatFlags): Promise<void> {
  const { budgetUsageObject, printBudgets } = await import('./budget/output.ts');
  await withBudgets(flags, async (budgets) => {
    const listed = await budgets.list();
    if (flags.format === 'json') {
      printJson(listed.items.map((budget) => budgetUsageObject(budget, listed.names)));
    } else {
      await printBudgets(listed);
    }
  });
}

async function show(project: string, flags: FormatFlags): Promise<void> {
  const { printShown } = await import('./budget/output.ts');
  await withBudgets(flags, async (budgets) => printShown(await budgets.show(project), flags.format));
}

async function history(project: string | undefined, flags: FormatFlags): Promise<void> {
  const { changeObject, printChanges } = await import('./budget/output.ts');
  await withBudgets(flags, async (budgets) => {
    const { items, unit } = await budgets.changes(project);
    if (flags.format === 'json') {
      printJson(items.map(changeObject));
    } else {
      await printChanges(items, unit);
    }
  });
}

async function importFile(path: string, flags: ImportFlags): Promise<void> {
  const { openBudgetFile, printImport } = await import('./budget/output.ts');
  // Before a ledger is opened; a service first wants to know who asks, and why.
  const file = flags.endpoint === undefined ? openBudgetFile(path) : undefined;
  await withBudgets(flags, async (budgets) => {
    const report = await budgets.import(() => file ?? openBudgetFile(path), flags);
    await printImport(path, report, flags.format);
  });
}

async function exportFile(project: string | undefined, flags: ExportFlags): Promise<void> {
  await withBudgets(flags, async (budgets) => {
    for await (const text of await budgets.export(flags.format, project)) {
      process.stdout.write(text);
    }
  });
}
