/** `test`: runs cases beside a configuration. */
import { writeFileSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import { systemErrorText } from '../config/read-file.ts';
import { ExitCode, printJson, UsageError } from './output.ts';
import { addSourceFlags, formatFlag, type SourceFlags, sourcesOf } from './sources.ts';
import { exitWhenWritten } from './standard-streams.ts';
import { addLogFlags, isAboutLogs, type LogFlags } from './test/replay-flags.ts';

export interface TestFlags extends SourceFlags {
  readonly format: 'table' | 'json' | 'junit' | 'tap';
  readonly filter?: string;
  readonly junit?: string;
  readonly coverage?: boolean;
  readonly threshold?: number;
  readonly watch?: boolean;
}

const MORE_HELP = `
A case is a YAML file: what is asked for, when, what is known, and what is expected:

  name: Students have leases of at most two days
  now: 2026-11-21T09:00:00Z
  lease: {project: students, start: +1d, days: 3, hosts: 2}
  expect: {rejected: at most 2 days, rule: students-two-days}

Cases are the .yaml files in folders called cases, files called *.case.yaml, and files that you name. A file may have several, in a list
called cases. The configuration is that of --config-file, otherwise the nearest blazar.conf beside the case or above it.
No other service is called, and no ledger but a temporary one. docs/reference/test.md has all keys.

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
    .option('--coverage', 'Show which filters, rules and policies no case has seen allow, or refuse.')
    .addOption(
      new Option(
        '--threshold <percent>',
        'Exit with 1 if the coverage is less than this; implies --coverage.',
      ).argParser(percentOf),
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
    ...{ folders, files: 'named', schemaFor: schemaOfCase },
    ...{ filter: flags.filter, flags: sourcesOf(flags) },
  };
  if (flags.watch !== true) {
    await runOnce('blazar-enforcement test', options, flags);
  } else {
    await runWatching(options, flags);
  }
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

type TestOptions = import('./test/test-cases.ts').TestOptions;
type TestReport = import('./test/test-cases.ts').TestReport;

/** Runs cases, prints what came of them, and sets the exit code. @throws UsageError */
export async function runOnce(suite: string, options: TestOptions, flags: TestFlags): Promise<TestReport> {
  const { testCases } = await import('./test/test-cases.ts');
  const { exitCodeOf, printResults, resultsJunit } = await import('./cases/case-report.ts');
  const report = await testCases(options);
  const { results } = report;
  if (flags.junit !== undefined) {
    write(flags.junit, resultsJunit(suite, results));
  }
  if (flags.format !== 'table' || flags.junit !== '-') {
    await printResults(suite, results, flags.format);
  }
  process.exitCode = exitCodeOf(results);
  if (flags.coverage === true || flags.threshold !== undefined) {
    await showCoverage(report, flags);
  }
  return report;
}

async function showCoverage({ coverage }: TestReport, { format, threshold = 0, junit }: TestFlags) {
  const { coveredPercent, percentText, printCoverage } = await import('./test/coverage-report.ts');
  const covered = coverage.list();
  const percent = coveredPercent(covered);
  if (format === 'json') {
    printJson({ coverage: Math.floor(percent * 10) / 10, covered });
  } else if (format === 'table' && junit !== '-') {
    await printCoverage(covered);
  } else {
    process.stderr.write(`coverage: ${percentText(percent)}\n`);
  }
  if (percent < threshold) {
    process.stderr.write(
      `error: the coverage is ${percentText(percent)}, expected at least ${threshold} %\n`,
    );
    process.exitCode ||= ExitCode.rejected;
  }
}

/** A mistake is shown, and waits for its correction. */
async function runWatching(options: TestOptions, flags: TestFlags): Promise<void> {
  const { watching } = await import('./test/watch.ts');
  const { reportFailure } = await import('./report-failure.ts');
  let watched: readonly string[] = [];
  await watching(options.folders, async () => {
    try {
      const { files } = await runOnce('blazar-enforcement test', options, flags);
      watched = files;
    } catch (thrown) {
      process.exitCode = reportFailure(thrown);
    }
    process.stderr.write('waiting for changes; Ctrl-C ends\n');
    return watched;
  });
}

function percentOf(text: string): number {
  const percent = /^\d{1,3}(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(percent >= 0 && percent <= 100)) {
    throw new InvalidArgumentError('Expected a number from 0 to 100.');
  }
  return percent;
}

function write(file: string, text: string): void {
  if (file === '-') {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(file, text);
  } catch (thrown) {
    throw new UsageError(`--junit: ${file}: ${systemErrorText(thrown)}`);
  }
}
