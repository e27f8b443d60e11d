/** How often the text of the metrics is made: once a second, whoever reads it. */
import { expect, it } from 'vitest';
import { CachedText } from '../../../src/server/metrics/cached-text.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOn } from '../../support/running-service.ts';
import { samplesIn, samplesOf } from '../../support/samples.ts';

const GENERATION = 'generation';

/** A service whose clock the test moves. */
async function ground() {
  const clock = { now: 0 };
  const service = { port: 0, decision_store: 'none', metrics_tokens: ['of-prometheus-0123456789abcdef'] };
  const enforcement = { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 60 };
  const { url, post } = await runServiceOn(
    { environment: {}, configFiles: [], values: { service, enforcement } },
    { metricsClock: () => clock.now },
  );
  const read = async (headers: Record<string, string> = {}) => {
    const answer = await fetch(`${url}/metrics`, { headers });
    return samplesIn(await answer.text());
  };
  const decisions = (samples: Readonly<Record<string, number>>) =>
    Object.values(samplesOf(samples, 'decisions_total')).reduce((sum, count) => sum + count, 0);
  return { clock, read, decide: () => post('/check-create', createLasting(60)), decisions };
}

it('a text is given to all readers for a second, with and without a token', async () => {
  const { clock, read, decide, decisions } = await ground();
  expect(samplesOf(await read(), GENERATION)).toEqual({ '': 1 });
  await decide();
  clock.now = 999;
  const early = await Promise.all([read(), read({ 'X-Auth-Token': 'of-prometheus-0123456789abcdef' })]);
  expect(early.map(decisions)).toEqual([0, 0]);
  clock.now = 1000;
  const late = await Promise.all([read(), read({ 'X-Auth-Token': 'of-prometheus-0123456789abcdef' })]);
  expect(late.map(decisions)).toEqual([1, 1]);
});

it('readers at the same time share one text in the making, however long it takes', async () => {
  let now = 0;
  const making: ((text: Buffer) => void)[] = [];
  const cached = new CachedText(
    () => new Promise((made) => making.push(made)),
    () => now,
  );
  const first = cached.read();
  now = 5000;
  const second = cached.read();
  expect(making).toHaveLength(1);
  making[0]?.(Buffer.from('one'));
  expect([String(await first), String(await second)]).toEqual(['one', 'one']);
  now = 5999;
  expect(String(await cached.read())).toBe('one');
  now = 6000;
  void cached.read();
  expect(making).toHaveLength(2);
});

it('a failure is not cached', async () => {
  let times = 0;
  const cached = new CachedText(
    async () => {
      times += 1;
      if (times === 1) {
        throw new Error('the first fails');
      }
      return Buffer.from('made');
    },
    () => 0,
  );
  await expect(Promise.all([cached.read(), cached.read()])).rejects.toThrow('the first fails');
  expect(String(await cached.read())).toBe('made');
});
