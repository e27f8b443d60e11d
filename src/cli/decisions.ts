/** `decisions`: reads decision logs, and the decisions in the ledger. */
import { Command, InvalidArgumentError } from 'commander';
import type { DecisionReader } from '../decisions/reader.ts';
import {
  type DecisionOutcome,
  type DecisionRecord,
  OPERATIONS,
  SIDES,
  type Side,
} from '../decisions/record.ts';
import { isSelected, type Selection } from '../decisions/selection.ts';
import { jsonLine, refuseStandardInputTwice, UsageError } from './common/output.ts';
import {
  addSourceFlags,
  type FormatFlags,
  formatFlag,
  periodOf,
  repeatable,
  type SourceFlags,
  sourceCommand,
  TIME_FORMS,
  wholeNumber,
} from './common/sources.ts';
import { logFile } from './decisions/log-files.ts';
import { DecisionTable, printDecision, printStatistics } from './decisions/output.ts';
import { followedChunks, Latest, untilSignal, warnOfSkipped } from './decisions/sources.ts';
import { NO_DEADLINE } from './ledger/access.ts';

interface TailFlags extends SelectionFlags, FormatFlags {
  readonly follow?: boolean;
  readonly lines: number;
}

interface StatsFlags extends SelectionFlags, FormatFlags {
  readonly top: number;
}

/** The lines of the tail and the rows of each list are held in memory. */
const MAX_LINES = 10_000;
const MAX_TOP = 10_000;

export function decisionsCommand(): Command {
  return new Command('decisions')
    .description(
      'Read decisions from a log ([service] decision_log), or those of all replicas from the ledger ([service] decision_store).',
    )
    .addCommand(
      addSourceFlags(addSelectionFlags(new Command('tail').description('Print the latest decisions.')))
        .argument(
          '[file]',
          'The log, compressed or not; - for standard input. Default: the ledger of the configuration.',
        )
        .option('--follow', 'Keep printing new decisions, across rotations, until SIGINT.')
        .option(
          '--lines <number>',
          'Number of decisions to begin with.',
          wholeNumber('--lines', 0, MAX_LINES),
          20,
        )
        .addOption(formatFlag('table', 'json'))
        .action(tail),
    )
    .addCommand(
      addSourceFlags(
        addSelectionFlags(
          new Command('stats').description('Count refusals by filter, project, user and message.'),
        ),
      )
        .argument(
          '[file...]',
          'Logs, compressed or not; - for standard input. Default: the ledger of the configuration.',
        )
        .option(
          '--top <number>',
          'Number of projects, users and messages to list.',
          wholeNumber('--top', 1, MAX_TOP),
          10,
        )
        .addOption(formatFlag('table', 'json'))
        .action(stats),
    )
    .addCommand(
      sourceCommand(
        'show',
        'Print the decisions of a request, with the answer of every filter, from the ledger.',
      )
        .argument('<request-id>', 'The X-Openstack-Request-Id of the response.')
        .addOption(formatFlag('table', 'json'))
        .action(show),
    );
}

async function tail(file: string | undefined, flags: TailFlags): Promise<void> {
  if (file === undefined) {
    return tailStored(flags);
  }
  refuseBoth(flags);
  const { DecisionReader } = await import('../decisions/reader.ts');
  const selected = selector(flags);
  const reader = new DecisionReader();
  const textOf = printer(flags.format);
  const latest = new Latest(flags.lines);
  if (flags.follow) {
    await follow(file, reader, { latest, selected, textOf });
  } else {
    for await (const chunk of logFile(file).chunks()) {
      latest.add(reader.push(chunk).filter(selected));
    }
    latest.add(reader.end().filter(selected));
    process.stdout.write(textOf(latest.list()));
  }
  warnOfSkipped([reader]);
}

interface Following {
  readonly latest: Latest;
  readonly selected: (record: DecisionRecord) => boolean;
  readonly textOf: (records: readonly DecisionRecord[]) => string;
}

/** Prints until a signal, or the end of standard input. */
function follow(
  file: string,
  reader: DecisionReader,
  { latest, selected, textOf }: Following,
): Promise<void> {
  return untilSignal(async (signal, print) => {
    let caughtUp = false;
    for await (const chunk of followedChunks(file, signal)) {
      if (chunk === 'caught up') {
        await print(textOf(caughtUp ? [] : latest.list()));
        caughtUp = true;
        continue;
      }
      const records = (chunk === 'begins anew' ? reader.end() : reader.push(chunk)).filter(selected);
      if (caughtUp) {
        await print(textOf(records));
      } else {
        latest.add(records);
      }
    }
    await print(textOf(reader.end().filter(selected)));
  });
}

