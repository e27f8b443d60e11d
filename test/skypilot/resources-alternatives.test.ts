import { describe, expect, it } from 'vitest';
import { acceleratorsOf, changeResources, resourcesOf } from '../../src/skypilot/resources.ts';

describe('alternatives of resources', () => {
  it.each(['any_of', 'ordered'])(
    'that are none leave what stands beside %s as the one that there is',
    (form) => {
      const task = { resources: { accelerators: 'A100', [form]: [] } };
      expect(resourcesOf(task)).toEqual([{ accelerators: 'A100', [form]: [] }]);
      changeResources(task, () => ({ use_spot: true }));
      expect(task.resources).toEqual({ accelerators: 'A100', [form]: [], use_spot: true });
    },
  );

  it('lose a member for good that stood beside them, each as it was answered', () => {
    const task = {
      resources: {
        cpus: 4,
        any_of: [{ infra: 'aws' }, { infra: 'gcp' }, { infra: 'azure', cpus: 2 }],
        disk_size: 9,
      },
    };
    changeResources(task, ({ infra }) => (infra === 'aws' ? { cpus: undefined } : {}));
    expect(resourcesOf(task)).toEqual([
      { disk_size: 9, infra: 'aws' },
      { disk_size: 9, infra: 'gcp', cpus: 4 },
      { disk_size: 9, infra: 'azure', cpus: 2 },
    ]);
    changeResources(task, () => ({ cpus: undefined }));
    expect(task.resources).toEqual({
      any_of: [{ infra: 'aws' }, { infra: 'gcp' }, { infra: 'azure' }],
      disk_size: 9,
    });
  });

  it('keep their place among the members', () => {
    const task = { resources: { any_of: [{ cpus: 1 }], disk_size: 9 } };
    changeResources(task, () => ({ cpus: 2 }));
    expect(JSON.stringify(task.resources)).toBe('{"any_of":[{"cpus":2}],"disk_size":9}');
  });
});

it('accelerators are found by their other name, and by the first one where both stand', () => {
  expect(acceleratorsOf({ gpus: 'A100:8' })).toEqual([{ name: 'A100', count: 8 }]);
  expect(acceleratorsOf({ accelerators: 'H100', gpus: 'A100:8' })).toEqual([{ name: 'H100', count: 1 }]);
  // A member that is null asks for nothing, and so does not hide the other.
  expect(acceleratorsOf({ accelerators: null, gpus: 'A100:8' })).toEqual([{ name: 'A100', count: 8 }]);
});
