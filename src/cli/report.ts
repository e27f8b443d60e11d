/** `report`: the usage of a period, as a table or a file. */
import { Command, Option } from 'commander';
import { USAGE_KEYS, type UsageKey } from '../ledger/reports/usage/sums.ts';
import { addEndpointFlags, type EndpointFlags, localOrRemote } from './common/endpoint.ts';
import { printJson, printTable, warn } from './common/output.ts';
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
  const project = ({ project_id: id }: ShownRow) => (id === undefined ? '' : names.project(id));
  const user = ({ user_id: id }: ShownRow) => (id === undefined || id === null ? '' : names.user(id));
  const keys: Record<UsageKey, readonly [string, (row: ShownRow) => string][]> = {
    project: [['PROJECT', project]],
    user: [
      ['PROJECT', project],
      ['USER', user],
    ],
    month: [['MONTH', ({ month }) => month ?? '']],
    resource_type: [['RESOURCE TYPE', (row) => row.resource_type ?? '']],
  };
  const hasAmounts = by !== 'resource_type';
  await printTable(
    [
      ...keys[by].map(([head]) => head),
      ...(hasAmounts ? [unit.toUpperCase(), 'OF BUDGETS OF USERS'] : []),
      'RESOURCE HOURS',
      'LEASES',
      'ENDED EARLY',
      'UNUSED HOURS',
    ],
    rows.map((row) => [
      ...keys[by].map(([, cell]) => cell(row)),
      ...(hasAmounts ? [row.amount ?? '', row.user_amount ?? ''] : []),
      row.resource_hours,
      String(row.leases),
      String(row.ended_early),
      row.unused_hours,
    ]),
  );
}
