/** `report`: the usage of a period, as a table or a file. */
import { Command, Option } from 'commander';
import { USAGE_KEYS, type UsageKey } from '../ledger/reports/usage/sums.ts';
import { addEndpointFlags, type EndpointFlags, localOrRemote } from './common/endpoint.ts';
import { type Columns, printJson, printRows, warn } from './common/output.ts';
import { formatFlag, type SourceFlags, sourceCommand } from './common/sources.ts';
import { withLedger } from './ledger/access.ts';
import type { ShownRow, ShownUsage, UsageQuery } from './report/usage.ts';

interface UsageFlags extends SourceFlags, EndpointFlags {
  readonly from?: string;
  readonly until?: string;
  readonly by: UsageKey;
  readonly project?: string;
  readonly format: 'table' | 'csv' | 'json' | 'focus';
}

const DATE = 'in ISO 8601, to the second; UTC without an offset';

export function reportCommand(): Command {
  return new Command('report').description('Print what was used.').addCommand(
    addEndpointFlags(
      sourceCommand(
        'usage',
        'Print what leases have taken of budgets, used and planned, and the resources that they reserved, in a period.',
      ),
    )
      .option('--from <date>', `Start, ${DATE}. Default: the start of the month of --until.`)
      .option('--until <date>', `End, ${DATE}. Default: now.`)
      .addOption(
        new Option('--by <what>', 'What a row stands for; months are in UTC.')
          .choices(USAGE_KEYS)
          .default('project'),
      )
      .option('--project <id>', 'Only this project: its id, or name@domain. Default: all projects.')
      .addOption(formatFlag('table', 'csv', 'json', 'focus'))
      .action(usage),
  );
}

async function usage(flags: UsageFlags): Promise<void> {
  const { inFlags } = await import('./budget/store.ts');
  const { secondOf } = await import('../ledger/budgets/terms.ts');
  const { by, format, project } = flags;
  const [from, until] = inFlags(() => [
    flags.from === undefined ? undefined : secondOf('from', flags.from),
    flags.until === undefined ? undefined : secondOf('until', flags.until),
  ]);
  const query = { by, format, project, from, until };
  const { localUsage, remoteUsage } = await import('./report/usage.ts');
  await localOrRemote(
    flags,
    () => withLedger(flags, async (access) => print(await localUsage(access, query), query)),
    async (client) => print(await remoteUsage(client, query), query),
  );
}

async function print(usage: ShownUsage, { by, format }: UsageQuery): Promise<void> {
  if (format === 'table') {
    await printUsage(usage, by);
  } else if (format === 'json') {
    printJson(usage.json);
  } else {
    for await (const piece of await usage.file(format)) {
      process.stdout.write(piece);
    }
  }
  // On standard error, since a file cannot contain it.
  for (const text of usage.missing) {
    warn(text);
  }
}

async function printUsage({ json: { rows, unit }, names }: ShownUsage, by: UsageKey): Promise<void> {
  const { project, user } = names;
  const ofProject: Columns<ShownRow> = { PROJECT: ({ project_id: id }) => id && project(id) };
  const keys: Record<UsageKey, Columns<ShownRow>> = {
    project: ofProject,
    user: { ...ofProject, USER: ({ user_id: id }) => id && user(id) },
    month: { MONTH: ({ month }) => month },
    resource_type: { 'RESOURCE TYPE': (row) => row.resource_type },
  };
  await printRows(rows, {
    ...keys[by],
    ...(by !== 'resource_type' && {
      [unit.toUpperCase()]: ({ amount }: ShownRow) => amount,
      'OF BUDGETS OF USERS': (row: ShownRow) => row.user_amount,
    }),
    'RESOURCE HOURS': (row) => row.resource_hours,
    LEASES: ({ leases }) => leases,
    'ENDED EARLY': (row) => row.ended_early,
    'UNUSED HOURS': (row) => row.unused_hours,
  });
}
