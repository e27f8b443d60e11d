/** `budget`: sets, removes and prints budgets of projects and users. */
import { Command, Option } from 'commander';
import { fromCoralCreditsCommand } from './budget/coral-credits.ts';
import type {
  AskFlags,
  AuthorFlags,
  BudgetStore,
  ImportFlags,
  SetFlags,
  StepFlags,
  WantedState,
} from './budget/store.ts';
import { addEndpointFlags, type EndpointFlags, localOrRemote } from './common/endpoint.ts';
import { addSourceFlags, type FormatFlags, formatFlag, type SourceFlags } from './common/sources.ts';
import { withLedger } from './ledger/access.ts';

const PROJECT = ['<project>', 'The project: its id, or name@domain with [keystone] resolve_names.'] as const;
const PROJECTS = ['[project]', 'The project: its id, or name@domain. Default: all projects.'] as const;
const WHO = [
  '--who <name>',
  'Who makes the change. Default: the system user. Not with --endpoint, where it is the owner of the token.',
] as const;
const WHY = ['--reason <text>', 'The reason, for budget history. Required with --endpoint.'] as const;

const STATES: readonly WantedState[] = [
  ...(['open', 'all', 'requested', 'endorsed', 'granted', 'changed', 'refused', 'withdrawn'] as const),
];

const STEPS = {
  grant: 'Grant a request for more budget: the budget grows by it, once.',
  refuse: 'Refuse a request for more budget.',
  endorse: 'Endorse a request for more budget, as a manager of the project.',
  withdraw: 'Withdraw a request for more budget.',
} as const;

type AskedFlags = SourceFlags & EndpointFlags;
type PrintFlags = EndpointFlags & FormatFlags;

export function budgetCommand(): Command {
  const budget = new Command('budget').description('Set, remove and print budgets.');
  const added = (name: string, description: string) =>
    addLocalOrRemote(budget.command(name).description(description));
  addAuthorFlags(
    added(
      'set',
      'Give a project, or one user in it, a budget for a period. Replaces the budget that starts at the same time.',
    ),
  )
    .requiredOption(
      '--amount <number>',
      'Size of the budget, in the unit of [enforcement] usage_budget_unit.',
    )
    .requiredOption('--until <date>', 'End of validity, in ISO 8601; UTC without an offset.')
    .action((project: string, flags: SetFlags) =>
      ask(flags, async (budgets, { printBudgets }) => printBudgets(await budgets.set(project, flags))),
    );
  addAuthorFlags(added('remove', 'Remove a budget. What was charged to it stays charged.')).action(
    (project: string, flags: AuthorFlags) =>
      ask(flags, async (budgets, { printBudgets }) => printBudgets(await budgets.remove(project, flags))),
  );
  added('show', 'Print the budgets of a project, and the open leases that are charged to them.')
    .argument(...PROJECT)
    .addOption(formatFlag('table', 'json'))
    .action((project: string, flags: PrintFlags) =>
      ask(flags, async (budgets, { printShown }) => printShown(await budgets.show(project), flags.format)),
    );
  added('list', 'Print all budgets.')
    .addOption(formatFlag('table', 'json'))
    .action((flags: PrintFlags) =>
      ask(flags, async (budgets, { printBudgets }) => printBudgets(await budgets.list(), flags.format)),
    );
  added('history', 'Print all changes of budgets, oldest first.')
    .argument(...PROJECTS)
    .addOption(formatFlag('table', 'json'))
    .action((project: string | undefined, flags: PrintFlags) =>
      ask(flags, async (budgets, { printChanges }) =>
        printChanges(await budgets.changes(project), flags.format),
      ),
    );
  added(
    'import',
    'Set the budgets of a file, CSV or JSON: all, or none. Budgets that the file does not name stay.',
  )
    .argument('<file>', 'A file as budget export writes it. JSON if its name ends in .json.')
    .option('--dry-run', 'Only print what would be set, and every mistake.')
    .option(...WHO)
    .option(...WHY)
    .addOption(formatFlag('table', 'json'))
    .action(importFile);
  added('export', 'Print all budgets as a file for budget import.')
    .argument(...PROJECTS)
    .addOption(formatFlag('csv', 'json'))
    .action(exportFile);
  budget.addCommand(fromCoralCreditsCommand());
  added('request', 'Request more budget, for a project or one user in it.')
    .argument(...PROJECT)
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
    .option(...WHO)
    .addOption(formatFlag('table', 'json'))
    .action((project: string, flags: AskFlags) =>
      ask(flags, async (budgets, { printRequests }) =>
        printRequests(await budgets.ask(project, flags), flags.format),
      ),
    );
  added('requests', 'Print requests for more budget, newest first.')
    .argument(...PROJECTS)
    .addOption(
      new Option('--state <state>', 'Show only requests in this state; open = requested or endorsed.')
        .choices(STATES)
        .default('open'),
    )
    .addOption(formatFlag('table', 'json'))
    .action((project: string | undefined, flags: PrintFlags & { readonly state: WantedState }) =>
      ask(flags, async (budgets, { printRequests }) =>
        printRequests(await budgets.requests(project, flags.state), flags.format),
      ),
    );
  for (const kind of ['grant', 'refuse', 'endorse', 'withdraw'] as const) {
    const step = budget.command(kind).description(STEPS[kind]);
    if (kind === 'grant') {
      step
        .option('--amount <number>', 'Grant this instead of what was asked for.')
        .option('--until <date>', 'Grant it until then instead, in ISO 8601; UTC without an offset.');
    }
    addLocalOrRemote(step)
      .argument('<request>', 'Its number, as budget requests prints it.')
      .option(...WHO)
      .addOption(formatFlag('table', 'json'))
      .addOption(
        new Option('--reason <text>', 'The reason, for everybody who sees the request.').makeOptionMandatory(
          kind === 'grant' || kind === 'refuse',
        ),
      )
      .action((id: string, flags: StepFlags) =>
        ask(flags, async (budgets, { printRequests }) =>
          printRequests(await budgets.take(kind, id, flags), flags.format),
        ),
      );
  }
  return budget;
}

