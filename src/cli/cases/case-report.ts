/** Prints the results of cases, whatever their content, as a table, JUnit or TAP, with an exit code. */
import { writeFileSync } from 'node:fs';
import { formatProblem, type Problem } from '../../base/errors.ts';
import { inCdata, visibleLines, visibleXml } from '../../base/visible-text.ts';
import { systemErrorText } from '../../config/read-file.ts';
import { builder } from '../../conformance/report.ts';
import {
  ExitCode,
  jsonText,
  onOneLine,
  printJson,
  printProblems,
  printTable,
  UsageError,
} from '../common/output.ts';

/**
 * - `passed`: as expected
 * - `failed`: otherwise
 * - `mistake`: the case cannot be read or run
 * - `broken`: the tested code failed although no failure is expected
 */
type CaseStatus = 'passed' | 'failed' | 'mistake' | 'broken';

export interface CaseResult {
  readonly id: string;
  readonly file: string;
  readonly name: string;
  readonly status: CaseStatus;
  /** One sentence each; empty if the case passed. */
  readonly reasons: readonly string[];
  /** The differences, on several lines; may be empty. */
  readonly diff: string;
  /** For `mistake`, with file and line. */
  readonly problems: readonly Problem[];
  readonly milliseconds: number;
}

/** 0: all as expected; 1: some not; 2: a mistake; 3: something is broken. */
export function exitCodeOf(results: readonly CaseResult[]): number {
  const has = (status: CaseStatus) => results.some((one) => one.status === status);
  if (has('mistake')) {
    return ExitCode.usage;
  }
  return has('broken') ? ExitCode.failed : has('failed') ? ExitCode.rejected : ExitCode.ok;
}

/** Mistakes go to standard error in every format. */
export async function printResults(
  suite: string,
  results: readonly CaseResult[],
  format: 'table' | 'json' | 'junit' | 'tap',
): Promise<void> {
  if (format === 'table') {
    await printResultTable(results);
    return;
  }
  if (format === 'json') {
    for (const result of results) {
      printJson(result);
    }
  } else {
    process.stdout.write(format === 'junit' ? resultsJunit(suite, results) : resultsTap(results));
  }
  printProblems(results.flatMap(({ problems }) => problems));
}

/** A line for each case, mistakes on standard error, then the differences. */
async function printResultTable(results: readonly CaseResult[]): Promise<void> {
  await printTable(
    ['CASE', 'RESULT', 'WHY'],
    results.map(({ id, status, reasons, problems }) => [
      id,
      status,
      [...reasons, ...(problems.length > 0 ? ['see the error'] : [])].join('; '),
    ]),
  );
  for (const { id, name, diff } of results.filter((one) => one.diff !== '')) {
    const title = name === id || id.endsWith(`: ${name}`) ? id : `${id}: ${name}`;
    process.stdout.write(`\n${onOneLine(title)}\n${diff.split('\n').map(onOneLine).join('\n')}`);
  }
  printProblems(results.flatMap(({ problems }) => problems));
  const counts = (['passed', 'failed', 'broken', 'mistake'] as const).flatMap((status) => {
    const count = results.filter((one) => one.status === status).length;
    return count === 0 && status !== 'passed' ? [] : [`${count} ${status}`];
  });
  process.stdout.write(`\n${counts.join(', ')}\n`);
}

export function resultsJunit(suiteName: string, results: readonly CaseResult[]): string {
  const report = builder.newBuilder();
  const suite = report.testSuite().name(suiteName);
  for (const { id, file, name, status, reasons, diff, problems, milliseconds } of results) {
    const test = suite
      .testCase()
      .className(id)
      .name(name)
      .file(file)
      .time(milliseconds / 1000);
    const text = visibleLines([...reasons, ...problems.map(formatProblem), diff].join('\n').trim());
    const [first = status] = text.split('\n');
    if (status === 'failed') {
      test.failure(first, status).stacktrace(inCdata(text));
    } else if (status !== 'passed') {
      test.error(first, status, inCdata(text));
    }
  }
  return visibleXml(report.build());
}

/** The Test Anything Protocol, version 14. A case that could not be run is `not ok`, like a failed one. */
function resultsTap(results: readonly CaseResult[]): string {
  const lines = results.flatMap(({ id, status, reasons, problems, file, milliseconds }, index) => {
    const description = onOneLine(id).replace(/[\\#]/g, '\\$&');
    const head = `${status === 'passed' ? 'ok' : 'not ok'} ${index + 1} - ${description}`;
    if (status === 'passed') {
      return [head];
    }
    const message = [...reasons, ...problems.map(formatProblem)].join('; ');
    // JSON is valid YAML.
    return [
      head,
      '  ---',
      `  message: ${jsonText(message)}`,
      `  severity: ${status}`,
      `  at: ${jsonText(file)}`,
      `  duration_ms: ${Math.round(milliseconds)}`,
      '  ...',
    ];
  });
  return ['TAP version 14', `1..${results.length}`, ...lines, ''].join('\n');
}

/** Writes to a file, or to standard output for `-`. @throws UsageError */
export function writeJunit(file: string, text: string): void {
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
