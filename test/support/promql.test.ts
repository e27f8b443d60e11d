import { expect, it } from 'vitest';
import { groupingIn, type KnownMetric, selectorsIn, strangersIn } from './promql.ts';

const METRICS: KnownMetric[] = [
  { name: 'decisions_total', type: 'counter', labels: ['filter', 'outcome'] },
  { name: 'duration_seconds', type: 'histogram', labels: ['filter'] },
  { name: 'up', type: 'gauge', labels: [] },
];

it('finds the series of a query, with their matchers', () => {
  expect(
    selectorsIn(
      'sum by (filter, le) (rate(decisions_total{outcome=~"a}|b",filter!=""}[5m] offset 1h)) > 0 unless on (instance) up == 1e3',
    ),
  ).toEqual([
    {
      metric: 'decisions_total',
      matchers: [
        { label: 'outcome', operator: '=~', value: 'a}|b' },
        { label: 'filter', operator: '!=', value: '' },
      ],
    },
    { metric: 'up', matchers: [] },
  ]);
});

it('finds the labels that a query groups by', () => {
  expect(groupingIn('sum by (filter, le) (a) / ignoring (outcome) group_left () b')).toEqual([
    'filter',
    'le',
    'outcome',
  ]);
});

it.each([
  ['sum by (filter) (rate(decisions_total{outcome="x",instance="a"}[5m]))', []],
  ['histogram_quantile(0.99, sum by (le, filter) (rate(duration_seconds_bucket[$__rate_interval])))', []],
  ['sum by (filter) (rate(duration_seconds_count[5m])) and on (instance) up', []],
  ['rate(decision_total[5m])', ['decision_total']],
  ['rate(duration_seconds[5m])', ['duration_seconds']],
  ['rate(decisions_total_count[5m])', ['decisions_total_count']],
  ['sum by (policy) (decisions_total{rule="x"})', ['rule of decisions_total', 'policy']],
  ['sum by (le) (duration_seconds_count)', ['le']],
])('%s: %j', (query, strangers) => {
  expect(strangersIn(query, METRICS)).toEqual(strangers);
});
