import { cpus } from 'node:os';
import { printTable } from '../src/cli/output.ts';
import type { Result, Side } from './harness/results.ts';
import type { Suite, Target, Trial } from './harness/suite.ts';

export interface Report {
  readonly runs: number;
  readonly results: readonly Result[];
  readonly matters: readonly (Suite | Trial)[];
}

export function printJsonReport({ runs, results, matters }: Report): void {
  const notes = Object.fromEntries(matters.map(({ name, notes }) => [name, notes]));
  process.stdout.write(`${JSON.stringify({ machine: machine(), runs, results, notes }, null, 2)}\n`);
}

export async function printTableReport({ runs, results, matters }: Report): Promise<void> {
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

function shownValue({ value, unit }: Side): string {
  switch (unit) {
    case 'ns':
      return shownTime(value);
    case 'per second':
      return `${Math.round(value).toLocaleString('en')} /s`;
    case 'bytes':
      return `${(value / 2 ** 20).toFixed(1)} MiB`;
    case 'times':
      return value.toLocaleString('en');
  }
}

function shownTime(nanoseconds: number): string {
  const [divisor, name] =
    nanoseconds < 1e3
      ? [1, 'ns']
      : nanoseconds < 1e6
        ? [1e3, 'µs']
        : nanoseconds < 1e9
          ? [1e6, 'ms']
          : [1e9, 's'];
  return `${(nanoseconds / divisor).toPrecision(3)} ${name}`;
}

function shownRatio(ratio: number): string {
  return ratio.toFixed(2);
}

function shownTarget(target: Target | null): string {
  if (target === null) {
    return '';
  }
  return 'atMost' in target ? `<= ${target.atMost}` : `>= ${target.atLeast}`;
}
