import { describe, expect, it } from 'vitest';
import { MergeError } from '../../src/config/merge.ts';
import { Config } from '../../src/skypilot/config.ts';

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
    ['nothing', 'x'],
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

  it.for(HOSTILE)('finds %j only if it exists', (name) => {
    expect(Config.fromDict(tree()).getNested([name], 'default')).toBe('default');
    expect(Config.fromDict(tree()).getNested(['aws', name], 'default')).toBe('default');
    const parsed = JSON.parse(`{${JSON.stringify(name)}: {"x": 1}}`) as Record<string, unknown>;
    expect(Config.fromDict(parsed).getNested([name, 'x'])).toBe(1);
  });
});

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

  it('merges a mapping into the existing one', () => {
    const config = Config.fromDict(tree());
    config.setNested(['aws', 'labels'], { owner: 'lin' });
    config.setNested(['aws', 'labels'], {});
    expect(config.getNested(['aws', 'labels'])).toEqual({ team: 'ml', owner: 'lin' });
  });

  it('replaces a list, and appends to one of a pod', () => {
    const config = Config.fromDict({ ...tree(), allowed_clouds: ['aws'] });
    config.setNested(['allowed_clouds'], ['gcp']);
    config.setNested(['kubernetes', 'pod_config', 'spec', 'tolerations'], [{ key: 'spot' }]);
    expect(config.getNested(['allowed_clouds'])).toEqual(['gcp']);
    expect(config.getNested(['kubernetes', 'pod_config', 'spec', 'tolerations'])).toEqual([
      { key: 'gpu' },
      { key: 'spot' },
    ]);
  });

  it('changes nothing if it cannot merge', () => {
    const config = Config.fromDict(tree());
    expect(() => config.setNested(['kubernetes', 'pod_config', 'spec'], [1])).toThrow(MergeError);
    expect(config.toDict()).toEqual(tree());
  });

  it('sets a null, which removes nothing', () => {
    const config = Config.fromDict(tree());
    config.setNested(['aws', 'vpc_name'], null);
    expect(config.getNested(['aws', 'vpc_name'], 'default')).toBeNull();
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

  it.for([
    [],
    ['missing'],
    ['aws', 'missing'],
    ['missing', 'x'],
    ['nothing', 'x'],
    ['aws', 'vpc_name', 'length'],
  ])('returns false if nothing was there: %j', (path) => {
    const config = Config.fromDict(tree());
    expect(config.unset(path)).toBe(false);
    expect(config.toDict()).toEqual(tree());
  });
});

describe.for(HOSTILE)('the name %j', (name) => {
  it('is an ordinary name', () => {
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
});

describe('a configuration', () => {
  it('is empty if made from null or undefined', () => {
    expect(Config.fromDict(null).toDict()).toEqual({});
    expect(Config.fromDict(undefined).toDict()).toEqual({});
  });

  it('is a copy of its source', () => {
    const from = tree();
    const config = Config.fromDict(from);
    from.aws.labels.team = 'other';
    expect(config.toDict()).toEqual(tree());
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

  it('keeps integers of any size', () => {
    const config = Config.fromDict({ id: 2n ** 70n });
    expect(config.getNested(['id'])).toBe(2n ** 70n);
  });

  it.for([
    ['a function', () => 1],
    ['a date', new Date(0)],
    ['a Map', new Map()],
    ['a symbol', Symbol('x')],
  ] as const)('rejects %s', ([, value]) => {
    const config = Config.fromDict(tree());
    expect(() => Config.fromDict({ value })).toThrow(TypeError);
    expect(() => config.setNested(['value'], value)).toThrow(TypeError);
    expect(() => config.assign(['value'], { value })).toThrow(TypeError);
    expect(config.toDict()).toEqual(tree());
  });

  it('rejects cycles', () => {
    const circle: Record<string, unknown> = {};
    circle.circle = circle;
    expect(() => Config.fromDict(circle)).toThrow(TypeError);
    expect(() => Config.fromDict({}).setNested(['a'], circle)).toThrow(TypeError);
  });
});
