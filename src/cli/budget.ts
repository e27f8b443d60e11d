/** `budget`: sets, removes and prints budgets of projects and users. */
import { Command } from 'commander';
import type { ApiClient } from '../client/client.ts';
import { budgetUnit } from '../enforcement/budget-unit.ts';
import type { Configuration } from '../enforcement/configuration.ts';
import { overlapText, whoseText } from '../ledger/budgets/format.ts';
import {
  type AuthorFlags,
  type ExportFlags,
  type FormatFlags,
  type ImportFlags,
  inFlags,
  type SetFlags,
} from './budget/flags.ts';
import { budgetStandingObject, changeObject, printBudgets, printChanges } from './budget/output.ts';
import { commandNames, typedId } from './command-names.ts';
import { addEndpointFlags, type EndpointFlags } from './endpoint.ts';
import { type LedgerAccess, NO_DEADLINE, systemUser, withLedger } from './ledger/access.ts';
import { secondText } from './ledger/output.ts';
import { onOneLine, printJson, UsageError } from './output.ts';
import { addSourceFlags, formatFlag, type SourceFlags } from './sources.ts';

const WHO = 'Who makes the change. Default: the system user. Not with --endpoint: the token tells.';
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
        .option('--dry-run', 'Only tell what would be set, and every mistake.')
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

type Remote = typeof import('./budget/remote-commands.ts');

/** Asks a service if there is one to ask. Resolves to whether there is. */
async function remotely(
  flags: EndpointFlags & SourceFlags,
  work: (commands: Remote, api: ApiClient['api']) => Promise<void>,
): Promise<boolean> {
  const { endpoint, tokenFile, osCloud, caFile } = flags;
  if (endpoint === undefined) {
    if (tokenFile !== undefined || osCloud !== undefined || caFile !== undefined) {
      throw new UsageError('--token-file, --os-cloud and --ca-file need --endpoint');
    }
    return false;
  }
  const { withEndpoint } = await import('./endpoint-client.ts');
  const commands = await import('./budget/remote-commands.ts');
  await withEndpoint(endpoint, flags, (api) => work(commands, api));
  return true;
}

async function importFile(path: string, flags: ImportFlags): Promise<void> {
  if (await remotely(flags, (remote, api) => remote.importRemotely(api, path, flags))) {
    return;
  }
  const { importLocally, openBudgetFile, printImport } = await import('./budget/files.ts');
  const file = openBudgetFile(path);
  await withLedger(flags, async (access) => {
    const how = { ...authorOf(flags), isDryRun: flags.dryRun ?? false };
    await printImport(file, await importLocally(access, file, how), flags.format);
  });
}

