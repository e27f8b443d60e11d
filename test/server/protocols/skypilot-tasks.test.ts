/** Tasks of every form that SkyPilot tries its own policy server with, as it writes them: what a policy sees, and what comes back. */
import { expect, it, vi } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { inside } from '../../support/skypilot.ts';
import { runSkypilot } from '../../support/skypilot-service.ts';

const REST = 'num_nodes: 1\n\nfile_mounts: {}\n\nvolumes: {}\n';
/** Kubernetes has no regions, so an image is that of no region. */
const IMAGE = 'resources:\n  infra: kubernetes\n  image_id:\n    null: docker:ubuntu:22.04\n\n';
const MOUNTED = 'file_mounts:\n  /data: ~/datasets/\n\nvolumes: {}\n';
const TASKS: readonly (readonly [string, string, object])[] = [
  [
    'an image without a region',
    `${IMAGE}${REST}`,
    { resources: { infra: 'kubernetes', image_id: { null: 'docker:ubuntu:22.04' } } },
  ],
  ['a script without resources', `run: echo "Hello World"\n\n${REST}`, { run: 'echo "Hello World"' }],
  [
    'a whole task',
    `name: complex-task\n\nresources:\n  infra: kubernetes\n  cpus: 4+\n  memory: '16'\n  accelerators:\n    A100: 2\n  image_id:\n    null: docker:pytorch/pytorch:latest\n\nnum_nodes: 1\n\nsetup: pip install torch\n\nrun: python train.py --epochs 100\n\nworkdir: ~/project\n\nenvs:\n  CUDA_VISIBLE_DEVICES: 0,1\n\n${MOUNTED}`,
    {
      name: 'complex-task',
      resources: { memory: '16', accelerators: { A100: 2 } },
      envs: { CUDA_VISIBLE_DEVICES: '0,1' },
      file_mounts: { '/data': '~/datasets/' },
      workdir: '~/project',
    },
  ],
];

it.for(TASKS)('%s is seen and returned as it is, and with the change of a policy', async ([, task, part]) => {
  const seen: Record<string, unknown>[] = [];
  vi.stubGlobal('seenTasks', seen);
  const { ask } = await runSkypilot({
    SeeingPolicy: `globalThis.seenTasks.push(structuredClone(task));
      if (request.requestName === 'exec') task.resources = { ...task.resources, use_spot: true };`,
  });
  const user = 'id: "123"\nname: test\nuser_type: null\npreferred_workspace: null\n';
  const { text } = await ask({ task, user });
  expect(seen[0]).toMatchObject(part);
  expect(inside(text)).toEqual({ task, skypilot_config: '{}\n' });
  const changed = inside((await ask({ task, user, request_name: 'exec' })).text).task as string;
  const { resources, ...rest } = YamlDocument.parse(task).value as Record<string, object>;
  expect(YamlDocument.parse(changed).value).toEqual({ ...rest, resources: { ...resources, use_spot: true } });
  // The name of no region is null, and not the text "null".
  expect(changed.includes('    null: docker:')).toBe(task.includes('    null: docker:'));
});
