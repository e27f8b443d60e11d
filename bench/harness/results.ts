import type { Comparison, Growth, Run, Target } from './suite.ts';

/** One side of a comparison: the median of all runs, in `unit`. */
export interface Side {
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
}

export type Unit = 'ns' | 'per second' | 'bytes' | 'times';

const UNITS = {
  time: 'ns',
  rate: 'per second',
  memory: 'bytes',
  count: 'times',
} as const satisfies Record<Comparison['of'], Unit>;

/** One row of the report. */
export interface Result {
  readonly suite: string;
  readonly name: string;
  readonly measured: Side;
  readonly comparedWith: Side;
  /** The median of the ratios within each run; ratios across runs are never computed. */
  readonly ratio: number;
  /** The smallest and largest ratio of a run, which show the noise of the machine. */
  readonly spread: { readonly min: number; readonly max: number };
  readonly target: Target | null;
  /** Whether the median meets the target; `null` without a target. */
  readonly met: boolean | null;
  readonly growth?: Growth | undefined;
}

/** @throws RangeError without values */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) {
    throw new RangeError('expected at least one value');
  }
  return (lower + upper) / 2;
}

export function compare(suite: string, comparison: Comparison, runs: readonly Run[]): Result {
  const { name, measured, comparedWith, of, target = null, growth } = comparison;
  const values = (subject: string) =>
    runs.map((run) => {
      const value = run.get(subject);
      if (value === undefined) {
        throw new Error(`${suite}: ${name}: there is no subject ${subject}`);
      }
      return of === 'rate' ? 1e9 / value : value;
    });
  const side = (what: string): Side => ({ what, value: median(values(what)), unit: UNITS[of] });
  const divisors = values(comparedWith);
  const ratios = values(measured).map((value, run) => value / (divisors[run] ?? Number.NaN));
  const ratio = median(ratios);
  return {
    suite,
    name,
    measured: side(measured),
    comparedWith: side(comparedWith),
    ratio,
    spread: { min: Math.min(...ratios), max: Math.max(...ratios) },
    target,
    met: target && ('atMost' in target ? ratio <= target.atMost : ratio >= target.atLeast),
    ...(growth !== undefined && { growth }),
  };
}
