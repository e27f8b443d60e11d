import { expect, it } from 'vitest';
import { chartPoints } from '../../../../src/server/console/project/project-page.tsx';

const HOUR = 3_600_000_000n;
const course = (budget: bigint, from: bigint, used: bigint[]) => ({
  budget,
  amount: 10n * HOUR,
  validFrom: from,
  validUntil: from + 100n,
  now: 150n,
  isPartial: false,
  points: used.map((hours, index) => ({ at: from + BigInt(index) * 50n, used: hours * HOUR })),
});

it('the course of budgets is taken until now, planned from there on, and one line for each budget', () => {
  const points = chartPoints([course(1n, 100n, [0n, 2n, 6n]), course(2n, 201n, [0n, 4n])]);
  expect(points.map((point) => Object.values(point))).toEqual([
    // Time, taken, planned, left, budget.
    [100, 0, null, 10, 10],
    [150, 2, 2, 8, 10],
    [200, null, 6, 4, 10],
    [201, null, null, null, null],
    // Times rise, even where one budget ends in the second in which the next one starts.
    [202, null, 0, 10, 10],
    [251, null, 4, 6, 10],
  ]);
});