function addLocalOrRemote(command: Command): Command {
  return addEndpointFlags(addSourceFlags(command));
}

function addAuthorFlags(command: Command): Command {
  return command
    .argument(...PROJECT)
    .option(
      '--user <id>',
      'The budget is for this user of the project, as the project by id or name@domain. Default: for the whole project.',
    )
    .requiredOption('--from <date>', 'Start of validity, in ISO 8601; UTC without an offset.')
    .option(...WHO)
    .option(...WHY);
}

/** Uses the budgets of the service, otherwise those of the configured ledger, and prints the response. */
async function ask(
  flags: AskedFlags,
  work: (budgets: BudgetStore, output: typeof import('./budget/output.ts')) => Promise<void>,
): Promise<void> {
  const output = await import('./budget/output.ts');
  await localOrRemote(
    flags,
    () =>
      withLedger(flags, async (access) =>
        work((await import('./budget/local.ts')).localBudgets(access), output),
      ),
    async (client) => work((await import('./budget/remote.ts')).remoteBudgets(client), output),
  );
}

async function importFile(path: string, flags: ImportFlags): Promise<void> {
  const { openBudgetFile, printImport } = await import('./budget/output.ts');
  // Read before a ledger is opened. For a service, `--who` and `--reason` are checked first.
  const file = flags.endpoint === undefined ? openBudgetFile(path) : undefined;
  await ask(flags, async (budgets) => {
    const report = await budgets.import(() => file ?? openBudgetFile(path), flags);
    await printImport(path, report, flags.format);
  });
}

async function exportFile(
  project: string | undefined,
  flags: AskedFlags & { readonly format: 'csv' | 'json' },
): Promise<void> {
  await ask(flags, async (budgets) => {
    for await (const text of await budgets.export(flags.format, project)) {
      process.stdout.write(text);
    }
  });
}
