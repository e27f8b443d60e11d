/** Runs the cases of some folders once, and tells what came of them. */
import type { z } from 'zod';
import type { ConfigSources } from '../../config/sources.ts';
import { type CaseFile, type ReadCase, readCases } from '../cases/case-files.ts';
import type { CaseResult } from '../cases/case-report.ts';
import { patternOf } from '../cases/expected-text.ts';
import { UsageError } from '../output.ts';
import { TaskConfigurations } from '../skypilot/case-configuration.ts';
import type { AnyCase } from './any-case.ts';
import { Coverage } from './coverage.ts';
import { EmptyLedgers } from './empty-ledger.ts';
import { runCase, type TestRun } from './run-case.ts';
import { caseFolder } from './suites.ts';

/** At the same time: threads of policies mostly wait for each other's start. */
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

export interface TestReport {
  readonly results: readonly CaseResult[];
  readonly coverage: Coverage;
  /** The files and folders that configurations consist of, for watching them. */
  readonly files: readonly string[];
}

/** @throws UsageError if there is no case to run */
export async function testCases(options: TestOptions): Promise<TestReport> {
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
  const { expectRules } = await import('./expected-rules.ts');
  for (const one of configurations) {
    if (one.status === 'fulfilled') {
      expectRules(one.value, coverage);
    }
  }
  const files = [
    ...configurations.flatMap((one) =>
      one.status === 'fulfilled' ? [...one.value.files, ...one.value.namedFiles] : [],
    ),
    // Where a mistake is, it will be corrected.
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

/** Some at a time, in order. */
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
