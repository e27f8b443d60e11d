import { describe, expect, it } from 'vitest';
import { MergeError } from '../../../src/config/merge.ts';
import { Config } from '../../../src/skypilot/config/config.ts';
import { OverrideKeyError } from '../../../src/skypilot/config/permitted-keys.ts';

const HOSTILE = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '', 'a.b', '0'];

const tree = () => ({
  aws: { vpc_name: 'main', labels: { team: 'ml' } },
  kubernetes: { provision_timeout: 600, pod_config: { spec: { tolerations: [{ key: 'gpu' }] } } },
  nothing: null,
});

describe('getNested', () => {
  it('returns the value at a path', () => {
    const config = Config.fromDict(tree());
    expect(config.getNested(['aws', 'vpc_name'])).toBe('main');
    expect(config.getNested(['aws', 'labels'])).toEqual({ team: 'ml' });
    expect(config.getNested([])).toEqual(tree());
  });

  it('returns an existing null, and the default for a missing value', () => {
    const config = Config.fromDict(tree());
    expect(config.getNested(['nothing'], 'default')).toBeNull();
    expect(config.getNested(['missing'], 'default')).toBe('default');
    expect(config.getNested(['missing'])).toBeUndefined();
    expect(config.getNested(['aws', 'missing'], 0)).toBe(0);
  });

  it.for([
    ['aws', 'vpc_name', 'length'],
    ['kubernetes', 'pod_config', 'spec', 'tolerations', '0'],
  ])('returns the default if a step is not a mapping: %j', (path) => {
    expect(Config.fromDict(tree()).getNested(path, 'default')).toBe('default');
  });

  it('applies overrides, and does not keep them', () => {
    const config = Config.fromDict(tree());
    const overrides = {
      aws: { vpc_name: 'other' },
      kubernetes: { pod_config: { spec: { tolerations: [1] } } },
    };
    expect(config.getNested(['aws'], undefined, overrides)).toEqual({
      vpc_name: 'other',
      labels: { team: 'ml' },
    });
    expect(
      config.getNested(['kubernetes', 'pod_config', 'spec', 'tolerations'], undefined, overrides),
    ).toEqual([{ key: 'gpu' }, 1]);
    expect(config.getNested([], undefined, {})).toEqual(tree());
    expect(config.toDict()).toEqual(tree());
  });
});

