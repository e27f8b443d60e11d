import { describe, expect, it } from 'vitest';
import { policyFile } from '../skypilot/policies/temporary-policy.ts';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import { type LabSetup, openLab } from './charging.ts';

const quotas = (options: object, setup: LabSetup = {}) =>
  openLab({ policies: ['GpuQuotaPolicy'], options: { ...options }, ...setup });

describe('a user', () => {
  it('may have so many accelerators of a kind at once, and of all kinds together', async () => {
    const lab = await quotas({ gpu_quota_per_user: { a100: 8, '*': 10 } });
    expect(await lab.ask({ cluster: 'one', gpus: 'A100:6' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ cluster: 'two', gpus: 'A100:4' })).toMatchObject(
      rejectedWith('lee may have 8 A100 at once, has 6, and asks for 4: stop a cluster first.'),
    );
    expect(await lab.ask({ cluster: 'two', gpus: 'T4:5' })).toMatchObject(
      rejectedWith('lee may have 10 accelerators at once, has 6, and asks for 5: stop a cluster first.'),
    );
    expect(await lab.ask({ cluster: 'two', gpus: 'T4:4' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ cluster: 'three', gpus: 'T4:1', user: 'ffff0000' })).toMatchObject(ALLOWED);
    await lab.verify();
  });

  it('keeps a cluster that is up, whoever launches on it', async () => {
    const lab = await quotas({ gpu_quota_per_user: { A100: 8 } });
    await lab.up(6);
    expect(await lab.ask({ gpus: 'A100:6', user: 'ffff0000' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ cluster: 'own', gpus: 'A100:8', user: 'ffff0000' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ cluster: 'two', gpus: 'A100:4' })).toMatchObject(REJECTED);
    await lab.verify();
  });

  it('may have another number, across workspaces', async () => {
    const options = { gpu_quota_per_user: { A100: 1 }, gpu_quota_users: { 'Lee/A100': 4 } };
    const lab = await quotas(options);
    expect(await lab.ask({ cluster: 'one', gpus: 'A100:3', workspace: 'ml' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ cluster: 'two', gpus: 'A100:2', workspace: 'bio' })).toMatchObject(REJECTED);
    // Whoever creates a service account may name it lee.
    expect(await lab.ask({ cluster: 'four', gpus: 'A100:2', user: 'sa-1f3870be' })).toMatchObject(REJECTED);
  });

  it('counts all nodes, whole accelerators, and the most of all alternatives', async () => {
    const lab = await quotas({ gpu_quota_per_user: { A100: 4, H100: 4 } });
    const task = (resources: string, nodes = 1) => `num_nodes: ${nodes}\nresources: ${resources}\n`;
    expect(await lab.ask({ task: task('{accelerators: A100:2}', 3) })).toMatchObject(REJECTED);
    expect(await lab.ask({ task: task('{accelerators: A100:0.5}', 5) })).toMatchObject(REJECTED);
    const either = task('{any_of: [{accelerators: T4:1}, {accelerators: H100:8}]}');
    expect(await lab.ask({ task: either })).toMatchObject(REJECTED);
    expect(await lab.ask({ task: task('{instance_type: p4d.24xlarge}') })).toMatchObject({
      message: 'The accelerators of p4d.24xlarge are not known: name them in resources.',
    });
    const config = (clouds: string) => `active_workspace: ml\nallowed_clouds: [${clouds}]\n`;
    expect(await lab.ask({ task: task('{cpus: 124}'), config: config('aws, k8s') })).toMatchObject(ALLOWED);
    for (const asked of [
      { task: task('{infra: lambda, cpus: 124}') },
      { task: task('{cpus: 124}'), config: config('aws, nebius') },
    ]) {
      expect(await lab.ask(asked)).toMatchObject({
        message:
          'The accelerators of a machine that SkyPilot chooses in this cloud are not known: name them in resources.',
      });
    }
  });
});

it('a part of a name, which SkyPilot completes counts for every kind that it may mean', async () => {
  const lab = await quotas({ gpu_quota_per_user: { H200: 4 }, gpu_quota_users: { 'a1b2c3d4/Custom': 0 } });
  expect(await lab.ask({ gpus: 'H20:8' })).toMatchObject(REJECTED);
  expect(await lab.ask({ gpus: 'Cust:1' })).toMatchObject(REJECTED);
  expect(await lab.ask({ gpus: 'H10.:8' })).toMatchObject(ALLOWED);
});

