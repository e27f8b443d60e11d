import { describe, expect, it } from 'vitest';
import { keysOutside, withoutKeys } from '../../../src/skypilot/config/permitted-keys.ts';
import { deepFreeze } from '../../config/helpers.ts';

describe('a configuration without the keys that its source may not set', () => {
  const keys = [['admin_policy'], ['jobs', 'controller', 'consolidation_mode'], ['db']];

  it('has lost them and the mappings that became empty, and lists them', () => {
    const tree = deepFreeze({
      admin_policy: 'x',
      jobs: { controller: { consolidation_mode: true } },
      kubernetes: { admin_policy: 1 },
    });
    expect(withoutKeys(tree, keys)).toEqual({
      tree: { kubernetes: { admin_policy: 1 } },
      taken: [['admin_policy'], ['jobs', 'controller', 'consolidation_mode']],
    });
  });

  it('keeps all other members, and mappings that were empty before', () => {
    const tree = deepFreeze({
      jobs: { controller: { consolidation_mode: true, x: 1 }, y: {} },
      db: { a: 1 },
    });
    expect(withoutKeys(tree, keys).tree).toEqual({ jobs: { controller: { x: 1 }, y: {} } });
  });

  it.each([null, false, 0, '', [], {}])('removes a key whatever its value: %j', (value) => {
    expect(withoutKeys({ db: value }, keys)).toEqual({ tree: {}, taken: [['db']] });
  });

  it('is the same object when it has none of them', () => {
    const tree = deepFreeze({ jobs: { controller: 'text' }, a: [{ db: 1 }] });
    const result = withoutKeys(tree, keys);
    expect(result.taken).toEqual([]);
    expect(result.tree).toBe(tree);
  });

  it('removes a key and one below it', () => {
    expect(withoutKeys({ a: { b: 1, c: 2 } }, [['a', 'b'], ['a']])).toEqual({
      tree: {},
      taken: [['a', 'b'], ['a']],
    });
    expect(withoutKeys({ a: { b: 1 }, c: 1 }, [['a', 'b'], ['a']]).tree).toEqual({ c: 1 });
  });

  it('removes only own members, whatever their names', () => {
    expect(withoutKeys({}, [['toString'], ['__proto__', 'constructor']]).taken).toEqual([]);
    const tree = JSON.parse('{"__proto__": {"a": 1, "b": 2}, "constructor": 3}');
    const { tree: rest, taken } = withoutKeys(tree, [['__proto__', 'a'], ['constructor']]);
    expect(JSON.stringify(rest)).toBe('{"__proto__":{"b":2}}');
    expect(taken).toHaveLength(2);
  });
});

describe('the keys outside of those that may be set', () => {
  const allowed = [
    ['docker', 'run_options'],
    ['kubernetes', 'pod_config'],
    ['kubernetes', 'dws'],
    ['active_workspace'],
  ];

  it.each([
    [{}, []],
    [{ active_workspace: 'w', kubernetes: { pod_config: { any: { thing: [1] } }, dws: null } }, []],
    [{ kubernetes: {} }, []],
    [{ admin_policy: 'x' }, [['admin_policy']]],
    [
      { kubernetes: { ports: 1, pod_config: 2, networking: { a: 1 } } },
      [
        ['kubernetes', 'ports'],
        ['kubernetes', 'networking'],
      ],
    ],
    [{ pod_config: 1, run_options: 1 }, [['pod_config'], ['run_options']]],
    [{ gcp: { vpc_name: { deep: 1 } } }, [['gcp']]],
    [JSON.parse('{"__proto__": 1, "toString": {"a": 1}}'), [['__proto__'], ['toString']]],
  ])('of %j are %j', (tree, paths) => {
    expect(keysOutside(deepFreeze(tree), allowed)).toEqual(paths);
  });

  it.each(['x', 1, null, false, ['run_options'], [{ run_options: 1 }]])(
    'include a value that replaces a mapping in which only some keys may be set: %j',
    (value) => {
      expect(keysOutside({ docker: value }, allowed)).toEqual([['docker']]);
    },
  );

  it('are none when a key and one below it are allowed', () => {
    expect(keysOutside({ a: { b: 1, c: 2 } }, [['a', 'b'], ['a']])).toEqual([]);
    expect(keysOutside({ a: { b: 1, c: 2 } }, [['a', 'b']])).toEqual([['a', 'c']]);
  });
});