describe('the keys of overrides', () => {
  const read = (base: object, overrides: object, keys: object) =>
    Config.fromDict(base as never).getNested([], undefined, overrides as never, keys);
  const ALLOWED = { allowedOverrideKeys: [['docker', 'run_options'], ['active_workspace'], ['gcp']] };
  const DISALLOWED = { disallowedOverrideKeys: [['db'], ['jobs', 'controller', 'consolidation_mode']] };
  const BASES = [{}, { docker: { run_options: [] }, jobs: { controller: { consolidation_mode: true } } }];

  it.for([
    {},
    { docker: { run_options: ['x'] } },
    { active_workspace: null, gcp: { a: { b: 1 } } },
    { docker: {} },
  ])('may be the allowed ones: %j', (overrides) => {
    for (const base of BASES) {
      expect(read(base, overrides, ALLOWED)).toMatchObject(overrides);
    }
  });

  it.for<[object, string]>([
    [{ aws: {} }, 'aws'],
    [{ docker: { run_options: [], other: 1 } }, 'docker.other'],
    [{ docker: 'text' }, 'docker'],
    [{ docker: [] }, 'docker'],
    [{ active_workspace: 'a', db: null }, 'db'],
  ])('are refused if they are not allowed, whatever the base has: %j', ([overrides, key]) => {
    for (const base of BASES) {
      expect(() => read(base, overrides, ALLOWED)).toThrow(
        `${key}: not in the allowed override keys: docker.run_options, active_workspace, gcp`,
      );
    }
    expect(() => read({}, overrides, { allowedOverrideKeys: [] })).toThrow(OverrideKeyError);
    expect(read({}, overrides, { allowedOverrideKeys: null })).toEqual(overrides);
  });

  it.for<[object, string]>([
    [{ db: 'x' }, 'db'],
    [{ jobs: { controller: { consolidation_mode: null } } }, 'jobs.controller.consolidation_mode'],
    [{ jobs: { controller: { consolidation_mode: { below: 1 } } } }, 'jobs.controller.consolidation_mode'],
  ])('are refused if they are disallowed, whatever the base has: %j', ([overrides, key]) => {
    for (const base of BASES) {
      expect(() => read(base, overrides, DISALLOWED)).toThrow(
        `${key}: in the disallowed override keys: db, jobs.controller.consolidation_mode`,
      );
    }
  });

  it.for([{ jobs: null }, { jobs: { controller: 'text' } }, { jobs: [] }])(
    'are refused in place of the mapping around a disallowed one of the base: %j',
    (overrides) => {
      expect(() => read(BASES[1] ?? {}, overrides, DISALLOWED)).toThrow(OverrideKeyError);
      expect(read({}, overrides, DISALLOWED)).toEqual(overrides);
    },
  );

  it('have both lists at once, and the path in the error', () => {
    const keys = { allowedOverrideKeys: [['jobs']], disallowedOverrideKeys: [['jobs', 'controller']] };
    expect(read({}, { jobs: { bucket: 'b' } }, keys)).toEqual({ jobs: { bucket: 'b' } });
    for (const [overrides, path] of [
      [{ jobs: { controller: {} } }, ['jobs', 'controller']],
      [{ db: 1 }, ['db']],
    ] as const) {
      expect(() => read({}, overrides, keys)).toThrow(
        expect.objectContaining({ name: 'OverrideKeyError', path }),
      );
    }
  });

  it.for([[['admin_policy']], ['admin_policy'], [[]], [1]])('must be lists of names: %j', ([key]) => {
    for (const name of ['allowedOverrideKeys', 'disallowedOverrideKeys']) {
      const work = () => read({}, {}, { [name]: [key] });
      return Array.isArray(key) && key.length > 0
        ? expect(work()).toEqual({})
        : expect(work).toThrow(TypeError);
    }
  });

  it('may be hostile names', () => {
    for (const name of HOSTILE) {
      const overrides = JSON.parse(`{${JSON.stringify(name)}: 1}`) as object;
      expect(() => read({}, overrides, ALLOWED)).toThrow(OverrideKeyError);
      expect(() => read({}, overrides, { disallowedOverrideKeys: [[name]] })).toThrow(OverrideKeyError);
      expect(Object.keys(read({}, overrides, { allowedOverrideKeys: [[name]] }) as object)).toEqual([name]);
      expect(read({}, {}, { disallowedOverrideKeys: [[name]] })).toEqual({});
    }
  });
});

it('popNested removes a value and returns it, and keeps its mapping', () => {
  const config = Config.fromDict(tree());
  expect(config.popNested(['aws', 'labels', 'team'], 'default')).toBe('ml');
  expect(config.popNested(['nothing'], 'default')).toBeNull();
  expect(config.popNested(['aws', 'labels', 'team'], 'default')).toBe('default');
  expect(config.popNested(['aws', 'vpc_name', 'length'])).toBeUndefined();
  expect(config.toDict()).toEqual({
    aws: { vpc_name: 'main', labels: {} },
    kubernetes: tree().kubernetes,
  });
});

