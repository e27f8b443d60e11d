import { describe, expect, it } from 'vitest';
import {
  acceleratorsOf,
  changeResources,
  type Resources,
  resourcesOf,
  type Task,
} from '../../src/skypilot/index.ts';

describe('resourcesOf', () => {
  it.for([
    ['none', {}, [{}]],
    ['null', { resources: null }, [{}]],
    ['one', { resources: { cpus: '4+' } }, [{ cpus: '4+' }]],
    [
      'any_of',
      { resources: { disk_size: 50, cpus: 2, any_of: [{ cpus: 4 }, { infra: 'gcp' }] } },
      [
        { disk_size: 50, cpus: 4 },
        { disk_size: 50, cpus: 2, infra: 'gcp' },
      ],
    ],
    ['ordered', { resources: { ordered: [{ infra: 'aws' }] } }, [{ infra: 'aws' }]],
    ['alternatives of null', { resources: { cpus: 1, any_of: null } }, [{ cpus: 1, any_of: null }]],
  ] as const)('returns all alternatives: %s', ([, task, expected]) => {
    expect(resourcesOf(task as unknown as Task)).toEqual(expected);
  });

  it.for([
    { resources: 'A100' },
    { resources: [{ cpus: 4 }] },
    { resources: 8 },
    { resources: { any_of: { cpus: 4 } } },
    { resources: { any_of: ['A100'] } },
    { resources: { ordered: [null] } },
  ])('throws for an unknown form: %j', (task) => {
    expect(() => resourcesOf(task)).toThrow(TypeError);
    expect(() => changeResources(task, () => ({ cpus: 1 }))).toThrow(TypeError);
  });
});

describe('changeResources', () => {
  const changed = (task: Task, change: (resources: Resources) => Resources) => {
    changeResources(task, change);
    return task;
  };

  it('changes a single alternative', () => {
    expect(
      changed({ resources: { cpus: 4, infra: 'aws' } }, () => ({ use_spot: true, infra: undefined })),
    ).toEqual({
      resources: { cpus: 4, use_spot: true },
    });
  });

  it('creates resources for a task without any', () => {
    expect(changed({ run: 'true' }, () => ({ use_spot: true }))).toEqual({
      run: 'true',
      resources: { use_spot: true },
    });
  });

  it.for(['any_of', 'ordered'])(
    'changes each alternative of %s by itself, and nothing beside them',
    (name) => {
      const task = {
        resources: {
          disk_size: 50,
          [name]: [{ accelerators: 'L4' }, { cpus: 4 }, { accelerators: { A100: 8 } }],
        },
      };
      const seen: Resources[] = [];
      changed(task, (resources) => {
        seen.push(resources);
        return acceleratorsOf(resources).length > 0 ? { use_spot: true } : {};
      });
      expect(seen[1]).toEqual({ disk_size: 50, cpus: 4 });
      expect(task).toEqual({
        resources: {
          disk_size: 50,
          [name]: [
            { accelerators: 'L4', use_spot: true },
            { cpus: 4 },
            { accelerators: { A100: 8 }, use_spot: true },
          ],
        },
      });
    },
  );

  it('does not touch a task without changes', () => {
    for (const task of [{}, { resources: null }, { resources: { any_of: [{ cpus: 1 }] } }]) {
      const before = structuredClone(task);
      expect(changed(task, () => ({}))).toEqual(before);
    }
  });
});

describe('acceleratorsOf', () => {
  it.for([
    [undefined, []],
    [null, []],
    ['', []],
    ['None', []],
    ['A100', [['A100', 1]]],
    ['A100:8', [['A100', 8]]],
    [' A100 : 0.5 ', [['A100', 0.5]]],
    ['tpu-v6e-8', [['tpu-v6e-8', 1]]],
    [
      '{A100: 2, H100: 4}',
      [
        ['A100', 2],
        ['H100', 4],
      ],
    ],
    [
      '[A100:2, L4]',
      [
        ['A100', 2],
        ['L4', 1],
      ],
    ],
    [{ A100: 8 }, [['A100', 8]]],
    [
      { A100: null, L4: '2' },
      [
        ['A100', 1],
        ['L4', 2],
      ],
    ],
    [
      ['A100:8', { H100: 4 }, 'L4'],
      [
        ['A100', 8],
        ['H100', 4],
        ['L4', 1],
      ],
    ],
    [{ __proto__: null }, []],
  ] as const)('reads %j', ([accelerators, expected]) => {
    expect(acceleratorsOf({ accelerators })).toEqual(expected.map(([name, count]) => ({ name, count })));
  });

  it.for([
    8,
    true,
    'A100:many',
    'A100:',
    { A100: 'many' },
    { A100: {} },
    { A100: true },
    [8],
    '[8]',
    'A100:8:4',
    'A100:-1',
  ])('throws for an unknown form: %j', (accelerators) => {
    expect(() => acceleratorsOf({ accelerators })).toThrow(TypeError);
  });
});

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

  it('lose an outer member for good, each as the change says', () => {
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

  it('keep their position among the members', () => {
    const task = { resources: { any_of: [{ cpus: 1 }], disk_size: 9 } };
    changeResources(task, () => ({ cpus: 2 }));
    expect(JSON.stringify(task.resources)).toBe('{"any_of":[{"cpus":2}],"disk_size":9}');
  });
});

it('accelerators are found by their alias, and by the first name if both are set', () => {
  expect(acceleratorsOf({ gpus: 'A100:8' })).toEqual([{ name: 'A100', count: 8 }]);
  expect(acceleratorsOf({ accelerators: 'H100', gpus: 'A100:8' })).toEqual([{ name: 'H100', count: 1 }]);
  // A member that is null asks for nothing, and so does not hide the other.
  expect(acceleratorsOf({ accelerators: null, gpus: 'A100:8' })).toEqual([{ name: 'A100', count: 8 }]);
});
