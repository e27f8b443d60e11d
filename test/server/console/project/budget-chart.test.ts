import { expect, it } from 'vitest';
import { budgetSeries, chartRows } from '../../../../src/server/console/project/budget-chart.tsx';

const HOUR = 3_600_000_000n;
const course = (budget: bigint, from: bigint, used: bigint[]) => ({
  ...{ budget, amount: 10n * HOUR, validFrom: from, validUntil: from + 100n, now: 150n, isPartial: false },
  points: used.map((hours, index) => ({ at: from + BigInt(index) * 50n, used: hours * HOUR })),
});

it('the course of budgets is taken until now, planned from there on, and one line for each budget', () => {
  const rows = chartRows([course(2n, 201n, [0n, 4n]), course(1n, 100n, [0n, 2n, 6n])]);
  expect(rows.map(({ budget, at }) => `${budget}@${at}`)).toEqual([
    '1@100',
    '1@150',
    '1@200',
    '2@201',
    '2@251',
  ]);
  const series = budgetSeries(rows);
  expect(series).toEqual({
    times: [100, 150, 200, 201, 202, 251],
    taken: [0, 2, null, null, null, null],
    planned: [null, 2, 6, null, 0, 4],
    left: [10, 8, 4, null, 10, 6],
    budget: [10, 10, 10, null, 10, 10],
  });
});

it('times rise, even where one budget ends in the second in which the next one starts', () => {
  const rows = chartRows([course(1n, 100n, [0n, 1n, 1n]), course(2n, 200n, [0n, 1n])]);
  const { times } = budgetSeries(rows);
  expect([...times].sort((a, b) => a - b)).toEqual(times);
  expect(new Set(times).size).toBe(times.length);
});
