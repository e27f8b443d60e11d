import { describe, expect, it } from 'vitest';
import { rejectedWith } from '../support/decisions.ts';
import { askTwice, chainOf } from './helpers.ts';

const POLICY = ['AddVolumesPolicy'];
const VOLUMES = { add_volumes: { '/mnt/data0': 'pvc0', '/mnt/images': 'shared/images/v2' } };
const ADDED = { '/mnt/data0': 'pvc0', '/mnt/images': { name: 'shared', sub_path: 'images/v2' } };

describe('AddVolumesPolicy', () => {
  it('adds the volumes to every task, beside those that it has', async () => {
    const { ask } = await chainOf(POLICY, VOLUMES);
    for (const [task, volumes] of [
      ['run: a', ADDED],
      ['volumes: null', ADDED],
      ['volumes: {/mnt/existing: mine}', { '/mnt/existing': 'mine', ...ADDED }],
      [
        'volumes: {/tmp/x: {size: 10Gi}}\nfile_mounts: {/data: s3://b}',
        { '/tmp/x': { size: '10Gi' }, ...ADDED },
      ],
    ] as const) {
      expect((await askTwice(ask, { task })).task.volumes, task).toEqual(volumes);
    }
    for (const asked of [
      { atClientSide: true },
      { name: 'validate' },
      { name: 'jobs.launch', options: null },
      { name: 'serve.up', options: null },
    ]) {
      expect((await askTwice(ask, asked)).task.volumes).toEqual(ADDED);
    }
  });

  it('leaves alone controllers, clusters that are up, and volumes that the server has resolved', async () => {
    const { ask } = await chainOf(POLICY, VOLUMES);
    for (const asked of [
      { name: 'jobs.launch_controller' },
      { name: 'serve.launch_controller' },
      { name: 'exec' },
      {
        name: 'jobs.launch_cluster',
        task: 'volumes: {}\nvolume_mounts: [{path: /mnt/data0, volume_name: pvc0}]',
      },
    ]) {
      expect((await askTwice(ask, asked)).changed, asked.name).toBe(false);
    }
    const resolved = await askTwice(ask, { name: 'jobs.launch_cluster', task: 'volume_mounts: null' });
    expect(resolved.task.volumes).toEqual(ADDED);
  });

  it.each([
    ['volumes: {/mnt/data0: mine}', '/mnt/data0'],
    ['volumes: {/mnt/data0/: mine}', '/mnt/data0'],
    ['volumes: {/mnt/x/../data0: mine}', '/mnt/data0'],
    ['volumes: {/mnt/data0: {name: pvc0, sub_path: a}}', '/mnt/data0'],
    ['volumes: {/mnt/images: shared}', '/mnt/images'],
    ['file_mounts: {/mnt/data0/: {source: s3://bucket}}', '/mnt/data0'],
  ])('refuses something else at its path, or keeps it: %s', async (task, path) => {
    const { ask } = await chainOf(POLICY, VOLUMES);
    expect(await ask({ task })).toMatchObject(
      rejectedWith(expect.stringMatching(new RegExp(`^The volume \\S+ is mounted at ${path} in every task`))),
    );
    const { ask: keeping } = await chainOf(POLICY, { ...VOLUMES, add_volumes_existing: 'keep' });
    const { task: kept } = await askTwice(keeping, { task });
    expect(Object.keys({ ...(kept.volumes as object) })).toHaveLength(task.startsWith('volumes') ? 2 : 1);
    expect(JSON.stringify(kept.volumes)).not.toContain(JSON.stringify(path).slice(0, -1).concat('":"pvc0"'));
  });

  it('knows its own volumes in other forms', async () => {
    const { ask } = await chainOf(POLICY, VOLUMES);
    for (const task of [
      'volumes: {/mnt/data0: {name: pvc0}, /mnt/images: {sub_path: images/v2, name: shared}}',
      'volumes: {/mnt/data0/: pvc0, /mnt/images: {name: shared, sub_path: images/v2}}',
    ]) {
      expect((await askTwice(ask, { task })).changed, task).toBe(false);
    }
  });

  it('adds them only where a cloud has them, and refuses a task that is for some of both', async () => {
    const { ask } = await chainOf(POLICY, { ...VOLUMES, add_volumes_clouds: ['K8s', 'runpod'] });
    for (const [task, expected] of [
      ['resources: {infra: k8s/my/context}', true],
      ['resources: {infra: runpod}', true],
      ['run: a', true],
      ['resources: {any_of: [{infra: k8s}, {infra: runpod}, {cpus: 2}]}', true],
      ['resources: {infra: aws}', false],
      ['resources: {any_of: [{infra: aws}, {cloud: gcp}]}', false],
      ['resources: {any_of: [{infra: aws}, {infra: k8s}]}', undefined],
      ['resources: {ordered: [{cpus: 2}, {infra: aws}]}', undefined],
      ['resources: {infra: aws, cloud: k8s}', undefined],
      ['resources: x', undefined],
    ] as const) {
      const answer = await ask({ task });
      expect([answer.failed, answer.allowed, answer.changed], task).toEqual([
        false,
        expected !== undefined,
        expected === true,
      ]);
    }
    const { message } = await ask({ task: 'resources: {any_of: [{infra: aws}, {infra: k8s}]}' });
    expect(message).toBe(
      'Tasks get volumes that only kubernetes and runpod can have. Name only such clouds as alternatives, or none of them, instead of aws beside them.',
    );
  });

  it('adds them only in some workspaces', async () => {
    const { ask } = await chainOf(POLICY, { ...VOLUMES, add_volumes_workspaces: ['ml'] });
    expect((await ask({ config: 'active_workspace: ml' })).changed).toBe(true);
    expect((await ask({ config: 'active_workspace: web' })).changed).toBe(false);
    expect((await ask()).changed).toBe(false);
    const { ask: inDefault } = await chainOf(POLICY, { ...VOLUMES, add_volumes_workspaces: ['default'] });
    expect((await inDefault()).changed).toBe(true);
  });

  it('refuses mounts that it cannot read', async () => {
    const { ask } = await chainOf(POLICY, VOLUMES);
    for (const task of ['volumes: [a]', 'volumes: x', 'file_mounts: [a]', 'file_mounts: 3']) {
      expect(await ask({ task }), task).toMatchObject(
        rejectedWith(expect.stringContaining('expected a mapping by mount path')),
      );
    }
  });
});
