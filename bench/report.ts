import { cpus } from 'node:os';
import { printTable } from '../src/cli/output.ts';
import type { Result } from './harness/results.ts';
import type { Suite, Trial } from './harness/suite.ts';
import { shownRatio, shownTarget, shownValue } from './shown.ts';

export interface Report {
  readonly runs: number;
  readonly results: readonly Result[];
  readonly matters: readonly (Suite | Trial)[];
  /** Why, by topic: a peer is missing. */
  readonly notMeasured: Readonly<Record<string, string>>;
}

export function printJsonReport({ runs, results, matters, notMeasured }: Report): void {
  const notes = Object.fromEntries(matters.map(({ name, notes }) => [name, notes]));
  process.stdout.write(
    `${JSON.stringify({ machine: machine(), runs, results, notMeasured, notes }, null, 2)}\n`,
  );
}

export async function printTableReport({ runs, results, matters, notMeasured }: Report): Promise<void> {
  await printTable(
    ['NAME', 'MEASURED', '', 'COMPARED WITH', '', 'RATIO', 'SPREAD', 'TARGET', 'MET'],
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
    ]),
  );
  const { node, processors, model } = machine();
  process.stdout.write(
    `\nMedians of ${runs} run(s), the ratio within each run; spread: the smallest and the largest ratio of a run. Node ${node}, ${processors} x ${model}.\n`,
  );
  for (const [name, why] of Object.entries(notMeasured)) {
    process.stdout.write(`\n${name}: not measured: ${why}\n`);
  }
  for (const { name, notes } of matters) {
    process.stdout.write(`\n${name}\n${notes.map((note) => `  - ${note}\n`).join('')}`);
  }
}

function machine() {
  const processors = cpus();
  return {
    node: process.versions.node,
    processors: processors.length,
    model: processors[0]?.model ?? 'unknown',
  };
}
