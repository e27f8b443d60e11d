/** Launches, stops, restarts and rounds in random order, and launches at once, on both databases. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DIALECTS, newLedgers } from '../support/ledgers.ts';
import { openLab } from './charging.ts';
import { histories, play } from './launch-history.ts';

const ledgers = newLedgers();

describe.each(DIALECTS)('on %s', (dialect) => {
  it('what was used is charged, whatever befalls clusters', async () => {
    await fc.assert(
      fc.asyncProperty(histories, async (history) => play(history, { connection: await ledgers(dialect) })),
      { numRuns: 40 },
    );
    expect.hasAssertions();
  });

  it('launches at once, through four processes, never take more than there is', async () => {
    const connection = await ledgers(dialect);
    const policies = ['UsageBudgetPolicy', 'GpuQuotaPolicy'];
    const options = { gpu_quota_per_user: { A100: 7 } };
    const first = await openLab({ connection, policies, options, budget: '240' });
    const others = await Promise.all([1, 2, 3].map(() => openLab({ connection, policies, options })));
    const labs = [first, ...others];
    const reviews = await Promise.all(
      Array.from({ length: 40 }, (_, index) => labs[index % 4]?.ask({ cluster: `train-${index}` })),
    );
    // Ten fit the budget, and seven the quota.
    expect(reviews.filter((review) => review?.allowed)).toHaveLength(7);
    expect(reviews.filter((review) => review?.failed)).toEqual([]);
    expect(await first.taken()).toBeLessThanOrEqual(240);
    await first.verify();
  });
});
