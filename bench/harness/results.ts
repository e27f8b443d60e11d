import { atReference, type Comparison, type Growth, type Run, type Target } from './suite.ts';

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

/** A measurement with the package of another commit: see `--against`. */
export type BesideReference =
  | {
      /** The median of all runs with that package, in the unit of the row. */
      readonly value: number;
      /** How many times better this package is, even if less is better: the median ratio of all runs. */
      readonly ratio: number;
      readonly spread: { readonly min: number; readonly max: number };
      /** Whether the whole spread is below random variation. */
      readonly worse: boolean;
      /** Measured by that commit's own bench, because this one does not fit its modules. */
      readonly ownBench?: boolean | undefined;
    }
  | { readonly notComparable: string };

/** One row of the report. */
export interface Result {
  readonly suite: string;
  readonly name: string;
  readonly measured: Side;
  readonly comparedWith: Side;
  /** The median of the ratios within each run; ratios across runs are never computed. */
  readonly ratio: number;
  /** The smallest and largest ratio of a run; they show the noise of the machine. */
  readonly spread: { readonly min: number; readonly max: number };
  readonly target: Target | null;
  /** Whether the median meets the target; `null` without a target. */
  readonly met: boolean | null;
  readonly growth?: Growth | undefined;
  /** Missing without a reference, and for peers. */
  readonly reference?: BesideReference | undefined;
}

/** Below this ratio, a package counts as worse than the reference. */
const WORSE_BELOW = 0.95;

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

/** The reference's results of the row's operation are in `runs` under the name `atReference`. */
export function besideReference(comparison: Comparison, runs: readonly Run[]): BesideReference {
  const { measured, of } = comparison;
  const values = runs.map((run) => run.get(atReference(measured)));
  if (values.length === 0 || !values.every((value) => value !== undefined)) {
    return { notComparable: 'not measured in every run' };
  }
  // A rate is stored as the time of one operation, where less is better.
  const moreIsBetter = of !== 'rate' && comparison.target !== undefined && 'atLeast' in comparison.target;
  const ratios = runs.map((run, index) => {
    const ours = run.get(measured) ?? Number.NaN;
    const theirs = values[index] ?? Number.NaN;
    return ours === theirs ? 1 : moreIsBetter ? ours / theirs : theirs / ours;
  });
  if (!ratios.every(Number.isFinite)) {
    return { notComparable: 'one of them is 0' };
  }
  const value = median(values);
  const spread = { min: Math.min(...ratios), max: Math.max(...ratios) };
  return {
    value: of === 'rate' ? 1e9 / value : value,
    ratio: median(ratios),
    spread,
    worse: spread.max < WORSE_BELOW,
  };
}
