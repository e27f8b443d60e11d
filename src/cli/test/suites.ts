/** Finds the cases of folders, runs them once or whenever their files change, and prints the results. */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { z } from 'zod';
import { systemErrorText } from '../../config/read-file.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { WatchedFiles } from '../../server/configuration/watched-files.ts';
import { type CaseFile, type ReadCase, readCases, yamlFilesIn } from '../cases/case-files.ts';
import { type CaseResult, exitCodeOf, printResults, resultsJunit, writeJunit } from '../cases/case-report.ts';
import { patternOf } from '../cases/expected.ts';
import { ExitCode, printJson, UsageError } from '../common/output.ts';
import type { SourceFlags } from '../common/sources.ts';
import { reportFailure } from '../common/standard-streams.ts';
import { TaskConfigurations } from '../skypilot/case-configuration.ts';
import type { AnyCase } from './any-case.ts';
import { Coverage, coveredPercent, expectRules, percentText, printCoverage } from './coverage.ts';
import { EmptyLedgers } from './lease-trial.ts';
import { CASES, runCase, type TestRun } from './run-case.ts';

export interface TestFlags extends SourceFlags {
  readonly format: 'table' | 'json' | 'junit' | 'tap';
  readonly filter?: string;
  readonly junit?: string;
  readonly coverage?: boolean;
  readonly threshold?: number;
  readonly watch?: boolean;
}

const MAX_FILES = 10_000;
/** Cases outside of `cases` folders. */
const CASE_FILE = /[.-]case\.ya?ml$/i;
interface CaseFolder {
  /** The prefix that the ids of its cases omit. */
  readonly folder: string;
  readonly files: readonly string[];
}

/** `which`: all YAML files, or only those in `cases` folders and `*.case.yaml` files. @throws UsageError */
function caseFolder(path: string, which: 'all' | 'named'): CaseFolder {
  if (isFile(path)) {
    return { folder: dirname(path), files: [path] };
  }
  const isOfCases = basename(resolve(path)) === CASES;
  const files = yamlFilesIn(path).filter(
    (file) =>
      which === 'all' ||
      isOfCases ||
      CASE_FILE.test(file) ||
      relative(path, file).split(sep).slice(0, -1).includes(CASES),
  );
  const whyNone =
    which === 'all' || isOfCases
      ? 'no file that ends in .yaml or .yml'
      : `no .yaml file in a folder called ${CASES}, and none called *.case.yaml`;
  if (files.length === 0) {
    throw new UsageError(`${path}: there is no case in it: ${whyNone}`);
  }
  if (files.length > MAX_FILES) {
    throw new UsageError(`${path}: expected at most ${MAX_FILES} cases, got ${files.length}`);
  }
  return { folder: path, files };
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch (thrown) {
    throw new UsageError(`${path}: ${systemErrorText(thrown)}`);
  }
}

/** The number of concurrent cases: policy threads mostly wait until others have started. */
const AT_ONCE = 3;

export interface TestOptions {
  readonly folders: readonly string[];
  /** Which files of a folder are cases. */
  readonly files: 'all' | 'named';
  readonly schemaFor: (value: unknown) => z.ZodType<AnyCase>;
  /** A part of the id or the name, or a regular expression between slashes. */
  readonly filter: string | undefined;
  readonly flags: Pick<ConfigSources, 'configFiles' | 'configDirs' | 'config'>;
}

interface TestReport {
  readonly results: readonly CaseResult[];
  readonly coverage: Coverage;
  /** The files and folders of configurations, for watching. */
  readonly files: readonly string[];
}