describe('the top-level keys', () => {
  it('are used as in a Map', () => {
    const config = Config.fromDict(tree());
    expect([config.size, config.isEmpty]).toEqual([3, false]);
    expect([config.has('nothing'), config.has('missing')]).toEqual([true, false]);
    expect([config.get('nothing', 1), config.get('missing'), config.get('missing', 1)]).toEqual([
      null,
      undefined,
      1,
    ]);
    expect(config.set('aws', { only: 1 }).get('aws')).toEqual({ only: 1 });
    expect([config.delete('nothing'), config.delete('nothing')]).toEqual([true, false]);
    expect([...config.keys()]).toEqual(['aws', 'kubernetes']);
    expect([...config.values()]).toEqual([{ only: 1 }, tree().kubernetes]);
    expect([...config]).toEqual([...config.entries()]);
    expect(new Map(config).get('aws')).toEqual({ only: 1 });
    config.clear();
    expect([config.size, config.isEmpty, [...config]]).toEqual([0, true, []]);
  });

  it('are those of the start of an iteration, which may change the configuration', () => {
    const config = Config.fromDict({ a: 1, b: 2 });
    for (const [key] of config) {
      config.delete(key);
      config.set(`${key}2`, 0);
    }
    expect([...config.keys()]).toEqual(['a2', 'b2']);
  });

  it('become JSON, and come from pairs and other configurations', () => {
    const config = Config.fromDict(tree());
    expect(JSON.parse(JSON.stringify({ config }))).toEqual({ config: tree() });
    expect(Config.fromEntries(config).toDict()).toEqual(tree());
    expect(Config.fromEntries(new Map([['a', 1]])).toDict()).toEqual({ a: 1 });
    const copy = Config.fromDict(config);
    copy.clear();
    expect(config.toDict()).toEqual(tree());
    expect(config.getNested(['aws'], undefined, Config.fromDict({ aws: { vpc_name: 'b' } }))).toMatchObject({
      vpc_name: 'b',
    });
  });
});

it.for(['aws', '', null, undefined, 1, [1], [null], {}])(
  'a path is refused as %j, which would find nothing',
  (path) => {
    const config = Config.fromDict(tree());
    const keys = path as unknown as string[];
    for (const work of [
      () => config.getNested(keys),
      () => config.popNested(keys),
      () => config.setNested(keys, {}),
      () => config.assign(keys, {}),
      () => config.unset(keys),
    ]) {
      expect(work).toThrow(TypeError);
    }
    expect(config.toDict()).toEqual(tree());
  },
);

describe('setNested', () => {
  it('creates mappings along the path, replacing other values', () => {
    const config = Config.fromDict(tree());
    config.setNested(['gcp', 'vpc', 'name'], 'a');
    config.setNested(['nothing', 'now'], 1);
    config.setNested(['aws', 'vpc_name', 'deep'], true);
    expect(config.toDict()).toEqual({
      ...tree(),
      aws: { vpc_name: { deep: true }, labels: { team: 'ml' } },
      nothing: { now: 1 },
      gcp: { vpc: { name: 'a' } },
    });
  });

  it('changes nothing if it cannot merge', () => {
    const config = Config.fromDict(tree());
    expect(() => config.setNested(['kubernetes', 'pod_config', 'spec'], [1])).toThrow(MergeError);
    expect(config.toDict()).toEqual(tree());
  });

  it('merges a whole configuration at an empty path', () => {
    const config = Config.fromDict({ a: 1, b: { c: 1 } });
    config.setNested([], { b: { d: 2 } });
    expect(config.toDict()).toEqual({ a: 1, b: { c: 1, d: 2 } });
    for (const value of [1, null, ['a'], 'text']) {
      expect(() => config.setNested([], value)).toThrow(TypeError);
    }
  });
});

describe('assign', () => {
  it('replaces any value', () => {
    const config = Config.fromDict(tree());
    config.assign(['aws', 'labels'], { owner: 'lin' });
    config.assign(['kubernetes', 'pod_config', 'spec', 'tolerations'], []);
    config.assign(['nothing', 'now', 'here'], 1);
    expect(config.toDict()).toEqual({
      aws: { vpc_name: 'main', labels: { owner: 'lin' } },
      kubernetes: { provision_timeout: 600, pod_config: { spec: { tolerations: [] } } },
      nothing: { now: { here: 1 } },
    });
  });

  it('replaces the whole configuration at an empty path', () => {
    const config = Config.fromDict(tree());
    config.assign([], { a: 1 });
    expect(config.toDict()).toEqual({ a: 1 });
    for (const value of [1, null, ['a'], 'text']) {
      expect(() => config.assign([], value)).toThrow(TypeError);
    }
  });
});

