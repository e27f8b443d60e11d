/** Formats numbers for display. */
import type { BesideReference, Side } from './harness/results.ts';
import type { Target } from './harness/suite.ts';

export function shownValue({ value, unit }: Pick<Side, 'value' | 'unit'>): string {
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

export function shownRatio(ratio: number): string {
  return ratio.toFixed(2);
}

export function shownTarget(target: Target | null): string {
  if (target === null) {
    return '';
  }
  return 'atMost' in target ? `<= ${target.atMost}` : `>= ${target.atLeast}`;
}

/** The measurement of the reference and its ratio; empty for peers. */
export function shownBeside(
  reference: BesideReference | undefined,
  unit: Side['unit'],
): [value: string, beside: string] {
  if (reference === undefined) {
    return ['', ''];
  }
  if ('notComparable' in reference) {
    return ['', `not comparable: ${reference.notComparable}`];
  }
  const { value, ratio, spread, ownBench } = reference;
  return [
    shownValue({ value, unit }) + (ownBench ? ' *' : ''),
    `${shownRatio(ratio)} (${shownRatio(spread.min)} – ${shownRatio(spread.max)})`,
  ];
}
