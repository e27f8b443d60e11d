import { describe, expect, it } from 'vitest';
import { REQUEST_NAMES, resourcesOf } from '../../src/skypilot/index.ts';
import { type Asked, askTwice, chainOf } from './helpers.ts';

/** The resources of a task after the policy with a maximum of 10 minutes, by what they were and what was said besides. */
async function resourcesAfter(resources: string, options: Asked['options'] = {}, max = 10) {
  const { ask } = await chainOf(['SetMaxAutostopIdleMinutesPolicy'], { set_max_autostop_idle_minutes: max });
  const { task } = await askTwice(ask, {
    task: `name: t\nresources: ${resources}\nrun: hostname\n`,
    options,
  });
  return task.resources;
}

const autostopAfter = async (autostop: string, options: Asked['options'] = {}) =>
  ((await resourcesAfter(`{autostop: ${autostop}}`, options)) as { autostop: unknown }).autostop;

describe('SetMaxAutostopIdleMinutesPolicy', () => {
  it.each(['0', '10', '5m', 'true', '{idle_minutes: 10, down: true}', '{down: true}'])(
    'leaves autostop: %s as it is',
    async (autostop) => {
      const { ask } = await chainOf(['SetMaxAutostopIdleMinutesPolicy']);
      const task = `resources:\n  autostop: ${autostop}\nrun: hostname\n`;
      expect(await askTwice(ask, { task })).toMatchObject({ changed: false, task_: task });
    },
  );

  it.each([
    ['11', { idle_minutes: 10 }],
    ['"1H"', { idle_minutes: 10 }],
    ['.inf', { idle_minutes: 10 }],
    ['99999999999999999999', { idle_minutes: 10 }],
    ['{idle_minutes: 20, down: true, wait_for: jobs}', { idle_minutes: 10, down: true, wait_for: 'jobs' }],
    ['null', { idle_minutes: 10 }],
    ['false', { idle_minutes: 10 }],
    ['-1', { idle_minutes: 10 }],
    ['{idle_minutes: -1, down: true}', { idle_minutes: 10, down: true }],
  ])('caps autostop, and sets it where it is off: %s', async (autostop, expected) => {
    expect(await autostopAfter(autostop)).toEqual(expected);
  });

  it.each([
    ['{infra: k8s/east}', '{}', { down: true }],
    ['{any_of: [{infra: ssh/pool}, {infra: slurm/lab/gpu}]}', '{}', { down: true }],
    ['{infra: k8s, autostop: false}', '{}', { down: true }],
    ['{infra: k8s, autostop: {idle_minutes: 20, down: false}}', '{}', { down: true }],
    ['{infra: lambda}', '{}', { down: true }],
    ['{infra: runpod, autostop: {idle_minutes: 10, down: false}}', '{}', { down: true }],
    ['{any_of: [{infra: aws}, {infra: cudo}]}', '{}', { down: true }],
    ['{infra: aws, use_spot: true, autostop: 10}', '{}', { down: true }],
    ['{use_spot: true}', '{}', { down: true }],
    ['{infra: gcp, use_spot: true}', '{}', {}],
    ['{use_spot: true}', 'allowed_clouds: [gcp]', {}],
    ['{infra: gcp, accelerators: tpu-v4-16}', '{}', { down: true }],
    ['{infra: gcp, accelerators: tpu-v4-8}', '{}', {}],
    ['{cpus: 2}', 'allowed_clouds: [shadeform, aws]', { down: true }],
    ['{cpus: 2}', 'allowed_clouds: [kubernetes, SSH]', { down: true }],
    ['{cpus: 2}', 'allowed_clouds: [kubernetes, aws]', {}],
    ['{any_of: [{infra: k8s}, {infra: aws}]}', '{}', {}],
    ['{cpus: 2}\nvolumes: {/data: shared}', '{}', { down: true }],
    ['{cpus: 2}\nvolumes: {/data: shared}', 'allowed_clouds: [kubernetes, aws]', { down: true }],
    ['{infra: aws}\nvolumes: {}', '{}', {}],
  ])('tears clusters down where they cannot be stopped: %s', async (resources, config, expected) => {
    const { ask } = await chainOf(['SetMaxAutostopIdleMinutesPolicy']);
    const { task } = await askTwice(ask, { task: `resources: ${resources}\n`, config });
    expect(resourcesOf(task).map(({ autostop }) => autostop)).toEqual(
      resourcesOf(task).map(() => ({ idle_minutes: 10, ...expected })),
    );
  });

  it('leaves controllers, services and pools alone, whose clusters SkyPilot stops or replaces itself', async () => {
    const { ask } = await chainOf(['SetMaxAutostopIdleMinutesPolicy']);
    const changed = await Promise.all(
      REQUEST_NAMES.map(async (name) => [
        name,
        (await askTwice(ask, { name, task: 'resources: {infra: k8s}\n' })).changed,
      ]),
    );
    expect(changed.filter(([, isChanged]) => isChanged === true).map(([name]) => name)).toEqual([
      'validate',
      'optimize',
      'launch',
      'exec',
      'jobs.launch',
      'jobs.launch_cluster',
    ]);
  });

  it('sets autostop if it is missing, also for a task without resources', async () => {
    expect(await resourcesAfter('{infra: aws}')).toEqual({ infra: 'aws', autostop: { idle_minutes: 10 } });
    expect(await resourcesAfter('{}')).toEqual({ autostop: { idle_minutes: 10 } });
    expect(await resourcesAfter('')).toEqual({ autostop: { idle_minutes: 10 } });
  });

  it.each([
    [{ idleMinutesToAutostop: 5 }, { idle_minutes: 5 }],
    [{ idleMinutesToAutostop: 30 }, { idle_minutes: 10 }],
    [{ idleMinutesToAutostop: -1 }, { idle_minutes: 10 }],
    [
      { idleMinutesToAutostop: 30, down: true },
      { idle_minutes: 10, down: true },
    ],
    [{ down: true }, { idle_minutes: 0, down: true }],
    [null, { idle_minutes: 10 }],
  ])('uses the command line if the task sets nothing: %j', async (options, expected) => {
    expect(await resourcesAfter('{}', options)).toEqual({ autostop: expected });
  });

  it('uses the task if both set it, as SkyPilot does', async () => {
    expect(await autostopAfter('7', { idleMinutesToAutostop: 30 })).toBe(7);
    expect(await autostopAfter('false', { idleMinutesToAutostop: 5 })).toEqual({ idle_minutes: 10 });
  });

  it.each(['any_of', 'ordered'])('caps and sets it in each alternative of %s', async (form) => {
    const list = `{autostop: 60, ${form}: [{infra: aws}, {infra: gcp, autostop: 3}, {infra: azure, autostop: null}]}`;
    expect(await resourcesAfter(list)).toEqual({
      autostop: 60,
      [form]: [
        { infra: 'aws', autostop: { idle_minutes: 10 } },
        { infra: 'gcp', autostop: 3 },
        { infra: 'azure', autostop: { idle_minutes: 10 } },
      ],
    });
    expect(await resourcesAfter(`{autostop: 60, ${form}: []}`)).toEqual({
      autostop: { idle_minutes: 10 },
      [form]: [],
    });
  });

  it('accepts a maximum of 0', async () => {
    expect(await resourcesAfter('{autostop: 1}', {}, 0)).toEqual({ autostop: { idle_minutes: 0 } });
  });

  it.each(['soon', '[10]', '{idle_minutes: [1]}', '{wait_for: x}'])(
    'rejects an autostop that it cannot read, and says what is one: %s',
    async (autostop) => {
      const { ask } = await chainOf(['SetMaxAutostopIdleMinutesPolicy']);
      expect(await ask({ task: `resources: {autostop: ${autostop}}` })).toMatchObject({
        allowed: false,
        failed: false,
        message:
          'resources.autostop: expected minutes, a time such as 10m or 1h, or a mapping with idle_minutes, down, wait_for and hook.',
      });
    },
  );
});
