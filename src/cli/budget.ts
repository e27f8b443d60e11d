/** `budget`: sets, removes and prints budgets of projects and users. */
import { Command, Option } from 'commander';
import type { RequestStep } from '../ledger/budgets/requests/steps.ts';
import { fromCoralCreditsCommand } from './budget/coral-credits.ts';
import type { AskFlags, StepFlags, WantedState } from './budget/requests.ts';
import type {
  AuthorFlags,
  BudgetStore,
  ExportFlags,
  FormatFlags,
  ImportFlags,
  SetFlags,
} from './budget/store.ts';
import { addEndpointFlags, type EndpointFlags, localOrRemote } from './common/endpoint.ts';
import { printJson } from './common/output.ts';
import { addSourceFlags, formatFlag, type SourceFlags } from './common/sources.ts';
import { withLedger } from './ledger/access.ts';

const WHO =
  'Who makes the change. Default: the system user. Not with --endpoint, where it is the owner of the token.';
const WHY = 'Why, for budget history. Required with --endpoint.';

const STATES: readonly WantedState[] = [
  ...(['open', 'all', 'requested', 'endorsed', 'granted', 'changed', 'refused', 'withdrawn'] as const),
];

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
    )
    .addCommand(fromCoralCreditsCommand())
    .addCommand(
      addLocalOrRemote(
        new Command('request').description('Ask for more budget, for a project or one user in it.'),
      )
        .argument('<project>', 'The project: its id, or name@domain with [keystone] resolve_names.')
        .option(
          '--user <id>',
          'For this user of the project, who has a budget of their own. Default: for the whole project.',
        )
        .requiredOption(
          '--amount <number>',
          'What the budget should grow by, in the unit of [enforcement] usage_budget_unit.',
        )
        .requiredOption('--until <date>', 'Until when it is needed, in ISO 8601; UTC without an offset.')
        .requiredOption('--reason <text>', 'Why.')
        .option('--who <name>', WHO)
        .addOption(formatFlag('table', 'json'))
        .action(request),
    )
    .addCommand(
      addLocalOrRemote(new Command('requests').description('Print requests for more budget, newest first.'))
        .argument('[project]', 'The project: its id, or name@domain. Default: all projects.')
        .addOption(
          new Option('--state <state>', 'Show only requests in this state; open = requested or endorsed.')
            .choices(STATES)
            .default('open'),
        )
        .addOption(formatFlag('table', 'json'))
        .action(requests),
    )
    .addCommand(
      addStepFlags(
        new Command('grant')
          .description('Grant a request for more budget: the budget grows by it, once.')
          .option('--amount <number>', 'Grant this instead of what was asked for.')
          .option('--until <date>', 'Grant it until then instead, in ISO 8601; UTC without an offset.'),
        true,
      ).action((id: string, flags: StepFlags) => step('grant', id, flags)),
    )
    .addCommand(
      addStepFlags(new Command('refuse').description('Refuse a request for more budget.'), true).action(
        (id: string, flags: StepFlags) => step('refuse', id, flags),
      ),
    )
    .addCommand(
      addStepFlags(
        new Command('endorse').description('Endorse a request for more budget, as a manager of the project.'),
        false,
      ).action((id: string, flags: StepFlags) => step('endorse', id, flags)),
    )
    .addCommand(
      addStepFlags(new Command('withdraw').description('Withdraw a request for more budget.'), false).action(
        (id: string, flags: StepFlags) => step('withdraw', id, flags),
      ),
    );
}

/** Of a step of a request. */
function addStepFlags(command: Command, needsReason: boolean): Command {
  const why = 'Why, for everybody who sees the request.';
  const added = addLocalOrRemote(command)
    .argument('<request>', 'Its number, as budget requests prints it.')
    .option('--who <name>', WHO)
    .addOption(formatFlag('table', 'json'));
  return needsReason ? added.requiredOption('--reason <text>', why) : added.option('--reason <text>', why);
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
        const { localRequests } = await import('./budget/local-requests.ts');
        await work({ ...localBudgets(access), ...localRequests(access) });
      }),
    async (client) => {
      const { remoteBudgets } = await import('./budget/remote.ts');
      const { remoteRequests } = await import('./budget/remote-requests.ts');
      await work({ ...remoteBudgets(client), ...remoteRequests(client) });
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

async function request(project: string, flags: AskFlags): Promise<void> {
  const { printRequests } = await import('./budget/requests.ts');
  await withBudgets(flags, async (budgets) => printRequests(await budgets.ask(project, flags), flags.format));
}

async function requests(
  project: string | undefined,
  flags: FormatFlags & { readonly state: WantedState },
): Promise<void> {
  const { printRequests } = await import('./budget/requests.ts');
  await withBudgets(flags, async (budgets) =>
    printRequests(await budgets.requests(project, flags.state), flags.format),
  );
}

async function step(kind: RequestStep['kind'], id: string, flags: StepFlags): Promise<void> {
  const { printRequests } = await import('./budget/requests.ts');
  await withBudgets(flags, async (budgets) =>
    printRequests(await budgets.take(kind, id, flags), flags.format),
  );
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
