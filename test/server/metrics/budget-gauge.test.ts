import { expect, it } from 'vitest';
import type { ChainLedger } from '../../../src/ledger/service.ts';
import { createBudgetGauge } from '../../../src/server/metrics/budget-metrics.ts';

/** A ledger that is only counted: how often it was read. */
function countedLedger(answer: () => Promise<unknown>) {
  const ledger = {
    reads: 0,
    read: () => {
      ledger.reads += 1;
      return answer();
    },
  };
  return ledger as typeof ledger & ChainLedger;
}

it('reads the ledger at most once a minute, and another ledger at once', async () => {
  let now = 0;
  const gauge = createBudgetGauge(() => now);
  const [one, other] = [countedLedger(async () => 'one'), countedLedger(async () => 'other')];
  expect(await Promise.all([gauge.read(one, 10), gauge.read(one, 10)])).toEqual(['one', 'one']);
  now = 59_999;
  await gauge.read(one, 10);
  expect(one.reads).toBe(1);
  now = 60_000;
  await gauge.read(one, 10);
  expect(one.reads).toBe(2);
  expect(await gauge.read(other, 10)).toBe('other');
  expect(await gauge.read(undefined, 10)).toBeUndefined();
});

it('counts nothing where the ledger fails, and does not try again at once', async () => {
  const gauge = createBudgetGauge(() => 0);
  const ledger = countedLedger(() => Promise.reject(new Error('away')));
  expect([await gauge.read(ledger, 10), await gauge.read(ledger, 10)]).toEqual([undefined, undefined]);
  expect(ledger.reads).toBe(1);
});
