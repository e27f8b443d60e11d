/** How often what the metrics show is made: the text once a second, readings of the ledger once a minute, whoever reads them. */
import { expect, it } from 'vitest';
import type { ChainLedger } from '../../../src/ledger/service.ts';
import { createBudgetGauge } from '../../../src/server/metrics/budget-metrics.ts';
import { Cached } from '../../../src/server/metrics/cached.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { samplesIn, samplesOf } from '../../support/samples.ts';

const GENERATION = 'generation';

/** A service whose clock the test moves. */
async function fixture() {
  const clock = { now: 0 };
  const service = { port: 0, decision_store: 'none', metrics_tokens: ['of-prometheus-0123456789abcdef'] };
  const enforcement = { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 60 };
  const { url, post } = await runServiceOf({ service, enforcement }, { metricsClock: () => clock.now });
  const read = async (headers: Record<string, string> = {}) => {
    const answer = await fetch(`${url}/metrics`, { headers });
    return samplesIn(await answer.text());
  };
  const decisions = (samples: Readonly<Record<string, number>>) =>
    Object.values(samplesOf(samples, 'decisions_total')).reduce((sum, count) => sum + count, 0);
  return { clock, read, decide: () => post('/check-create', createLasting(60)), decisions };
}

it('a text is given to all readers for a second, with and without a token', async () => {
  const { clock, read, decide, decisions } = await fixture();
  expect(samplesOf(await read(), GENERATION)).toEqual({ '': 1 });
  await decide();
  clock.now = 999;
  const early = await Promise.all([read(), read({ 'X-Auth-Token': 'of-prometheus-0123456789abcdef' })]);
  expect(early.map(decisions)).toEqual([0, 0]);
  clock.now = 1000;
  const late = await Promise.all([read(), read({ 'X-Auth-Token': 'of-prometheus-0123456789abcdef' })]);
  expect(late.map(decisions)).toEqual([1, 1]);
});

it('readers at the same time share one value in the making, however long it takes', async () => {
  let now = 0;
  const making: ((value: string) => void)[] = [];
  const cached = new Cached(
    1000,
    () => new Promise<string>((made) => making.push(made)),
    () => now,
  );
  const first = cached.read();
  now = 5000;
  const second = cached.read();
  expect(making).toHaveLength(1);
  making[0]?.('one');
  expect([await first, await second]).toEqual(['one', 'one']);
  now = 5999;
  expect(await cached.read()).toBe('one');
  now = 6000;
  void cached.read();
  expect(making).toHaveLength(2);
});

it('a failure is kept as long as it may be, by default not at all', async () => {
  for (const failureMs of [undefined, 500]) {
    let now = 0;
    let times = 0;
    const make = async () => {
      times += 1;
      if (times === 1) {
        throw new Error('the first fails');
      }
      return 'made';
    };
    const cached = new Cached(1000, make, () => now, failureMs);
    await expect(Promise.all([cached.read(), cached.read()])).rejects.toThrow('the first fails');
    if (failureMs !== undefined) {
      now = 499;
      await expect(cached.read()).rejects.toThrow('the first fails');
      now = 500;
    }
    expect(await cached.read()).toBe('made');
  }
});

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

it('a ledger is read at most once a minute, and another ledger at once', async () => {
  let now = 0;
  const gauge = createBudgetGauge(() => now);
  const one = countedLedger(async () => 'one');
  const other = countedLedger(async () => 'other');
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

it('a ledger that fails is not read again at once', async () => {
  const gauge = createBudgetGauge(() => 0);
  const ledger = countedLedger(() => Promise.reject(new Error('away')));
  expect([await gauge.read(ledger, 10), await gauge.read(ledger, 10)]).toEqual([undefined, undefined]);
  expect(ledger.reads).toBe(1);
});
