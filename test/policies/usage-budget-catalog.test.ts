import { describe, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { Lab } from './charging.ts';

const OPTIONS = {
  usage_budget_unit: 'USD',
  usage_budget_catalog: { aws: projectFile('examples/skypilot-catalog/aws.csv') },
};

describe('a launch with a catalog of prices', () => {
  it('is charged at the dearest that SkyPilot may choose, and settled by what it became', async () => {
    const lab = await Lab.open({ budget: '100', options: OPTIONS });
    const task = 'resources:\n  infra: aws\n  accelerators: T4\n  cpus: 8+\n';
    expect(await lab.ask({ task })).toMatchObject({ allowed: true, changed: false });
    expect(await lab.taken()).toBeCloseTo(0.838 * 24, 9);
    lab.api.launch({ name: 'train', workspace: 'ml', accelerators: { T4: 1 }, instanceType: 'g4dn.2xlarge' });
    lab.pass(7200);
    lab.api.stop('train');
    lab.pass(3600);
    await lab.poll();
    expect(await lab.taken()).toBe(0.752 * 2);
    await lab.verify();
  });

  it('without accelerators costs something, and is refused with figures where it does not fit', async () => {
    const lab = await Lab.open({ budget: '2', options: OPTIONS });
    const task = 'resources: {infra: aws/us-east-1, instance_type: m6i.large}\n';
    expect(await lab.ask({ task })).toMatchObject({
      allowed: false,
      failed: false,
      message: expect.stringMatching(/^The launch would cost 2\.304 USD; the workspace ml has 2 USD left/),
    });
    expect(await lab.ask({ task: 'run: hostname\n' })).toMatchObject({
      allowed: false,
      failed: false,
      message:
        "The cost of the launch can't be told: name a cloud in infra, because SkyPilot may choose one that has no prices here.",
    });
    const config = 'active_workspace: ml\nallowed_clouds: [AWS, cloudflare]\n';
    expect(await lab.ask({ config, task: 'resources: {instance_type: m6i.2xlarge}\n' })).toMatchObject({
      message: expect.stringContaining('10.272 USD'),
    });
  });
});
