import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { Instruments } from '../../../src/server/metrics/instruments.ts';
import { type FollowedSource, KubernetesMetrics } from '../../../src/server/metrics/kubernetes-metrics.ts';
import { metric } from '../../support/metric.ts';

const REFUSALS = 'blazar_enforcement_kubernetes_refusals_total';
const AGE = 'blazar_enforcement_kubernetes_source_age_seconds';

function newMetrics(source: () => FollowedSource | undefined = () => undefined) {
  const registry = new Registry();
  return {
    metrics: new KubernetesMetrics(new Instruments(registry, 'blazar_enforcement_kubernetes_'), source),
    read: () => registry.metrics(),
  };
}

const reason = (field: string, ...policies: string[]) => ({
  field,
  expectation: 'expected nothing',
  policies,
});

describe('refusals', () => {
  it('count each policy and part once, and whoever may use none', async () => {
    const { metrics, read } = newMetrics();
    metrics.judged({
      reasons: [
        reason('tolerations[0]', 'a', 'b'),
        reason('tolerations[1]', 'a'),
        reason('nodeSelector disk', 'a'),
        reason('schedulerName'),
        reason('metadata.name', 'c'),
      ],
      tried: [reason('affinity.nodeAffinity', 'a')],
    });
    metrics.judged({ reasons: [], tried: [] });
    const text = await read();
    const count = (policy: string, rule: string, mode = 'enforce') =>
      metric(text, REFUSALS, { policy, rule, mode });
    expect([
      count('a', 'tolerations'),
      count('b', 'tolerations'),
      count('a', 'nodeSelector'),
      count('', 'schedulerName'),
      count('c', 'invalid'),
      count('a', 'affinity', 'audit'),
      metric(text, REFUSALS),
    ]).toEqual([1, 1, 1, 1, 1, 1, 6]);
  });

  it('name at most 200 policies, and no text of a user', async () => {
    const { metrics, read } = newMetrics();
    for (let number = 0; number < 1000; number += 1) {
      metrics.judged({ reasons: [reason(`nodeSelector ${number}`, `p${number}`)], tried: [] });
      metrics.judged({ reasons: [reason(`text${'x'.repeat(number % 7)}`, 'p0')], tried: [] });
    }
    const lines = (await read()).split('\n').filter((line) => line.startsWith(`${REFUSALS}{`));
    expect(lines).toHaveLength(202);
    expect(
      metric(await read(), REFUSALS, { policy: '(others)', rule: 'nodeSelector', mode: 'enforce' }),
    ).toBe(800);
    expect(metric(await read(), REFUSALS, { policy: 'p0', rule: 'other', mode: 'enforce' })).toBe(1000);
  });
});

describe('a cluster', () => {
  it('is not there with files', async () => {
    const text = await newMetrics().read();
    expect(text).not.toMatch(new RegExp(`^${AGE}`, 'm'));
    expect(text).not.toMatch(/^blazar_enforcement_kubernetes_policies/m);
  });

  it('is as old as the service before it is known, and has its policies by state', async () => {
    const valid = { mistake: undefined, enforcedGeneration: 1 };
    let health: FollowedSource['health'] = { state: 'starting', ageSeconds: undefined, problem: undefined };
    const { read } = newMetrics(() => ({
      health,
      followedFor: 7,
      policies: [
        valid,
        valid,
        { mistake: 'x', enforcedGeneration: 1 },
        { mistake: 'x', enforcedGeneration: undefined },
      ],
    }));
    expect(metric(await read(), AGE)).toBe(7);
    health = { state: 'behind', ageSeconds: 3, problem: 'away' };
    const text = await read();
    expect(metric(text, AGE)).toBe(3);
    const count = (state: string) => metric(text, 'blazar_enforcement_kubernetes_policies', { state });
    expect([count('enforced'), count('outdated'), count('invalid')]).toEqual([2, 1, 1]);
  });

  it('is asked and watched, which is counted', async () => {
    const { metrics, read } = newMetrics();
    metrics.answered('cached');
    metrics.answered('cached');
    metrics.answered('failed');
    metrics.watching('roles').listed?.(0.2);
    metrics.reviewed('denied', 0.1);
    metrics.watching('roles').restarted?.('silent');
    const text = await read();
    const value = (name: string, labels: Record<string, string>) =>
      metric(text, `blazar_enforcement_kubernetes_${name}`, labels);
    expect([
      value('access_answers_total', { how: 'cached' }),
      value('access_answers_total', { how: 'failed' }),
      value('access_answers_total', { how: 'asked' }),
      value('access_review_duration_seconds_count', { outcome: 'denied' }),
      value('list_duration_seconds_count', { resource: 'roles' }),
      value('watch_restarts_total', { resource: 'roles', reason: 'silent' }),
    ]).toEqual([2, 1, 0, 1, 1, 1]);
    expect(
      metric(await read(), 'blazar_enforcement_kubernetes_access_answers_total', { how: 'cached' }),
    ).toBe(2);
  });
});