async function exportFile(project: string | undefined, flags: ExportFlags): Promise<void> {
  if (await remotely(flags, (remote, api) => remote.exportRemotely(api, flags.format, project))) {
    return;
  }
  const { exportLocally } = await import('./budget/files.ts');
  await withLedger(flags, async (access) => {
    const projectId = project && (await typedId(access.configuration, 'project', project));
    await exportLocally(access, flags.format, projectId);
  });
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

async function set(project: string, flags: SetFlags): Promise<void> {
  if (await remotely(flags, (remote, api) => remote.setRemotely(api, project, flags))) {
    return;
  }
  await withLedger(flags, async (access) => {
    const { ledger, configuration } = access;
    const { parseBudget } = await import('../ledger/budgets/terms.ts');
    const { BudgetConflictError, setBudget } = await import('../ledger/budgets/budgets.ts');
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
    await printLedger(access, projectId);
  });
}

async function remove(project: string, flags: AuthorFlags): Promise<void> {
  if (await remotely(flags, (remote, api) => remote.removeRemotely(api, project, flags))) {
    return;
  }
  await withLedger(flags, async (access) => {
    const { ledger, configuration } = access;
    const { parseBudgetKey } = await import('../ledger/budgets/terms.ts');
    const { removeBudget } = await import('../ledger/budgets/budgets.ts');
    const { from } = flags;
    const { projectId, userId } = await typedIds(configuration, project, flags.user);
    const which = inFlags(() => parseBudgetKey({ projectId, userId, from }));
    const removed = await removeBudget(ledger, which, authorOf(flags), NO_DEADLINE);
    if (removed === undefined) {
      throw new UsageError(
        `${whoseText(which)} has no budget that starts at ${secondText(which.validFrom)}; budget show prints its budgets`,
      );
    }
    await printLedger(access, projectId);
  });
}

type Ledger = import('../ledger/ledger.ts').Ledger;

async function printLedger(
  { ledger, configuration }: Pick<LedgerAccess, 'ledger' | 'configuration'>,
  projectId?: string,
): Promise<void> {
  const { listBudgets } = await import('../ledger/budgets/budgets.ts');
  const budgets = await listBudgets(ledger, projectId, NO_DEADLINE);
  const names = await commandNames(configuration, budgets);
  await printBudgets(budgets, budgetUnit(configuration), names);
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
  if (await remotely(flags, (remote, api) => remote.listRemotely(api, flags))) {
    return;
  }
  await withLedger(flags, async (access) => {
    if (flags.format === 'table') {
      await printLedger(access);
      return;
    }
    const { listBudgets } = await import('../ledger/budgets/budgets.ts');
    const budgets = await listBudgets(access.ledger, undefined, NO_DEADLINE);
    const names = await commandNames(access.configuration, budgets);
    printJson(budgets.map((budget) => budgetStandingObject(budget, names)));
  });
}

async function show(project: string, flags: FormatFlags): Promise<void> {
  if (await remotely(flags, (remote, api) => remote.showRemotely(api, project, flags))) {
    return;
  }
  await withLedger(flags, async ({ ledger, configuration }) => {
    const projectId = await typedId(configuration, 'project', project);
    const { listBudgets } = await import('../ledger/budgets/budgets.ts');
    const { chargedLeases } = await import('../ledger/reports/reports.ts');
    const unit = budgetUnit(configuration);
    const budgets = await listBudgets(ledger, projectId, NO_DEADLINE);
    const leases = await chargedLeases(ledger, projectId, NO_DEADLINE);
    if (budgets.length === 0) {
      await warnOfNoBudget(ledger, projectId);
    }
    const { chargesOf, printShown } = await import('./budget/output.ts');
    const names = await commandNames(configuration, [...budgets, ...leases]);
    const charged = leases.map((lease) => ({ lease, charges: chargesOf(lease) }));
    await printShown({ budgets, leases: charged, unit, names }, flags.format);
  });
}

/** An empty answer would hide a mistyped id. */
async function warnOfNoBudget(ledger: Ledger, projectId: string): Promise<void> {
  const { listLeases } = await import('../ledger/reports/reports.ts');
  const isKnown = (await listLeases(ledger, { projectId, limit: 1 }, NO_DEADLINE)).length > 0;
  const more = isKnown ? '' : ', and the ledger has none of its leases: is this the id of the project?';
  process.stderr.write(`${onOneLine(`warning: project ${projectId} has no budget${more}`)}\n`);
}

async function history(project: string | undefined, flags: FormatFlags): Promise<void> {
  if (await remotely(flags, (remote, api) => remote.historyRemotely(api, project, flags))) {
    return;
  }
  await withLedger(flags, async ({ ledger, configuration }) => {
    const projectId = project && (await typedId(configuration, 'project', project));
    const { budgetHistory } = await import('../ledger/budgets/budgets.ts');
    const changes = await budgetHistory(ledger, projectId, NO_DEADLINE);
    if (flags.format === 'json') {
      printJson(changes.map(changeObject));
      return;
    }
    await printChanges(changes, budgetUnit(configuration));
  });
}

function authorOf({ who, reason }: Pick<AuthorFlags, 'who' | 'reason'>): {
  who: string;
  reason: string | null;
} {
  return { who: who ?? systemUser(), reason: reason ?? null };
}
