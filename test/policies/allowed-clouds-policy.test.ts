import { describe, expect, it } from 'vitest';
import { askTwice, resourcePolicy, taskWith } from './helpers.ts';

const PLACES = ['aws/us-east-1', 'k8s/team/Gpu-*', 'gcp'];

const policy = (allowed = PLACES, options: Readonly<Record<string, unknown>> = {}) =>
  resourcePolicy('AllowedCloudsPolicy', { allowed_clouds: allowed, ...options });
const UNNAMED = expect.stringContaining('Tasks must name where they run here.');

describe('AllowedCloudsPolicy', () => {
  it.each([
    '{infra: aws/us-east-1}',
    '{infra: K8s/team/Gpu-1}',
    '{infra: gcp/us-central1, any_of: [{cpus: 4}, {infra: aws/us-east-1}]}',
    '{ordered: [{infra: gcp/x/y}, {cloud: gcp}]}',
  ])('leaves what names an allowed place as it is: %s', async (resources) => {
    await (await policy()).leaves(resources);
  });

  it.each([
    ['{infra: aws/us-west-2}', 'aws/us-west-2'],
    ['{infra: k8s/team/gpu-1}', 'kubernetes/team/gpu-1'],
    ['{infra: gcp, any_of: [{cpus: 4}, {infra: lambda}]}', 'lambda'],
    ['{ordered: [{infra: gcp}, {infra: digitalocean}]}', 'do'],
  ])(
    'rejects another, in every alternative and spelling, and says what is allowed: %s',
    async (resources, place) => {
      await (await policy()).refuses(
        resources,
        `Tasks may not run on ${place} here. Set infra to one of: aws/us-east-1, kubernetes/team/Gpu-*, gcp.`,
      );
    },
  );

  it.each([
    '{infra: aws/us-east-1, cloud: gcp}',
    '{any_of: [{infra: gcp}, {cloud: [aws]}]}',
    '{infra: "gcp\\u200b"}',
  ])('rejects what it cannot read: %s', async (resources) => {
    const { refuses } = await policy();
    await refuses(resources, expect.stringMatching(/^resources\.(infra|cloud): expected where to run/));
  });

  it('limits a task that names nothing to the allowed places', async () => {
    const { resourcesAfter } = await policy();
    const places = [{ infra: 'aws/us-east-1' }, { infra: 'gcp' }];
    expect(await resourcesAfter('{cpus: 4}')).toEqual({ cpus: 4, any_of: places });
    expect(await resourcesAfter('')).toEqual({ any_of: places });
    expect(await resourcesAfter('{infra: "*", ordered: [{cpus: 4}, {infra: gcp}]}')).toEqual({
      infra: '*',
      ordered: [{ cpus: 4, infra: 'aws/us-east-1' }, { cpus: 4, infra: 'gcp' }, { infra: 'gcp' }],
    });
  });

  it('limits a task that names a part of an allowed place to it', async () => {
    const { resourcesAfter } = await policy();
    expect(await resourcesAfter('{infra: aws}')).toEqual({ infra: 'aws/us-east-1' });
    expect(await resourcesAfter('{cloud: aws, zone: us-east-1a, cpus: 4}')).toEqual({
      cpus: 4,
      infra: 'aws/us-east-1/us-east-1a',
    });
    expect(await resourcesAfter('{region: eu-east-1}')).toEqual({ infra: 'gcp/eu-east-1' });
    expect(await resourcesAfter('{cloud: aws, any_of: [{cpus: 4}, {cloud: gcp}]}')).toEqual({
      any_of: [{ cpus: 4, infra: 'aws/us-east-1' }, { cloud: 'gcp' }],
    });
  });

  it('rejects a task that it cannot limit, because only patterns are left', async () => {
    await (await policy()).refuses('{infra: k8s}', UNNAMED);
    await (await policy(['aws/us-*'])).refuses('{}', UNNAMED);
  });

  it.each([
    'region: us-east-1',
    'infra: "*/*/us-a"',
    'instance_type: m6i.large',
    'local_disk: 100+',
    'disk_tier: ULTRA',
  ])('rejects a task that is for one cloud and does not say for which: %s', async (resources) => {
    const { refuses } = await policy();
    await refuses(`{${resources}}`, expect.stringContaining('must name their cloud here'));
    const one = await policy(['aws/us-east-1', 'aws/eu-west-1']);
    await askTwice(one.ask, { task: taskWith(`{${resources}}`) });
  });

  it('rejects a task that names nothing if the operator wants that', async () => {
    const { refuses } = await policy(PLACES, { allowed_clouds_unnamed: 'reject' });
    await refuses('{cpus: 4}', UNNAMED);
    await refuses('{any_of: [{infra: gcp}, {}]}', UNNAMED);
  });

  it('leaves sky exec where its cluster is, unless the task names another place', async () => {
    const { leaves, refuses } = await policy(['aws/us-*'], { allowed_clouds_unnamed: 'reject' });
    await leaves('{cpus: 4}', { name: 'exec' });
    await refuses('{infra: gcp}', expect.any(String), { name: 'exec' });
  });

  it('takes no zone for a part of a context, which would be another one', async () => {
    const { ask, refuses } = await policy(['aws/us-east-1', 'k8s/a/b', 'ssh/pool']);
    const { task_: task } = await askTwice(ask, { task: taskWith('{zone: x}') });
    expect(task).toContain('aws/us-east-1/x');
    expect(task).not.toMatch(/kubernetes|ssh/);
    for (const resources of ['{cloud: k8s, region: a/b, zone: x}', '{cloud: ssh, region: pool, zone: x}']) {
      await refuses(resources, expect.any(String));
    }
  });
});