/** @throws UsageError if there is no case to run */
async function testCases(options: TestOptions): Promise<TestReport> {
  const pattern = options.filter === undefined ? undefined : patternOf(options.filter);
  if (options.filter !== undefined && pattern === undefined) {
    throw new UsageError('--filter: expected a regular expression between the slashes');
  }
  const read = options.folders
    .map((path) => caseFolder(path, options.files))
    .flatMap(({ folder, files }) =>
      files.flatMap((file) => readCases(folder, file, options.schemaFor).map((one) => ({ one, folder }))),
    )
    .filter(({ one }) => pattern === undefined || pattern.test(one.id) || pattern.test(nameOf(one)));
  if (read.length === 0) {
    throw new UsageError(`${options.folders.join(' ')}: no case matches --filter ${options.filter ?? ''}`);
  }
  const coverage = new Coverage();
  const ledgers = new EmptyLedgers();
  const tasks = new TaskConfigurations();
  const run: TestRun = { flags: options.flags, coverage, ledgers, configurations: new Map(), tasks };
  const results = await inTurn(read, async ({ one, folder }): Promise<CaseResult> => {
    if (isRead(one)) {
      return runCase(one, folder, run);
    }
    const { id, file, problems } = one;
    return { id, file, name: id, status: 'mistake', reasons: [], diff: '', problems, milliseconds: 0 };
  }).finally(() => ledgers.close());
  const configurations = await Promise.allSettled([...run.configurations.values(), ...tasks.all()]);
  for (const one of configurations) {
    if (one.status === 'fulfilled') {
      expectRules(one.value, coverage);
    }
  }
  const files = [
    ...configurations.flatMap((one) =>
      one.status === 'fulfilled' ? [...one.value.files, ...one.value.namedFiles] : [],
    ),
    // Errors will be corrected there.
    ...results
      .flatMap(({ problems }) => problems)
      .flatMap(({ origin }) => (origin?.kind === 'file' ? origin.file : [])),
  ];
  return { results, coverage, files };
}

function isRead(one: CaseFile<AnyCase>): one is ReadCase<AnyCase> {
  return 'case' in one;
}

function nameOf(one: CaseFile<AnyCase>): string {
  return isRead(one) ? (one.case.written.name ?? '') : '';
}

/** Runs some at a time; results are in order. */
async function inTurn<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = new Array<Result>(items.length);
  const queue = items.entries();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [index, item] of queue) {
        results[index] = await work(item);
      }
    }),
  );
  return results;
}

/** Runs cases, prints the results, and sets the exit code. @throws UsageError */
export async function runOnce(suite: string, options: TestOptions, flags: TestFlags): Promise<TestReport> {
  const report = await testCases(options);
  const { results } = report;
  if (flags.junit !== undefined) {
    writeJunit(flags.junit, resultsJunit(suite, results));
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

/** Prints an error, and waits for its correction. */
export async function runWatching(suite: string, options: TestOptions, flags: TestFlags): Promise<void> {
  let watched: readonly string[] = [];
  await watching(options.folders, async () => {
    try {
      const { files } = await runOnce(suite, options, flags);
      watched = files;
    } catch (thrown) {
      process.exitCode = reportFailure(thrown);
    }
    process.stderr.write('waiting for changes; Ctrl-C ends\n');
    return watched;
  });
}

/** In milliseconds. Changes within this time cause one run. */
const POLL_MS = 300;
/** Larger trees are not folders of cases. */
const MAX_FOLDERS = 1_000;

/**
 * Calls `run` now, and after each change in the folders or in the files that it resolves to, until SIGINT or
 * SIGTERM. Runs do not overlap: changes during a run cause one more. Resolves when the last run has ended.
 */
async function watching(folders: readonly string[], run: () => Promise<readonly string[]>): Promise<void> {
  let wake = () => {};
  const state = { isStopped: false, hasChanged: false };
  const watched = new WatchedFiles(() => {
    state.hasChanged = true;
    wake();
  }, POLL_MS);
  const stop = () => {
    state.isStopped = true;
    wake();
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  // Nothing else keeps the process alive between runs.
  const alive = setInterval(() => {}, 60_000);
  try {
    await watched.watch(foldersBelow(folders));
    watched.start();
    while (!state.isStopped) {
      state.hasChanged = false;
      const named = await run();
      await watched.watch([...new Set([...foldersBelow(folders), ...named])]);
      if (!state.hasChanged && !state.isStopped) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    clearInterval(alive);
    watched.close();
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}

/** The paths, and all folders in them. */
function foldersBelow(paths: readonly string[]): string[] {
  const found = [...paths];
  for (let index = 0; index < found.length && found.length < MAX_FOLDERS; index += 1) {
    const path = found[index] ?? '';
    try {
      const inside = readdirSync(path, { withFileTypes: true });
      found.push(
        ...inside
          .filter((one) => one.isDirectory() && !one.name.startsWith('.') && one.name !== 'node_modules')
          .map(({ name }) => join(path, name)),
      );
    } catch {
      // A file, or a deleted folder: watched nevertheless.
    }
  }
  return found.slice(0, MAX_FOLDERS);
}
