import { cpus } from 'node:os';
import { printTable } from '../src/cli/common/output.ts';
import type { Result } from './harness/results.ts';
import type { Suite, Trial } from './harness/suite.ts';
import type { Commit } from './reference/checkout.ts';
import { shownBeside, shownRatio, shownTarget, shownValue } from './shown.ts';

export interface Report {
  readonly runs: number;
  readonly results: readonly Result[];
  readonly matters: readonly (Suite | Trial)[];
  /** Reasons by topic: a peer is missing. */
  readonly notMeasured: Readonly<Record<string, string>>;
  /** See `--against`. */
  readonly against?: Commit | undefined;
}

export function printJsonReport({ runs, results, matters, notMeasured, against }: Report): void {
  const notes = Object.fromEntries(matters.map(({ name, notes }) => [name, notes]));
  process.stdout.write(
    `${JSON.stringify({ machine: machine(), runs, against, results, notMeasured, notes }, null, 2)}\n`,
  );
}

export async function printTableReport(report: Report): Promise<void> {
  const { runs, results, matters, notMeasured, against } = report;
  await printTable(
    [
      'NAME',
      'MEASURED',
      '',
      'COMPARED WITH',
      '',
      'RATIO',
      'SPREAD',
      'TARGET',
      'MET',
      ...(against === undefined ? [] : [`AT ${against.ref}`, 'TODAY BESIDE IT']),
    ],
    results.map((result) => [
      `${result.suite}: ${result.name}`,
      result.measured.what,
      shownValue(result.measured),
      result.comparedWith.what,
      shownValue(result.comparedWith),
      shownRatio(result.ratio),
      `${shownRatio(result.spread.min)} – ${shownRatio(result.spread.max)}`,
      shownTarget(result.target),
      result.met === null ? '' : result.met ? 'yes' : 'NO',
      ...(against === undefined ? [] : besideCells(result)),
    ]),
  );
  const { node, processors, model } = machine();
  process.stdout.write(
    `\nMedians of ${runs} run(s), the ratio within each run; spread: the smallest and the largest ratio of a run. Node ${node}, ${processors} x ${model}.\n`,
  );
  if (against !== undefined) {
    const worse = results.filter(isWorse).map(({ suite, name }) => `${suite}: ${name}`);
    process.stdout.write(
      `\nBeside ${against.ref} (${against.hash}): above 1, today is better; * = measured by the bench of that commit. ${worse.length === 0 ? 'No row is worse.' : `Worse: ${worse.join('; ')}.`}\n`,
    );
  }
  for (const [name, why] of Object.entries(notMeasured)) {
    process.stdout.write(`\n${name}: not measured: ${why}\n`);
  }
  for (const { name, notes } of matters) {
    process.stdout.write(`\n${name}\n${notes.map((note) => `  - ${note}\n`).join('')}`);
  }
}

function isWorse({ reference }: Pick<Result, 'reference'>): boolean {
  return reference !== undefined && 'worse' in reference && reference.worse;
}

function besideCells({ reference, measured }: Result): [string, string] {
  const [value, beside] = shownBeside(reference, measured.unit);
  return [value, beside + (isWorse({ reference }) ? ' WORSE' : '')];
}

function machine() {
  const processors = cpus();
  return {
    node: process.versions.node,
    processors: processors.length,
    model: processors[0]?.model ?? 'unknown',
  };
}
