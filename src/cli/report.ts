/** `report`: what was used in a time, as a table or a file. */
import { Command, Option } from 'commander';
import { budgetUnit } from '../enforcement/configuration.ts';
import { USAGE_KEYS, type UsageKey, type UsageReport, type UsageRow } from '../ledger/reports/usage-sums.ts';
import { inFlags } from './budget/store.ts';
import { type CommandNames, commandNames, typedId } from './common/command-names.ts';
import { formatFlag, type SourceFlags, sourceCommand } from './common/sources.ts';
import { NO_DEADLINE, withLedger } from './ledger/access.ts';
import { onOneLine, printJson, printTable } from './output.ts';

interface UsageFlags extends SourceFlags {
  readonly from?: string;
  readonly until?: string;
  readonly by: UsageKey;
  readonly project?: string;
  readonly format: 'table' | 'csv' | 'json' | 'focus';
}

const DATE = 'in ISO 8601, to the second; UTC without an offset';

export function reportCommand(): Command {
  return new Command('report').description('Print what was used.').addCommand(
    sourceCommand(
      'usage',
      'Print what leases have taken of budgets, and will, and which resources they had reserved, in a time.',
    )
      .option('--from <date>', `Start, ${DATE}. Default: the start of the month of --until.`)
      .option('--until <date>', `End, ${DATE}. Default: now.`)
      .addOption(
        new Option('--by <what>', 'What each row is of; months are those of UTC.')
          .choices(USAGE_KEYS)
          .default('project'),
      )
      .option('--project <id>', 'Only this project: its id, or name@domain. Default: all projects.')
      .addOption(formatFlag('table', 'csv', 'json', 'focus'))
      .action(usage),
  );
}

async function usage(flags: UsageFlags): Promise<void> {
  const { reportSpan, reportUsage } = await import('../ledger/reports/usage-report.ts');
  const { secondOf } = await import('../ledger/budgets/terms.ts');
  const { by, format, project } = flags;
  const [from, until] = inFlags(() => [
    flags.from === undefined ? undefined : secondOf('from', flags.from),
    flags.until === undefined ? undefined : secondOf('until', flags.until),
  ]);
  await withLedger(flags, async ({ ledger, configuration }) => {
    const span = inFlags(() => reportSpan({ from, until }, ledger.now()));
    const projectIds = project === undefined ? undefined : [await typedId(configuration, 'project', project)];
    const isDetailed = format === 'focus';
    const report = await reportUsage(ledger, { ...span, projectIds, by, isDetailed }, NO_DEADLINE);
    const unit = budgetUnit(configuration);
    const names = await commandNames(
      configuration,
      format === 'csv' ? [] : report.rows.filter(({ projectId }) => projectId !== null),
    );
    const { usageCsv, usageFocus, usageJson } = await import('../ledger/reports/usage-formats.ts');
    if (format === 'table') {
      await printUsage(report, by, unit, names);
    } else if (format === 'json') {
      const idsOf = ({ projectId, userId }: UsageRow) => ({
        ...(projectId !== null && { project_id: projectId }),
        ...(by === 'user' && { user_id: userId }),
        ...(projectId !== null && names.fields(projectId, userId)),
      });
      printJson(usageJson(report, { ...span, by, unit }, idsOf));
    } else {
      const nameOf = (id: string) => names.fields(id, null).project_name ?? null;
      const text = format === 'csv' ? usageCsv(report, by, unit) : usageFocus(report, by, unit, nameOf);
      for await (const piece of text) {
        process.stdout.write(piece);
      }
    }
    await warnOfMissing(report, by, unit);
  });
}

async function printUsage(
  { rows }: UsageReport,
  by: UsageKey,
  unit: string,
  names: CommandNames,
): Promise<void> {
  const { formatUnitHours } = await import('../filter/claim.ts');
  const { hoursText, monthText } = await import('../ledger/reports/usage-formats.ts');
  const project = ({ projectId }: UsageRow) => (projectId === null ? '' : names.project(projectId));
  const user = ({ userId }: UsageRow) => (userId === null ? '' : names.user(userId));
  const keys: Record<UsageKey, readonly [string, (row: UsageRow) => string][]> = {
    project: [['PROJECT', project]],
    user: [
      ['PROJECT', project],
      ['USER', user],
    ],
    month: [['MONTH', monthText]],
    resource_type: [['RESOURCE TYPE', ({ resourceType }) => resourceType ?? '']],
  };
  const hasAmounts = by !== 'resource_type';
  await printTable(
    [
      ...keys[by].map(([head]) => head),
      ...(hasAmounts ? [unit.toUpperCase(), 'OF BUDGETS OF USERS'] : []),
      ...['RESOURCE HOURS', 'LEASES', 'ENDED EARLY', 'UNUSED HOURS'],
    ],
    rows.map((row) => [
      ...keys[by].map(([, cell]) => cell(row)),
      ...(hasAmounts ? [formatUnitHours(row.amount), formatUnitHours(row.userAmount)] : []),
      ...[hoursText(row.resourceSeconds), String(row.leases), String(row.endedEarly)],
      hoursText(row.unusedSeconds),
    ]),
  );
}

/** On standard error: a file has no place for it. */
async function warnOfMissing(report: UsageReport, by: UsageKey, unit: string): Promise<void> {
  const { missingTexts } = await import('../ledger/reports/usage-formats.ts');
  for (const text of missingTexts(report, by, unit)) {
    process.stderr.write(`${onOneLine(`warning: ${text}`)}\n`);
  }
}
