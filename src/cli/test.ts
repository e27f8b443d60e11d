/** `test`: runs the cases beside a configuration, and replays or records decision logs. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { flagNamed, UsageError } from './common/output.ts';
import {
  addSourceFlags,
  formatFlag,
  repeatable,
  sourcesOf,
  TIME_FORMS,
  wholeNumber,
} from './common/sources.ts';
import { exitWhenWritten } from './common/standard-streams.ts';
import type { LogFlags } from './test/log-run.ts';
import type { TestFlags, TestOptions } from './test/suites.ts';

/** Examples and cases are held in memory. */
const MAX_COUNT = 10_000;

const MORE_HELP = `
A case is a YAML file: what is asked for, when, what is known, and what is expected:

  name: Students have leases of at most two days
  now: 2026-11-21T09:00:00Z
  lease: {project: students, start: +1d, days: 3, hosts: 2}
  expect: {rejected: at most 2 days, rule: students-two-days}

Cases are the .yaml files in folders called cases, files called *.case.yaml, and files that you name. A file may have several, in a list
called cases. The configuration is that of --config-file, otherwise the nearest blazar.conf beside the case or above it.
It calls no other service, and uses only a temporary ledger. docs/reference/test.md has all keys.

Examples:
  blazar-enforcement test
  blazar-enforcement test cases/weekends.yaml --config-file blazar.conf
  blazar-enforcement test --filter gpus --format junit > report.xml
  blazar-enforcement test --replay '/var/log/blazar-enforcement/decisions.jsonl*' --since 30d --config-file new.conf
  blazar-enforcement test --record decisions.jsonl --since yesterday --out cases/recorded`;

export function testCommand(): Command {
  const command = new Command('test')
    .description(
      'Run cases: requests for leases, pods and tasks, and what the configuration should answer. Exit code: 0 all as expected, 1 some are not, 2 a mistake in a case, the configuration or the command, 3 a filter or policy failed.',
    )
    .argument('[folder...]', 'Folders or files with cases. Default: the working directory.')
    .addOption(formatFlag('table', 'json', 'junit', 'tap'))
    .addOption(filterFlag())
    .addOption(junitFlag())
    .option(
      '--coverage',
      'Show which filters, rules and policies no case covers: allowing a request, and refusing one.',
    )
    .option(
      '--threshold <percent>',
      'Exit with 1 if the coverage is less than this; implies --coverage.',
      percentOf,
    )
    .option('--watch', 'Run again when a case, a rule or the configuration changes, until Ctrl-C.');
  return addSourceFlags(addLogFlags(command)).addHelpText('after', MORE_HELP).action(test);
}

export function filterFlag(): Option {
  return new Option(
    '-r, --filter <text>',
    'Run only cases whose path or name contains this text, or matches /this regular expression/.',
  );
}

export function junitFlag(): Option {
  return new Option(
    '--junit <file>',
    'Write a JUnit report, too; - writes it to standard output instead of the table.',
  );
}

async function test(named: readonly string[], flags: TestFlags & LogFlags): Promise<void> {
  if (isAboutLogs(flags)) {
    await testLogs(named, flags);
    return;
  }
  const { schemaOfCase } = await import('./test/any-case.ts');
  const folders = named.length === 0 ? ['.'] : named;
  const options: TestOptions = {
    folders,
    files: 'named',
    schemaFor: schemaOfCase,
    filter: flags.filter,
    flags: sourcesOf(flags),
  };
  const { runOnce, runWatching } = await import('./test/suites.ts');
  await (flags.watch === true ? runWatching : runOnce)('blazar-enforcement test', options, flags);
  // A policy may leave timers and connections open.
  exitWhenWritten();
}

async function testLogs(named: readonly string[], flags: TestFlags & LogFlags): Promise<void> {
  const { replay: replayed, record: recorded } = flags;
  if (replayed !== undefined) {
    const { replay } = await import('./test/replay.ts');
    process.exitCode = await replay(replayed, named, flags);
  } else if (recorded !== undefined) {
    const { record } = await import('./test/record.ts');
    process.exitCode = await record(recorded, named, flags);
  }
  exitWhenWritten();
}

function percentOf(text: string): number {
  const percent = /^\d{1,3}(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(percent >= 0 && percent <= 100)) {
    throw new InvalidArgumentError('Expected a number from 0 to 100.');
  }
  return percent;
}

/** Flags that require cases. */
const OF_CASES = ['watch', 'coverage', 'threshold', 'filter'];
/** Flags that require logs. */
const OF_LOGS = ['since', 'until', 'project', 'user', 'assumeRecorded', 'allowUndecidable', 'force'] as const;

/** @throws UsageError if a flag would have no effect */
function isAboutLogs(flags: LogFlags): boolean {
  const isAbout = flags.replay !== undefined || flags.record !== undefined;
  const idle = OF_LOGS.find((name) => flags[name] !== undefined);
  if (!isAbout && idle !== undefined) {
    throw new UsageError(`${flagNamed(idle)}: expected --replay or --record with it`);
  }
  return isAbout;
}

function addLogFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--replay <log>',
        'Print which decisions of this decision log the configuration would decide differently; repeatable; a pattern such as log*, or - for standard input. Exit code: 0 all were judged and none differs, 1 some differ or cannot be judged, 2 a mistake, 3 a filter or rule failed.',
      )
        .argParser(repeatable)
        .conflicts(['record', ...OF_CASES]),
    )
    .option(
      '--record <log>',
      'Write the decisions of this decision log as cases; repeatable, as above.',
      repeatable,
    )
    .option('--since <time>', `Only decisions of the log from this time on: ${TIME_FORMS}.`)
    .option('--until <time>', 'Only decisions of the log before this time, in the same forms.')
    .option(
      '--project <project>',
      'Only decisions of the log for this project: its id, or name@domain where the log has names; repeatable.',
      repeatable,
    )
    .option(
      '--user <user>',
      'Only decisions of the log for this user: the id, or name@domain where the log has names; repeatable.',
      repeatable,
    )
    .option(
      '--examples <count>',
      'With --replay: how many examples of each difference are shown.',
      wholeNumber('--examples', 0, MAX_COUNT),
      10,
    )
    .option(
      '--assume-recorded',
      'With --replay: for filters that cannot run again, such as those of the ledger, take the answer in the log.',
    )
    .option(
      '--allow-undecidable',
      'With --replay: exit with 0 even if some decisions could not be judged again.',
    )
    .option('--out <folder>', 'With --record: where cases are written.', 'cases/recorded')
    .option(
      '--max <count>',
      'With --record: how many cases are written.',
      wholeNumber('--max', 0, MAX_COUNT),
      1000,
    )
    .option('--force', 'With --record: replace existing cases that differ.');
}
