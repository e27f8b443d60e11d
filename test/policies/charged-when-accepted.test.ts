import { describe, expect, it } from 'vitest';
import { breakLedger, mendLedger } from '../support/ledgers.ts';
import { FAILED, policyFiles } from '../support/skypilot.ts';
import { openLab } from './charging.ts';

const BOTH = ['UsageBudgetPolicy', 'GpuQuotaPolicy'];

describe('a policy that is tried, not enforced,', () => {
  it('reports what it would have decided after the launches before, and refuses none', async () => {
    const lab = await openLab({
      policies: BOTH,
      budget: '30',
      options: { audit_policies: BOTH, gpu_quota_per_user: { A100: 1 } },
    });
    expect(await lab.ask()).toMatchObject({ allowed: true, warnings: [] });
    expect(await lab.taken()).toBe(24);
    const second = await lab.ask({ cluster: 'two' });
    expect(second).toMatchObject({
      allowed: true,
      warnings: [
        expect.stringContaining(
          'UsageBudgetPolicy (tried, not enforced) would have rejected: The launch would',
        ),
        expect.stringContaining('GpuQuotaPolicy (tried, not enforced) would have rejected: lee may have 1'),
      ],
    });
    expect(await lab.taken()).toBe(48);
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { A100: 1 } });
    lab.pass(3600);
    lab.api.down('train');
    await lab.poll(3600);
    expect(await lab.taken()).toBe(1);
    expect((await lab.ask({ cluster: 'three' })).warnings).toEqual([]);
    await lab.verify();
  });

  it('refuses no launch that it cannot record', async () => {
    const lab = await openLab({ budget: '30', options: { audit_policies: ['UsageBudgetPolicy'] } });
    breakLedger(lab.connection, 'entries');
    expect(await lab.ask()).toMatchObject({ allowed: true });
    expect(lab.logger.lines).toContainEqual(expect.objectContaining({ message: 'policy failed' }));
    mendLedger(lab.connection, 'entries');
    expect(await lab.leases()).toEqual([]);
  });

  it('leaves the other one enforced', async () => {
    const lab = await openLab({
      policies: BOTH,
      budget: '30',
      options: { audit_policies: ['GpuQuotaPolicy'], gpu_quota_per_user: { A100: 0 } },
    });
    expect(await lab.ask()).toMatchObject({ allowed: true });
    expect(await lab.taken()).toBe(24);
    expect((await lab.leases()).map(({ leaseId }) => leaseId).sort()).toEqual([
      'skypilot-gpus:ml/train',
      'skypilot:ml/train',
    ]);
    expect(await lab.ask({ cluster: 'two' })).toMatchObject({ allowed: false, policy: 'UsageBudgetPolicy' });
  });
});

describe('a launch that another policy', () => {
  it('rejects later is not charged at all', async () => {
    const lab = await openLab({
      policies: [...BOTH, 'RejectAllPolicy'],
      budget: '100',
      options: { isolation: 'none', gpu_quota_per_user: { A100: 8 } },
    });
    expect(await lab.ask()).toMatchObject({ allowed: false, policy: 'RejectAllPolicy' });
    expect(await lab.leases()).toEqual([]);
    const quota = await openLab({
      policies: BOTH,
      budget: '100',
      options: { gpu_quota_per_user: { A100: 0 } },
    });
    expect(await quota.ask()).toMatchObject({ allowed: false, policy: 'GpuQuotaPolicy' });
    expect(await quota.taken()).toBe(0);
    expect(await quota.leases()).toEqual([]);
  });

  it('makes larger later is charged as it is launched', async () => {
    const { specifiers } = policyFiles({ LargerPolicy: "task.resources = { accelerators: 'A100:4' };" });
    const lab = await openLab({
      policies: ['UsageBudgetPolicy', ...specifiers],
      budget: '100',
      options: { isolation: 'none' },
    });
    expect(await lab.ask()).toMatchObject({ allowed: true, changed: true });
    expect(await lab.taken()).toBe(96);
    expect(await lab.ask({ cluster: 'two' })).toMatchObject({ allowed: false, policy: 'UsageBudgetPolicy' });
  });
});

it('a launch is charged to budget and quota together, or to neither', async () => {
  const options = { gpu_quota_per_workspace: { A100: 2 }, usage_budget_projects: { '*': 'ml' } };
  const one = await openLab({ policies: BOTH, budget: '1000', options });
  const other = await openLab({ policies: BOTH, connection: one.connection, options });
  const reviews = await Promise.all(
    [one, other, one, other].map((lab, index) => lab.ask({ cluster: `train-${index}`, gpus: 'A100:2' })),
  );
  expect(reviews.filter(({ allowed }) => allowed)).toHaveLength(1);
  for (const { allowed, failed, policy, message, outcomes } of reviews) {
    expect(failed).toBe(false);
    if (!allowed) {
      expect(policy).toBe('GpuQuotaPolicy');
      expect(outcomes.find((outcome) => outcome.policy === policy)).toMatchObject({
        allowed: false,
        message,
      });
    }
  }
  expect(await one.taken()).toBe(48);
  expect(await one.leases()).toHaveLength(2);
  await one.verify();
});

it('a launch that cannot be recorded fails closed, although all policies have accepted it', async () => {
  const lab = await openLab({ budget: '100' });
  breakLedger(lab.connection, 'entries');
  expect(await lab.ask()).toMatchObject({ allowed: false, failed: true, message: FAILED, answer: null });
  mendLedger(lab.connection, 'entries');
  expect(await lab.taken()).toBe(0);
  expect(await lab.ask()).toMatchObject({ allowed: true });
});

it.each([
  ['UsageBudgetPolicy', 'GpuQuotaPolicy'],
  ['GpuQuotaPolicy', 'UsageBudgetPolicy'],
])('where %s is only tried, a ledger that fails is the failure of %s', async (tried, enforced) => {
  const lab = await openLab({
    policies: BOTH,
    budget: '100',
    options: { audit_policies: [tried], gpu_quota_per_user: { A100: 8 } },
  });
  breakLedger(lab.connection, 'entries');
  const { outcomes, ...review } = await lab.ask();
  expect(review).toMatchObject({ allowed: false, failed: true, policy: enforced });
  expect(outcomes.filter(({ failed }) => failed).map(({ policy }) => policy)).toEqual([enforced]);
});
