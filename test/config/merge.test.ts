import { describe, expect, it } from 'vitest';
import type { Mapping } from '../../src/base/yaml/tree.ts';
import { generalRules, type ListRule, type MergeSchema, merge } from '../../src/config/merge.ts';
import { deepFreeze } from '../support/requests.ts';

const RULES: Readonly<Record<string, ListRule>> = {
  appended: { kind: 'append' },
  named: { kind: 'match', key: 'name', unnamed: 'append' },
  containers: { kind: 'match', key: 'name', unnamed: 'first' },
};
const schema: MergeSchema = {
  list: (name) => (Object.hasOwn(RULES, name) ? RULES[name] : undefined) ?? { kind: 'replace' },
  member: () => schema,
};
const strict: MergeSchema = { ...schema, member: () => strict, strictKinds: true };

function merged(base: Mapping, over: Mapping, rules: MergeSchema = schema): Mapping {
  return merge(deepFreeze(base), deepFreeze(over), rules);
}

describe('by the general rules', () => {
  it.each([
    ['mappings merge', { a: { b: 1, c: 2 } }, { a: { c: 3, d: 4 } }, { a: { b: 1, c: 3, d: 4 } }],
    ['a list replaces a list', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['null replaces', { a: { b: 1 } }, { a: null }, { a: null }],
    ['a mapping replaces null', { a: null }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['a text replaces a mapping', { a: { b: 1 } }, { a: 'x' }, { a: 'x' }],
    ['an empty mapping changes nothing', { a: { b: 1 } }, { a: {} }, { a: { b: 1 } }],
    ['an empty mapping replaces a text', { a: 'x' }, { a: {} }, { a: {} }],
    ['a list replaces a mapping', { a: { b: 1 } }, { a: [1] }, { a: [1] }],
    ['a mapping replaces a list', { a: [1] }, { a: { b: 1 } }, { a: { b: 1 } }],
  ])('%s', (_, base, over, expected) => {
    expect(merged(base, over, generalRules)).toEqual(expected);
  });

  it('the names of the base come first, in its order', () => {
    expect(Object.keys(merged({ b: 1, a: 2 }, { c: 3, a: 4 }))).toEqual(['b', 'a', 'c']);
  });

  it('unchanged parts are shared, not copied', () => {
    const base = { kept: { x: 1 }, both: { y: [1] } };
    const over = { new: { z: 1 }, both: { w: 1 } };
    const result = merged(base, over) as { kept: unknown; new: unknown; both: { y: unknown } };
    expect(result.kept).toBe(base.kept);
    expect(result.new).toBe(over.new);
    expect(result.both.y).toBe(base.both.y);
  });

  it('a name may be that of an inherited member', () => {
    const base = JSON.parse('{"__proto__": {"a": 1}, "10": 1, "constructor": {"b": 1}}') as Mapping;
    const over = JSON.parse(
      '{"__proto__": {"c": 2}, "toString": {"d": 1}, "9": 2, "constructor": 3}',
    ) as Mapping;
    const result = merged(base, over);
    expect(JSON.parse(JSON.stringify(result))).toEqual(
      JSON.parse('{"__proto__": {"a": 1, "c": 2}, "toString": {"d": 1}, "9": 2, "10": 1, "constructor": 3}'),
    );
    expect(Object.keys(result).toSorted()).toEqual(['10', '9', '__proto__', 'constructor', 'toString']);
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>).c).toBeUndefined();
  });
});

