import { expect, it } from 'vitest';
import { type Asked, simulate } from './simulation.ts';

/** Histories that have found something, as `npm run simulate` prints them. */
const FOUND: readonly Asked[] = [
  // Fails if a lease that is being built is released before `reconcile_grace`.
  [1106968383, [41, 64, 68, 77, 78, 82, 89, 90, 92, 93, 97, 98, 99, 101, 102, 104, 106, 109]],
  // Of two leases that look alike, one is changed, or found by a comparison: more is charged than granted for a while.
  [815396554, [0, 1, 6, 7, 13, 33, 34, 36, 38, 47, 50, 52]],
  [672275395, [9, 17, 20, 25, 53, 68, 75, 76]],
  // A lease was moved to a later start, and ends before a comparison: the time since its first start stays charged.
  [3610197274, [70, 76, 77, 78, 79, 80, 81, 83, 90, 91, 94, 102, 103, 106, 107, 108, 112]],
  // A lease came and went between two comparisons, and nobody heard of its end.
  [2481107780, [2, 23, 24, 25, 35, 54, 74, 75, 77, 78, 81]],
  // An update of a lease that is in doubt is taken back, and another lease has taken what it had freed: more is charged than granted.
  [
    556119841,
    [
      33, 34, 43, 51, 54, 55, 56, 61, 69, 80, 82, 92, 94, 96, 98, 100, 101, 102, 103, 104, 105, 106, 107, 108,
      109, 110, 111, 112,
    ],
  ],
  // Fails if what a lease uses before its start is not charged.
  [717440053],
];

it('no history breaks a promise: nothing overdrawn, nothing acknowledged lost, settled is the truth', async () => {
  expect(await simulate([[34], [35], [36], ...FOUND])).toBeUndefined();
});

it('a history that breaks a promise is shrunk to the steps that break it, which can be run again', async () => {
  // Nothing is charged without UsageBudgetFilter.
  const broken = { filters: ['MaxLeasesFilter'] };
  const found = await simulate([[34]], broken);
  expect(found).toMatch(/^A promise is broken: less is charged than used/);
  const [printed = ''] = found?.match(/\[34, \[.*\]\]/) ?? [];
  const [seed, steps = []] = JSON.parse(printed) as Asked;
  expect(steps).toHaveLength(1);
  expect(await simulate([[seed, steps]], broken)).toBe(found?.replace(/1 of \d+ steps/, '1 of 1 steps'));
  expect(await simulate([[seed, steps]])).toBeUndefined();
});
