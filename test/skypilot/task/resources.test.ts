import { describe, expect, it } from 'vitest';
import {
  acceleratorsOf,
  canonicalAccelerator,
  changeResources,
  expandResources,
  PolicyRejected,
  type Resources,
  resourcesOf,
  type Task,
} from '../../../src/skypilot/index.ts';

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
    { resources: { any_of: { cpus: 4 } } },
    { resources: { any_of: ['A100'] } },
    { resources: { ordered: [null] } },
  ])('throws for an unknown form: %j', (task) => {
    expect(() => resourcesOf(task)).toThrow(PolicyRejected);
    expect(() => changeResources(task, () => ({ cpus: 1 }))).toThrow(PolicyRejected);
  });
});

describe('changeResources', () => {
  const changed = (task: Task, change: (resources: Resources) => Resources) => {
    changeResources(task, change);
    return task;
  };

  it('changes each alternative by itself, and nothing beside them', () => {
    const ordered = [{ accelerators: 'L4' }, { cpus: 4 }];
    const seen: Resources[] = [];
    const task = changed({ resources: { disk_size: 50, ordered } }, (resources) => {
      seen.push(resources);
      return acceleratorsOf(resources).length > 0 ? { use_spot: true } : {};
    });
    expect(seen[1]).toEqual({ disk_size: 50, cpus: 4 });
    expect(task).toEqual({
      resources: { disk_size: 50, ordered: [{ accelerators: 'L4', use_spot: true }, { cpus: 4 }] },
    });
  });

  it('creates resources for a task without any', () => {
    expect(changed({ run: 'true' }, () => ({ use_spot: true }))).toEqual({
      run: 'true',
      resources: { use_spot: true },
    });
  });

  it('does not touch a task without changes', () => {
    for (const task of [{}, { resources: null }, { resources: { any_of: [{ cpus: 1 }] } }]) {
      const before = structuredClone(task);
      expect(changed(task, () => ({}))).toEqual(before);
    }
  });
});

describe('acceleratorsOf', () => {
  it.each(['', '  ', { '': 8 }, ['']])(
    'refuses a name that is empty, and thus part of all others: %j',
    (accelerators) => {
      expect(() => acceleratorsOf({ accelerators })).toThrow(PolicyRejected);
    },
  );

  it.for<[unknown, Record<string, number>]>([
    [undefined, {}],
    [null, {}],
    ['None', {}],
    ['A100', { A100: 1 }],
    [' A100 : 0.5 ', { A100: 0.5 }],
    ['tpu-v6e-8', { 'tpu-v6e-8': 1 }],
    ['{A100: 2, H100: 4}', { A100: 2, H100: 4 }],
    ['[A100:2, L4]', { A100: 2, L4: 1 }],
    [
      { A100: null, L4: '2' },
      { A100: 1, L4: 2 },
    ],
    [['A100:8', { H100: 4 }, 'L4'], { A100: 8, H100: 4, L4: 1 }],
    [{ __proto__: null }, {}],
  ])('reads %j', ([accelerators, expected]) => {
    const counts = Object.entries(expected).map(([name, count]) => ({ name, count }));
    expect(acceleratorsOf({ accelerators } as Resources)).toEqual(counts);
  });

  it.for([8, true, 'A100:many', 'A100:', { A100: {} }, { A100: true }, [8], '[8]', 'A100:8:4', 'A100:-1'])(
    'throws for an unknown form: %j',
    (accelerators) => {
      expect(() => acceleratorsOf({ accelerators })).toThrow(PolicyRejected);
    },
  );
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
});

it('accelerators are found by their alias, and by the first name if both are set', () => {
  expect(acceleratorsOf({ gpus: 'A100:8' })).toEqual([{ name: 'A100', count: 8 }]);
  expect(acceleratorsOf({ accelerators: 'H100', gpus: 'A100:8' })).toEqual([{ name: 'H100', count: 1 }]);
  // A member that is null asks for nothing, and so does not hide the other.
  expect(acceleratorsOf({ accelerators: null, gpus: 'A100:8' })).toEqual([{ name: 'A100', count: 8 }]);
});

describe('the alias of accelerators', () => {
  it('replaces the outer value, by either name', () => {
    const taken = (resources: Resources) => resourcesOf({ resources }).map(acceleratorsOf);
    const t4 = [{ name: 'T4', count: 1 }];
    const h100 = [{ name: 'H100', count: 8 }];
    expect(taken({ accelerators: 'T4', any_of: [{ gpus: 'H100:8' }, {}] })).toEqual([h100, t4]);
    expect(taken({ gpus: 'T4', ordered: [{ accelerators: 'H100:8' }] })).toEqual([h100]);
    expect(taken({ gpus: 'T4', any_of: [{ accelerators: null }] })).toEqual([[]]);
  });

  it.for([{ accelerators: 'T4', gpus: 'H100' }, { any_of: [{ accelerators: 'T4', gpus: null }] }])(
    'is refused beside it: %j',
    (resources) => {
      expect(() => resourcesOf({ resources })).toThrow('expected accelerators or gpus, not both');
    },
  );
});

