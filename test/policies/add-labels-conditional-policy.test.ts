import { describe, expect, it } from 'vitest';
import { rejectedWith } from '../support/decisions.ts';
import { askTwice, chainOf, LEE, TASK } from './helpers.ts';

const POLICY = ['AddLabelsConditionalPolicy'];
const LABEL = { app: 'skypilot' };

describe('AddLabelsConditionalPolicy', () => {
  it('adds its label to everything but validate and optimize, at both sides', async () => {
    const { ask } = await chainOf(POLICY);
    for (const asked of [
      {},
      { name: 'exec' },
      { name: 'jobs.launch', options: null },
      { name: 'something.new' },
    ]) {
      for (const atClientSide of [false, true]) {
        const { skypilotConfig, task_ } = await askTwice(ask, { ...asked, atClientSide });
        expect(skypilotConfig.toDict()).toEqual({
          kubernetes: { custom_metadata: { labels: LABEL } },
          ssh: { custom_metadata: { labels: LABEL } },
        });
        expect(task_).toBe(TASK);
      }
    }
    for (const name of ['validate', 'optimize']) {
      expect((await askTwice(ask, { name })).changed).toBe(false);
    }
  });

  it.each([
    ['side', 'server', {}, true],
    ['side', 'server', { atClientSide: true }, false],
    ['side', 'client', {}, false],
    ['side', 'client', { atClientSide: true }, true],
    ['users', ['lee'], {}, true],
    ['users', [LEE.id], {}, true],
    ['users', ['ann', 'Lee'], {}, false],
    ['users', ['lee'], { atClientSide: true }, false],
    ['workspaces', ['ml'], { config: 'active_workspace: ml' }, true],
    ['workspaces', ['ml'], { config: 'active_workspace: web' }, false],
    ['workspaces', ['ml'], { config: 'active_workspace: [ml]' }, false],
    ['workspaces', ['default'], {}, true],
    ['skipped_requests', ['launch'], {}, false],
    ['skipped_requests', ['jobs.launch'], {}, true],
    ['skipped_requests', [], { name: 'validate' }, true],
  ] as const)('with %s = %s and %j: %s', async (option, value, asked, labelled) => {
    const { ask } = await chainOf(POLICY, { [`add_labels_conditional_${option}`]: value });
    expect((await askTwice(ask, asked)).changed).toBe(labelled);
  });

  it('labels only where all conditions are fulfilled', async () => {
    const { ask } = await chainOf(POLICY, {
      add_labels_conditional_users: ['lee'],
      add_labels_conditional_workspaces: ['ml'],
    });
    expect((await ask({ config: 'active_workspace: ml' })).changed).toBe(true);
    expect((await ask()).changed).toBe(false);
    expect(
      (await ask({ config: 'active_workspace: ml', user: { ...LEE, name: 'ann', id: 'b' } })).changed,
    ).toBe(false);
  });

  it('labels the resources, and alternatives with labels of their own', async () => {
    const { ask } = await chainOf(POLICY, { add_labels_conditional_to: ['resources'] });
    const { task, config } = await askTwice(ask, {
      task: 'resources: {labels: {app: x, team: y}, ordered: [{infra: aws, labels: {app: z, a: b}}, {infra: gcp}]}',
    });
    expect(task).toEqual({
      resources: {
        labels: { app: 'skypilot', team: 'y' },
        ordered: [{ infra: 'aws', labels: { app: 'skypilot', a: 'b' } }, { infra: 'gcp' }],
      },
    });
    expect(config).toBe('{}\n');
    for (const bare of [
      'run: a',
      'resources: null',
      'resources: {any_of: []}',
      'resources: {labels: null}',
    ]) {
      expect((await askTwice(ask, { task: bare })).task.resources).toMatchObject({ labels: LABEL });
    }
    const { ask: both } = await chainOf(POLICY, { add_labels_conditional_to: ['kubernetes', 'resources'] });
    const answer = await askTwice(both);
    expect(answer.task.resources).toEqual({ infra: 'aws', labels: LABEL });
    expect(answer.skypilotConfig.getNested(['kubernetes', 'custom_metadata', 'labels'])).toEqual(LABEL);
  });

  it('refuses what it cannot label, with a reason', async () => {
    const { ask } = await chainOf(POLICY, { add_labels_conditional_to: ['kubernetes', 'resources'] });
    for (const task of [
      'resources: [a]',
      'resources: {labels: [a]}',
      'resources: {labels: x}',
      'resources: {any_of: [x]}',
      'resources: {any_of: {a: b}}',
      'resources: {ordered: [{labels: 3}]}',
      'config: [a]',
      'resources: {_cluster_config_overrides: x}',
    ]) {
      expect(await ask({ task }), task).toMatchObject(
        rejectedWith(expect.stringContaining('of the task: expected a ')),
      );
    }
  });
});