it('a workspace may have so many, whoever has them', async () => {
  const lab = await quotas({
    gpu_quota_per_workspace: { A100: 4 },
    gpu_quota_workspaces: { 'bio/A100': 0 },
  });
  expect(await lab.ask({ cluster: 'one', gpus: 'A100:4' })).toMatchObject(ALLOWED);
  expect(await lab.ask({ cluster: 'two', user: 'ffff0000' })).toMatchObject({
    message: 'The workspace ml may have 4 A100 at once, has 4, and asks for 1: stop a cluster first.',
  });
  expect(await lab.ask({ cluster: 'two', workspace: 'bio' })).toMatchObject(REJECTED);
});

describe('what SkyPilot shows', () => {
  it('frees what is stopped, counts what is up however long, and what nobody announced', async () => {
    const lab = await quotas({ gpu_quota_per_user: { A100: 4 } });
    await lab.up(4);
    for (let hour = 0; hour < 30; hour += 1) {
      await lab.poll(1700);
    }
    lab.pass(1700);
    expect(await lab.ask({ cluster: 'two' })).toMatchObject(REJECTED);
    lab.api.stop('train');
    await lab.poll();
    expect(await lab.ask({ cluster: 'two', gpus: 'A100:2' })).toMatchObject(ALLOWED);
    lab.api.launch({ name: 'wild', workspace: 'ml', accelerators: { A100: 3 } });
    const { changes } = await lab.poll();
    expect(changes).toMatchObject([
      {
        cluster: 'wild',
        settlement: { outcome: 'recorded', exceeded: expect.stringContaining('A100 at once') },
      },
    ]);
    expect(await lab.ask({ cluster: 'three' })).toMatchObject(REJECTED);
    await lab.verify();
  });

  it('counts a stopped cluster that is launched with less as what it had', async () => {
    const lab = await quotas({ gpu_quota_per_user: { A100: 4 } });
    await lab.up(4);
    lab.pass(3600);
    lab.api.stop('train');
    await lab.poll();
    expect(await lab.ask({ cluster: 'two', gpus: 'A100:1' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ task: 'run: sleep 1d\n' })).toMatchObject(
      rejectedWith(expect.stringContaining('has 1, and asks for 4')),
    );
    await lab.verify();
  });
});

it('a policy of somebody else may not have the ledger', async () => {
  const greedy = policyFile('GreedyPolicy', '', { extra: "static needs = ['ledger'];" });
  await expect(openLab({ policies: [greedy] })).rejects.toThrow(
    'GreedyPolicy could not be set up: only included policies may name what they need',
  );
});

describe('a quota', () => {
  const EIGHT = { gpu_quota_per_user: { A100: 8 } };

  it('counts a cluster that is up also while SkyPilot could not be asked for hours', async () => {
    const lab = await quotas(EIGHT);
    expect(await lab.ask({ cluster: 'one', gpus: 'A100:8' })).toMatchObject(ALLOWED);
    lab.api.launch({ name: 'one', workspace: 'ml', accelerators: { A100: 8 } });
    for (let hour = 0; hour < 30; hour += 1) {
      await lab.poll(3600);
    }
    lab.pass(6 * 3600);
    expect(await lab.ask({ cluster: 'two', gpus: 'A100:1' })).toMatchObject(
      rejectedWith(expect.stringContaining('has 8')),
    );
    await lab.verify();
  });

  it('counts clusters from before it was enabled', async () => {
    const lab = await quotas(EIGHT);
    lab.api.launch({ name: 'before', workspace: 'ml', accelerators: { A100: 4 } });
    lab.api.launch({ name: 'job-1', workspace: 'bio', accelerators: { A100: 4 }, isManaged: true });
    await lab.poll();
    expect(await lab.ask({ cluster: 'two', gpus: 'A100:1' })).toMatchObject(REJECTED);
  });

  it('that is lowered below what is used stops nothing, and lets nothing more start', async () => {
    const lab = await quotas(EIGHT);
    expect(await lab.ask({ cluster: 'one', gpus: 'A100:8' })).toMatchObject(ALLOWED);
    const lower = await quotas({ gpu_quota_per_user: { A100: 4 } }, { connection: lab.connection });
    expect(await lower.ask({ cluster: 'two', gpus: 'A100:1' })).toMatchObject(REJECTED);
    // The cluster that is there already takes nothing more.
    expect(await lower.ask({ cluster: 'one', gpus: 'A100:8' })).toMatchObject(ALLOWED);
    await lower.verify();
  });
});

it('a policy that charges launches wants to know the API server', async () => {
  await expect(quotas({ api_server: undefined })).rejects.toThrow(/api_server: expected the URL/);
});