describe('resourcesOf, as SkyPilot reads alternatives,', () => {
  it('merges labels, as SkyPilot does', () => {
    const resources = { labels: { a: 'b', c: 'd' }, any_of: [{ labels: { a: 'x' } }, {}] };
    expect(resourcesOf({ resources }).map(({ labels }) => labels)).toEqual([
      { a: 'x', c: 'd' },
      { a: 'b', c: 'd' },
    ]);
  });

  it.for([
    { any_of: [{ cpus: 1 }], ordered: [{ cpus: 2 }] },
    { any_of: [{ any_of: [{ cpus: 1 }] }] },
    { ordered: [{ any_of: null }] },
  ])('refuses alternatives that SkyPilot refuses: %j', (resources) => {
    expect(() => resourcesOf({ resources })).toThrow(PolicyRejected);
  });
});

describe('expandResources', () => {
  const expanded = (resources: Resources, changes: readonly Resources[]) => {
    const task: Task = { resources };
    expandResources(task, () => changes);
    return task.resources;
  };
  const places = [{ infra: 'aws' }, { infra: 'gcp' }];

  it('makes alternatives of one', () => {
    expect(expanded({ cpus: 4 }, places)).toEqual({ cpus: 4, any_of: places });
    expect(expanded({ any_of: [{ cpus: 2 }, { cpus: 4 }] }, places)).toEqual({
      any_of: [
        { cpus: 2, infra: 'aws' },
        { cpus: 2, infra: 'gcp' },
        { cpus: 4, infra: 'aws' },
        { cpus: 4, infra: 'gcp' },
      ],
    });
  });

  it('keeps the order of a list of accelerators, which SkyPilot refuses beside alternatives', () => {
    expect(expanded({ gpus: ['A100:8', 'H100'], cpus: 4 }, places)).toEqual({
      cpus: 4,
      ordered: [
        { accelerators: 'A100:8', infra: 'aws' },
        { accelerators: 'A100:8', infra: 'gcp' },
        { accelerators: 'H100', infra: 'aws' },
        { accelerators: 'H100', infra: 'gcp' },
      ],
    });
    expect(expanded({ accelerators: { A100: 8, H100: 1 } }, places)).toEqual({
      accelerators: { A100: 8, H100: 1 },
      any_of: places,
    });
  });

  it('removes outer members, and empty alternatives', () => {
    expect(
      expanded({ cloud: 'aws', any_of: [], ordered: null, cpus: 1 }, [{ cloud: undefined, infra: 'x' }, {}]),
    ).toEqual({
      cpus: 1,
      any_of: [{ infra: 'x' }, { cloud: 'aws' }],
    });
  });

  it('refuses more alternatives than a task can have, and a change that would drop one', () => {
    const resources = { any_of: Array(501).fill({ cpus: 1 }) };
    expect(() => expanded(resources, places)).toThrow('at most 1000 alternatives');
    expect(() => expanded({}, [])).toThrow('every alternative needs a change');
  });
});

describe('acceleratorsOf, by memory,', () => {
  it.for([
    ['80GB+', { name: '80GB+', count: 1, memory: { gigabytes: 80, orMore: true, manufacturer: null } }],
    [
      'nvidia:1TB',
      { name: 'nvidia:1TB', count: 1, memory: { gigabytes: 1024, orMore: false, manufacturer: 'nvidia' } },
    ],
    [
      'AMD:192GB+:8',
      { name: 'AMD:192GB+:8', count: 8, memory: { gigabytes: 192, orMore: true, manufacturer: 'AMD' } },
    ],
  ] as const)('reads a demand for memory: %s', ([text, expected]) => {
    expect(acceleratorsOf({ accelerators: text })).toEqual([expected]);
    expect(acceleratorsOf({ accelerators: { [text]: null } })).toEqual([expected]);
  });

  it.for(['A100:0x8', 'A100:1_0', 'A100:inf', 'a:b:8', 'nvidia:80GB:2:1', 'A100:8:80GB'])(
    'refuses a number or a memory that is none: %s',
    (accelerators) => {
      expect(() => acceleratorsOf({ accelerators })).toThrow(PolicyRejected);
    },
  );
});

describe('canonicalAccelerator', () => {
  const known = ['A10', 'A100', 'A100-80GB', 'H100', 'H200', 'GB200'];
  it.for([
    ['a100', 'A100'],
    ['A100-80gb', 'A100-80GB'],
    ['GB2', 'GB200'],
    ['-80', 'A100-80GB'],
    ['H', undefined],
    ['MI300X', undefined],
    ['TPU-v4-8', 'tpu-v4-8'],
    ['H.00', undefined],
  ] as const)('finds what SkyPilot takes for %s', ([name, expected]) => {
    expect(canonicalAccelerator(name, known)).toBe(expected);
  });
});
