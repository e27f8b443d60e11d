import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isMapping, type Mapping, member, type Path, setMember, valueAt } from '../../src/base/yaml/tree.ts';
import { generalRules, type ListRule, type MergeSchema, merge } from '../../src/config/merge.ts';
import { deepFreeze } from '../support/requests.ts';

const RULES: readonly ListRule[] = [
  { kind: 'replace' },
  { kind: 'append' },
  { kind: 'match', key: 'name', unnamed: 'append' },
  { kind: 'match', key: 'name', unnamed: 'first' },
];
const name = fc.constantFrom(
  ...['a', 'b', 'bb', 'ccc', 'name', '__proto__', 'constructor', 'toString', '1', '0', ''],
);
/** The rule of a name follows from its length. */
const mixedRules: MergeSchema = {
  list: (key) => RULES[key.length % RULES.length] ?? { kind: 'replace' },
  member: () => mixedRules,
};
const rules = fc.constantFrom(generalRules, mixedRules);

const { mapping } = fc.letrec<{ value: unknown; mapping: Mapping }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom<unknown>(null, 1, 2, 'x', true),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('mapping'),
  ),
  mapping: fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((members) => {
    const result: Record<string, unknown> = {};
    for (const [key, value] of members) {
      setMember(result, key, value);
    }
    return deepFreeze(result);
  }),
}));

/** Whether the result has every name of the base, except below a value of the overlay that is not a mapping. */
function isKept(base: unknown, over: unknown, result: unknown): boolean {
  if (!isMapping(base) || (over !== undefined && !isMapping(over))) {
    return true;
  }
  return Object.keys(base).every(
    (key) =>
      isMapping(result) &&
      Object.hasOwn(result, key) &&
      isKept(member(base, key), over && member(over, key), member(result, key)),
  );
}

describe('for any configurations', () => {
  it('the result has every key of the base', () => {
    fc.assert(
      fc.property(mapping, mapping, rules, (base, over, schema) => {
        expect(isKept(base, over, merge(base, over, schema))).toBe(true);
      }),
    );
  });

  it('an empty overlay changes nothing, and an empty base adds nothing', () => {
    fc.assert(
      fc.property(mapping, rules, (tree, schema) => {
        expect(merge(tree, {}, schema)).toBe(tree);
        expect(merge({}, tree, schema)).toEqual(tree);
      }),
    );
  });

  it('merging the same again changes nothing when lists are replaced', () => {
    fc.assert(
      fc.property(mapping, mapping, (base, over) => {
        const once = merge(base, over);
        expect(merge(once, over)).toEqual(once);
      }),
    );
  });

  it('the order in which pairs are merged does not matter', () => {
    fc.assert(
      fc.property(fc.array(mapping, { maxLength: 5 }), (sources) => {
        const folded = sources.reduce((lower, over) => merge(lower, over), {});
        const fromTheTop = sources.reduceRight((upper, lower) => merge(lower, upper), {});
        // Only a mapping over a text and under a mapping makes a difference.
        if (!hasKindChanges(sources)) {
          expect(fromTheTop).toEqual(folded);
        }
        expect(sources.slice(0, -1).reduce((lower, over) => merge(lower, over), {})).toSatisfy((lower) => {
          expect(merge(lower as Mapping, sources.at(-1) ?? {})).toEqual(folded);
          return true;
        });
      }),
    );
  });

  it('no input and no prototype is changed', () => {
    // The inputs are frozen all the way down: a change would throw.
    fc.assert(
      fc.property(mapping, mapping, rules, (base, over, schema) => {
        const before = JSON.stringify([base, over]);
        const result = merge(base, over, schema);
        expect(JSON.stringify([base, over])).toBe(before);
        expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
    );
  });

  it('the placed values are those that the result has from the overlay', () => {
    fc.assert(
      fc.property(mapping, mapping, rules, (base, over, schema) => {
        const told: [Path, Path, unknown][] = [];
        const result = merge(base, over, schema, (path, from, value) => told.push([path, from, value]));
        for (const [, from, value] of told) {
          expect(valueAt(over, from)).toBe(value);
        }
        // Later values replace earlier ones at the same path.
        let rebuilt: unknown = structuredClone(base);
        for (const [path, , value] of told) {
          rebuilt = withValue(rebuilt, path, value);
        }
        expect(rebuilt).toEqual(result);
      }),
    );
  });
});

/** A copy of the tree with a value at a path, of which all but the last step exists. */
function withValue(tree: unknown, [step, ...rest]: Path, value: unknown): unknown {
  if (step === undefined) {
    return value;
  }
  const below = withValue(valueAt(tree, [step]), rest, value);
  if (Array.isArray(tree)) {
    const copy = [...tree];
    copy[Number(step)] = below;
    return copy;
  }
  const copy: Record<string, unknown> = { ...(tree as Mapping) };
  setMember(copy, String(step), below);
  return copy;
}

/** Whether a name is a mapping in one source and something else in another. */
function hasKindChanges(sources: readonly unknown[]): boolean {
  const present = sources.filter((source) => source !== undefined);
  if (!present.every(isMapping)) {
    return present.some(isMapping);
  }
  const names = new Set(present.flatMap((source) => Object.keys(source)));
  return [...names].some((key) => hasKindChanges(present.map((source) => member(source, key))));
}