describe('unset', () => {
  it('removes a key, and keeps its mapping', () => {
    const config = Config.fromDict(tree());
    expect(config.unset(['aws', 'labels', 'team'])).toBe(true);
    expect(config.unset(['nothing'])).toBe(true);
    expect(config.toDict()).toEqual({
      aws: { vpc_name: 'main', labels: {} },
      kubernetes: tree().kubernetes,
    });
  });

  it.for([[], ['missing'], ['aws', 'missing'], ['nothing', 'x'], ['aws', 'vpc_name', 'length']])(
    'returns false if nothing was there: %j',
    (path) => {
      const config = Config.fromDict(tree());
      expect(config.unset(path)).toBe(false);
      expect(config.toDict()).toEqual(tree());
    },
  );
});

it.for(HOSTILE)('the name %j is an ordinary name', (name) => {
  const config = Config.fromDict({});
  config.setNested([name, name], 1);
  config.assign([name, 'other'], 2);
  expect(Object.entries(config.toDict())).toHaveLength(1);
  expect(config.getNested([name, name])).toBe(1);
  expect(config.getNested([name, 'other'])).toBe(2);
  expect(({} as Record<string, unknown>).other).toBeUndefined();
  expect(config.unset([name, name])).toBe(true);
  expect(config.getNested([name, name], 'gone')).toBe('gone');
  expect(config.unset([name, name])).toBe(false);
  expect(config.unset([name])).toBe(true);
  expect(config.toDict()).toEqual({});
});

describe('a configuration', () => {
  it('is empty if made from null or undefined', () => {
    expect(Config.fromDict(null).toDict()).toEqual({});
    expect(Config.fromDict(undefined).toDict()).toEqual({});
  });

  it('returns copies', () => {
    const config = Config.fromDict(tree());
    for (const path of [[], ['aws'], ['aws', 'labels']]) {
      Object.assign(config.getNested(path) as object, { changed: true });
    }
    (config.getNested(['kubernetes', 'pod_config', 'spec', 'tolerations']) as unknown[]).push('changed');
    Object.assign(config.toDict(), { changed: true });
    expect(config.toDict()).toEqual(tree());
  });

  it('copies its arguments', () => {
    const config = Config.fromDict({});
    const value = { list: [1] };
    config.setNested(['set'], value);
    config.assign(['assigned'], value);
    value.list.push(2);
    expect(config.toDict()).toEqual({ set: { list: [1] }, assigned: { list: [1] } });
  });

  it.for([
    ['a function', () => 1],
    ['a date', new Date(0)],
  ] as const)('rejects %s', ([, value]) => {
    const config = Config.fromDict(tree());
    expect(() => Config.fromDict({ value })).toThrow(TypeError);
    expect(() => config.setNested(['value'], value)).toThrow(TypeError);
    expect(() => config.assign(['value'], { value })).toThrow(TypeError);
    expect(config.toDict()).toEqual(tree());
  });

  it.for([[[]], ['text'], [1], [true], [new Map([['a', 1]])]])('is not made from %j', ([value]) => {
    expect(() => Config.fromDict(value as never)).toThrow(TypeError);
    expect(() => Config.fromDict({}).getNested([], undefined, value as never)).toThrow(TypeError);
  });

  it('rejects cycles', () => {
    const circle: Record<string, unknown> = {};
    circle.circle = circle;
    expect(() => Config.fromDict(circle)).toThrow(TypeError);
    expect(() => Config.fromDict({}).setNested(['a'], circle)).toThrow(TypeError);
  });
});