describe('an item of a list merged over a list', () => {
  const a = { name: 'a' };
  it.each([
    ['is appended, with duplicates', 'appended', [1, { a: 1 }], [1, { a: 2 }], [1, { a: 1 }, 1, { a: 2 }]],
    [
      'is merged into the one with its name, or appended',
      'named',
      [{ name: 'a', x: 1 }, { name: 'b' }],
      [{ name: 'b', y: 2 }, { name: 'c' }, { name: 'a', x: 2 }],
      [{ name: 'a', x: 2 }, { name: 'b', y: 2 }, { name: 'c' }],
    ],
    ['without a name is appended', 'named', [a], [{ x: 1 }], [a, { x: 1 }]],
    ['without a name is merged into the first', 'containers', [a], [{ x: 1 }], [{ name: 'a', x: 1 }]],
    ['without a name becomes the first of none', 'containers', [], [{ x: 1 }], [{ x: 1 }]],
    ['that is not a mapping is appended', 'containers', [a], ['x'], [a, 'x']],
    [
      'with the name 1 is not that of the text 1',
      'named',
      [{ name: 1 }],
      [{ name: '1' }],
      [{ name: 1 }, { name: '1' }],
    ],
    [
      'whose name is null has none',
      'named',
      [{ name: null }],
      [{ name: null }],
      [{ name: null }, { name: null }],
    ],
    ['whose name is null is merged into the first', 'containers', [a], [{ name: null }], [{ name: null }]],
    ['has no inherited name', 'named', [{}], [{ name: undefined }], [{}, { name: undefined }]],
    ['replaces all of another list', 'other', [a], [{ name: 'a', x: 1 }], [{ name: 'a', x: 1 }]],
  ])('%s', (_, name, base, over, expected) => {
    expect(merged({ [name]: base }, { [name]: over })).toEqual({ [name]: expected });
  });

  it('follows the rules of its level', () => {
    const appending: MergeSchema = { list: () => ({ kind: 'append' }), member: () => appending };
    const rules: MergeSchema = {
      list: () => ({ kind: 'replace' }),
      member: (name) => (name === 'pod_config' ? appending : generalRules),
    };
    expect(
      merged(
        { pod_config: { a: [1] }, x: { a: [1] }, a: [1] },
        { pod_config: { a: [2] }, x: { a: [2] }, a: [2] },
        rules,
      ),
    ).toEqual({
      pod_config: { a: [1, 2] },
      x: { a: [2] },
      a: [2],
    });
  });

  it('merges lists in the items of lists', () => {
    const base = { containers: [{ name: 'a', appended: [1], named: [{ name: 'x', v: 1 }] }] };
    const over = { containers: [{ appended: [2], named: [{ name: 'x', w: 2 }] }] };
    expect(merged(base, over)).toEqual({
      containers: [{ name: 'a', appended: [1, 2], named: [{ name: 'x', v: 1, w: 2 }] }],
    });
  });
});

describe('a merge fails for', () => {
  function mistake(base: Mapping, over: Mapping, rules: MergeSchema): unknown {
    try {
      return merged(base, over, rules);
    } catch (thrown) {
      return thrown;
    }
  }

  const KINDS = { list: ['s3cret'], mapping: { s: 's3cret' }, 'single value': 's3cret' };

  it.each([
    ['list', { x: 1 }, 'a mapping'],
    ['list', false, 'a single value'],
    ['list', null, 'null'],
    ['mapping', [1], 'a list'],
    ['mapping', null, 'null'],
    ['single value', [1], 'a list'],
    ['single value', { x: 1 }, 'a mapping'],
  ] as const)('a %s over %j, when only its kind may override a value', (kind, before, overridden) => {
    const over = { a: { named: KINDS[kind] } };
    expect(mistake({ a: { named: before } }, over, strict)).toMatchObject({
      name: 'MergeError',
      path: ['a', 'named'],
      message: `a.named: expected no ${kind}, because the value that it overrides is ${overridden}`,
    });
    expect(mistake({ a: { named: before } }, over, schema)).toEqual(over);
  });

  it.each([[[1]], [{ x: 1 }], ['text'], [null]])(
    'neither null over %j nor a list that replaces it',
    (before) => {
      expect(merged({ a: before }, { a: null }, strict)).toEqual({ a: null });
      expect(merged({ other: before }, { other: [2] }, strict)).toEqual({ other: [2] });
    },
  );

  it('nothing over nothing', () => {
    expect(merged({ n: 1 }, { named: [2], m: {}, n: 2 }, strict)).toEqual({ named: [2], m: {}, n: 2 });
    expect(mistake({}, { toString: [] }, strict)).toEqual({ toString: [] });
  });
});
