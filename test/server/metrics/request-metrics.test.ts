import fc from 'fast-check';
import { Histogram, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { QuickHistogram } from '../../../src/server/metrics/request-metrics.ts';

const BUCKETS = [0.001, 0.25, 1, 7200];
const LABELS = [
  { operation: 'create', filter: 'AFilter' },
  { operation: 'end', filter: 'with "quotes" and \\' },
];
/** Sums of halves do not depend on how they are added up. */
const observed = fc.array(
  fc.tuple(fc.nat(LABELS.length - 1), fc.constantFrom(0, 0.001, 0.0009765625, 0.25, 0.5, 1, 2, 7200, 9000)),
);

function both(values: readonly (readonly [number, number])[]) {
  const ours = new Registry();
  const theirs = new Registry();
  const quick = new QuickHistogram<'operation' | 'filter'>(ours, 'a_name', 'What it is.', BUCKETS);
  const histogram = new Histogram({
    name: 'a_name',
    help: 'What it is.',
    buckets: BUCKETS,
    labelNames: ['operation', 'filter'],
    registers: [theirs],
  });
  const children = new Map<number, ReturnType<typeof quick.labelled>>();
  for (const [which, seconds] of values) {
    const labels = LABELS[which] ?? { operation: '', filter: '' };
    const child = children.get(which) ?? quick.labelled(labels);
    children.set(which, child);
    child.observe(seconds);
    histogram.observe(labels, seconds);
  }
  return { ours, theirs };
}

describe('a quick histogram', () => {
  it('is exposed as the one of prom-client', () =>
    fc.assert(
      fc.asyncProperty(observed, async (values) => {
        const { ours, theirs } = both(values);
        expect(await ours.metrics()).toBe(await theirs.metrics());
      }),
    ));
});
