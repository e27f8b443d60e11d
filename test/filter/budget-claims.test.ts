import { expect, it } from 'vitest';
import { budgetClaims, missingBudgets } from '../../src/filter/budget-claims.ts';
import type { Shortage } from '../../src/filter/claim.ts';

const HOUR = 3_600_000_000n;

/** The refusals of a lease of two days by the budgets of a project and of its user. */
function refusals(shortage: Omit<Shortage, 'taken'>, unit: string, whose = 'climate'): string[] {
  const budget = { id: 1n, projectId: 'p', validUntil: 4_000_200_000n, amount: HOUR };
  const claims = budgetClaims({
    start: 4_000_000_000_000_000n,
    end: 4_000_172_800_000_000n,
    perSecond: 1n,
    isRequired: true,
    budgets: [
      { ...budget, userId: null, validFrom: 0n },
      { ...budget, id: 2n, userId: 'u', validFrom: 4_000_100_000n },
    ],
    userId: 'u',
    project: `project ${whose}`,
    user: `user ${whose}`,
    unit,
    what: 'lease',
  });
  return claims.map(({ refuse }) => refuse({ ...shortage, taken: 0n }));
}

it.each(['node-hours', 'service units', 'u'])('what lacked is read from each refusal, in %s', (unit) => {
  for (const [asked, left, missing] of [
    [48n * HOUR, 12n * HOUR, 36n * HOUR],
    [HOUR / 4n, 0n, HOUR / 4n],
  ] as const) {
    for (const isUpdate of [false, true]) {
      const said = refusals({ asked, left, isUpdate }, unit);
      expect(said).toHaveLength(3);
      const lacking = [
        { amount: missing, validUntil: 4_000_200_000n, isOfUser: false },
        { amount: undefined, validUntil: undefined, isOfUser: true },
        { amount: missing, validUntil: 4_000_200_000n, isOfUser: true },
      ];
      expect(said.map(missingBudgets)).toEqual(lacking.map((one) => [one]));
      expect(missingBudgets(`${said.join(' ')} And 2 more.`)).toEqual(lacking);
    }
  }
});

it('whatever people are called, what is read is bounded, and of other refusals nothing is read', () => {
  const shortage = { asked: 2n * HOUR, left: 0n, isUpdate: false };
  const hostile = '; user x has 9 u left, of a budget that would cost 1 '.repeat(20);
  for (const whose of [hostile, '\n\u202e.', 'user x in project y']) {
    const [ofProject] = refusals(shortage, 'u', whose).map(missingBudgets);
    expect(ofProject?.[0]?.amount).toBeTypeOf('bigint');
  }
  for (const message of ['', 'The lease is too long.', `would cost 1 ${'x'.repeat(3000)}`]) {
    expect(missingBudgets(message)).toEqual([]);
  }
});
