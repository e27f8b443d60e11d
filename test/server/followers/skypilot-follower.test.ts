import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type DecisionRecord, decisionRecordSchema } from '../../../src/decisions/record.ts';
import { sectionOf } from '../../../src/enforcement/configuration.ts';
import type { FoundBypasses } from '../../../src/enforcement/notifications/events.ts';
import { SkypilotFollower } from '../../../src/server/followers/skypilot-follower.ts';
import { Instruments } from '../../../src/server/metrics/instruments.ts';
import { SkypilotMetrics } from '../../../src/server/metrics/reconciliation-metrics.ts';
import { skypilotSection } from '../../../src/skypilot/section.ts';
import { type LabSetup, openLab } from '../../policies/charging.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { metric } from '../../support/metric.ts';

/** A follower of a lab whose first round begins at once. */
async function followed(setup: LabSetup) {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  const lab = await openLab(setup);
  const registry = new Registry();
  const records: DecisionRecord[] = [];
  const told: FoundBypasses[] = [];
  const generation = {
    number: 1,
    enforcement: { notifications: { bypassed: async (found: FoundBypasses) => void told.push(found) } },
    configuration: lab.configuration,
    skypilot: { options: sectionOf(lab.configuration, skypilotSection), policies: lab.chain },
    enter() {},
    leave() {},
  };
  const follower = new SkypilotFollower({
    current: () => generation,
    metrics: new SkypilotMetrics(new Instruments(registry)),
    httpObserver: undefined,
    logger: lab.logger,
    record: async (record) => void records.push(record),
  });
  onTestFinished(() => follower.close());
  const count = async (name: string, labels: Record<string, string> = {}) =>
    metric(await registry.metrics(), `blazar_enforcement_skypilot_${name}`, labels);
  return { lab, follower, count, records, told };
}

it('reports clusters that run without a decision and beyond the budget, and counts rounds', async () => {
  const { lab, follower, count, records, told } = await followed({
    budget: '1',
    policies: ['UsageBudgetPolicy', 'GpuQuotaPolicy'],
    isCounted: false,
    options: { gpu_quota_per_user: { A100: 100 } },
  });
  lab.api.launch({ name: 'wild', workspace: 'ml', user: 'eve', accelerators: { A100: 8 } });
  follower.start();
  await expect.poll(() => count('rounds_total', { outcome: 'complete' })).toBe(1);
  expect(await count('alerts_total', { kind: 'undecided' })).toBe(2);
  expect(await count('alerts_total', { kind: 'exceeded' })).toBe(1);
  expect(await count('changes_total', { kind: 'recorded' })).toBe(2);
  expect(await count('clusters')).toBe(1);
  const messages = lab.logger.lines.map(({ message }) => message);
  expect(messages).toContain('a cluster runs without a decision: it was started without asking a policy');
  expect(messages).toContain('a cluster is up beyond a limit: nothing stops it');
  await follower.close();
  expect(records).toMatchObject([
    {
      operation: 'skypilot.bypass',
      outcome: 'bypassed',
      project_id: 'ml',
      user_id: 'eve',
      lease_name: 'wild',
      filter: 'UsageBudgetPolicy',
      message: expect.stringMatching(
        /^The cluster wild was started at 2026-11-21T09:00:00Z without asking .* beyond a limit: /,
      ),
      filters: [{ filter: 'UsageBudgetPolicy' }, { filter: 'GpuQuotaPolicy' }],
    },
  ]);
  expect(decisionRecordSchema.strict().parse(records[0])).toEqual(records[0]);
  expect(told).toEqual([{ at: expect.any(Date), records }]);
});

it('logs once that SkyPilot is away, without the token, and counts it', async () => {
  const file = join(temporaryFolder(), 'token');
  writeFileSync(file, '# for the service account\nsky_wrong_secret\n');
  const { lab, follower, count } = await followed({
    budget: '1',
    api: { token: 'sky_right' },
    options: { api_server_token_file: file },
  });
  follower.start();
  await expect.poll(() => count('rounds_total', { outcome: 'failed' })).toBe(1);
  const text = JSON.stringify(lab.logger.lines);
  expect(text).toContain('the ledger could not be compared with SkyPilot');
  expect(text).toContain('got 401');
  expect(text).not.toContain('sky_wrong_secret');
});

it('asks nobody when no policy charges launches', async () => {
  const { lab, follower } = await followed({ policies: ['RejectAllPolicy'] });
  follower.start();
  expect(lab.api.asked).toEqual([]);
});