async function stats(files: readonly string[], flags: StatsFlags): Promise<void> {
  if (files.length === 0) {
    return statsStored(flags);
  }
  refuseBoth(flags);
  refuseStandardInputTwice(files);
  const { DecisionReader } = await import('../decisions/reader.ts');
  const { Statistics } = await import('../decisions/statistics.ts');
  const selected = selector(flags);
  const statistics = new Statistics();
  const count = (records: readonly DecisionRecord[]) => {
    for (const record of records) {
      if (selected(record)) {
        statistics.add(record);
      }
    }
  };
  const readers: DecisionReader[] = [];
  for (const file of files) {
    const reader = new DecisionReader();
    readers.push(reader);
    for await (const chunk of logFile(file).chunks()) {
      count(reader.push(chunk));
    }
    count(reader.end());
  }
  await printStatistics(statistics.summary(flags.top), flags.format);
  warnOfSkipped(readers);
}

async function tailStored(flags: TailFlags): Promise<void> {
  const { latestOf, newerOf, withStoredDecisions } = await import('./decisions/sources.ts');
  const textOf = printer(flags.format);
  await withStoredDecisions(flags, selectionOf(flags), async (source, selection) => {
    const last = flags.follow ? await source.newest(NO_DEADLINE) : 0n;
    process.stdout.write(textOf(await latestOf(source, selection, flags.lines)));
    if (flags.follow) {
      await untilSignal(async (signal, print) => {
        for await (const records of newerOf(source, selection, last, signal)) {
          await print(textOf(records));
        }
      });
    }
  });
}

async function statsStored(flags: StatsFlags): Promise<void> {
  const { pagesOf, withStoredDecisions } = await import('./decisions/sources.ts');
  const { Statistics } = await import('../decisions/statistics.ts');
  await withStoredDecisions(flags, selectionOf(flags), async (source, selection) => {
    const statistics = new Statistics();
    for await (const page of pagesOf(source, selection)) {
      for (const { record } of page) {
        statistics.add(record);
      }
    }
    await printStatistics(statistics.summary(flags.top), flags.format);
  });
}

async function show(requestId: string, flags: FormatFlags): Promise<void> {
  const { pagesOf, withStoredDecisions } = await import('./decisions/sources.ts');
  await withStoredDecisions(flags, {}, async (source) => {
    for await (const page of pagesOf(source, { requestId })) {
      if (page.length === 0) {
        throw new UsageError(`no decision of the request ${requestId} is stored`);
      }
      for (const stored of page) {
        await printDecision(stored, flags.format);
      }
    }
  });
}

function refuseBoth({ configFile, configDir, config }: SourceFlags): void {
  if (configFile !== undefined || configDir !== undefined || config !== undefined) {
    throw new UsageError('expected a log or a configuration with a ledger, got both');
  }
}

function printer(format: 'table' | 'json'): (records: readonly DecisionRecord[]) => string {
  const table = format === 'table' ? new DecisionTable() : undefined;
  return (records) => (table === undefined ? records.map(jsonLine).join('') : table.lines(records));
}

export interface SelectionFlags {
  readonly project?: readonly string[];
  readonly user?: readonly string[];
  readonly filter?: readonly string[];
  readonly outcome?: readonly DecisionOutcome[];
  readonly operation?: readonly DecisionRecord['operation'][];
  readonly side?: readonly Side[];
  readonly since?: string;
  readonly until?: string;
}

const OUTCOMES = [
  'allowed',
  'changed',
  'rejected',
  'failed',
  'exempt',
  'audit',
  'allowed-on-error',
  'bypassed',
] as const satisfies DecisionOutcome[];

export function addSelectionFlags(command: Command): Command {
  return command
    .option('--project <id>', 'Only this project, by id or name@domain; repeatable.', repeatable)
    .option('--user <id>', 'Only this user, by id or name@domain; repeatable.', repeatable)
    .option(
      '--filter <name>',
      'Only where this filter did more than allow: it refused, failed, changed something, or would have refused (audit_filters); repeatable.',
      repeatable,
    )
    .option('--outcome <outcome>', `Only this outcome; repeatable: ${OUTCOMES.join(', ')}.`, oneOf(OUTCOMES))
    .option(
      '--operation <operation>',
      `Only this operation; repeatable: ${OPERATIONS.join(', ')}.`,
      oneOf(OPERATIONS),
    )
    .option('--side <side>', `Only requests of SkyPilot from this side: ${SIDES.join(', ')}.`, oneOf(SIDES))
    .option('--since <time>', `Only from this time on: ${TIME_FORMS}.`)
    .option('--until <time>', 'Only before this time, in the same forms.');
}

/** Returns whether a decision is selected. @throws UsageError */
export function selector(flags: SelectionFlags): (record: DecisionRecord) => boolean {
  const selection = selectionOf(flags);
  return (record) => isSelected(record, selection);
}

/** @throws UsageError */
export function selectionOf(flags: SelectionFlags): Selection {
  return {
    projects: flags.project,
    users: flags.user,
    filters: flags.filter,
    outcomes: flags.outcome,
    operations: flags.operation,
    sides: flags.side,
    ...periodOf(flags),
  };
}

function oneOf<Value extends string>(values: readonly Value[]) {
  return (text: string, before: readonly Value[] = []): Value[] => {
    const value = values.find((candidate) => candidate === text);
    if (value === undefined) {
      throw new InvalidArgumentError(`Allowed choices are ${values.join(', ')}.`);
    }
    return [...before, value];
  };
}
