import { Registry } from 'prom-client';
import { expect, it, vi } from 'vitest';
import { Instruments } from '../../../src/server/metrics/instruments.ts';
import { FollowerMetrics } from '../../../src/server/metrics/reconciliation-metrics.ts';

const AGE = 'blazar_enforcement_blazar_last_round_age_seconds';
const HOUR_MS = 3_600_000;

/** `undefined` = it is absent. */
async function age(registry: Registry): Promise<number | undefined> {
  const [found] = new RegExp(`^${AGE} .*$`, 'm').exec(await registry.metrics()) ?? [];
  return found === undefined ? undefined : Number(found.split(' ')[1]);
}

it.each([2, -2])(
  'the age of the last comparison is right when the clock of the process is set by %s hours',
  async (hours) => {
    const registry = new Registry();
    const metrics = new FollowerMetrics(new Instruments(registry));
    const now = Date.now();
    const ticks = performance.now();
    const at = vi.spyOn(performance, 'now').mockReturnValue(ticks);
    vi.spyOn(Date, 'now').mockReturnValue(now);
    metrics.following(true);
    vi.spyOn(Date, 'now').mockReturnValue(now + hours * HOUR_MS);
    // This process has made one; then another one has, 40 s before this one asks.
    metrics.completed(0);
    expect(await age(registry)).toBeCloseTo(0);
    at.mockReturnValue(ticks + 100_000);
    expect(await age(registry)).toBeCloseTo(100);
    metrics.completed(40);
    expect(await age(registry)).toBeCloseTo(40);
    // What was heard before is no news.
    metrics.completed(90);
    expect(await age(registry)).toBeCloseTo(40);
    metrics.following(false);
    expect(await age(registry)).toBeUndefined();
  },
);
