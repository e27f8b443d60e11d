import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPath, type Mapping, valueAt } from '../../src/base/yaml/tree.ts';
import { type MergeSchema, merge, Provenance } from '../../src/config/merge.ts';

const schema: MergeSchema = {
  list: (name) =>
    name === 'joined'
      ? { kind: 'append' }
      : name === 'named'
        ? { kind: 'match', key: 'name', unnamed: 'append' }
        : { kind: 'replace' },
  member: () => schema,
};

/** `path = value: source > overridden source > …` of each leaf. */
function explained(sources: Readonly<Record<string, Mapping>>): string[] {
  const provenance = new Provenance<string>();
  let tree: Mapping = {};
  for (const [source, over] of Object.entries(sources)) {
    tree = merge(tree, over, schema, (path, _, value) => provenance.placed(path, value, () => source));
  }
  return provenance
    .leaves(tree)
    .map(
      ({ path, value, source, beats }) =>
        `${formatPath(path)} = ${JSON.stringify(value)}: ${[source, ...beats].join(' > ')}`,
    );
}

describe('every leaf', () => {
  it('has its source and those that it overrides, the last one first', () => {
    expect(
      explained({
        server: { a: 1, b: 1, c: { d: 1 } },
        user: { a: 2, c: { e: 2 } },
        project: { a: 3, c: { d: 3 } },
      }),
    ).toEqual([
      'a = 3: project > user > server',
      'b = 1: server',
      'c.d = 3: project > server',
      'c.e = 2: user',
    ]);
  });

  it('has a source when it is null, an empty mapping or an empty list', () => {
    expect(explained({ server: { a: null, b: {}, c: [] } })).toEqual([
      'a = null: server',
      'b = {}: server',
      'c = []: server',
    ]);
  });

  it('is a whole list when one source has set it', () => {
    expect(
      explained({ server: { list: [1, { a: 1 }], joined: [1, 2] }, user: { list: [2, { b: 1 }] } }),
    ).toEqual(['list = [2,{"b":1}]: user > server', 'joined = [1,2]: server']);
  });

  it('is an item of a list that several sources have joined', () => {
    expect(
      explained({ server: { joined: [1] }, user: { joined: [2, { a: 1 }] }, cli: { joined: [1] } }),
    ).toEqual([
      'joined[0] = 1: server',
      'joined[1] = 2: user',
      'joined[2].a = 1: user',
      'joined[3] = 1: cli',
    ]);
  });

  it('is a member of an item that another source has merged into', () => {
    expect(
      explained({
        server: { named: [{ name: 'a', x: 1 }, { name: 'b' }] },
        user: { named: [{ name: 'a', y: 2 }] },
      }),
    ).toEqual([
      'named[0].name = "a": user > server',
      'named[0].x = 1: server',
      'named[0].y = 2: user',
      'named[1].name = "b": server',
    ]);
  });

  it('overrides everything below it when it replaces a mapping', () => {
    expect(explained({ server: { a: { b: 1, c: 1 } }, user: { a: { c: 2 } }, cli: { a: 'x' } })).toEqual([
      'a = "x": cli > server > user',
    ]);
  });

  it('overrides the value that its mapping replaces', () => {
    expect(explained({ server: { a: { b: 1 } }, user: { a: 'x' }, cli: { a: { b: 2, c: 3 } } })).toEqual([
      'a.b = 2: cli > user > server',
      'a.c = 3: cli > user > server',
    ]);
  });

  it('overrides a mapping before the value that the mapping replaced', () => {
    expect(explained({ server: { a: 'x' }, user: { a: { b: 1 } }, cli: { a: 'y' } })).toEqual([
      'a = "y": cli > user > server',
    ]);
  });

  it('may have the name of an inherited member', () => {
    expect(
      explained({
        server: JSON.parse('{"__proto__": {"a": 1}, "constructor": 1}'),
        user: JSON.parse('{"__proto__": {"a": 2}}'),
      }),
    ).toEqual(['__proto__.a = 2: user > server', 'constructor = 1: server']);
  });

  it('has the source of its part of the value', () => {
    const provenance = new Provenance<string>();
    const tree = { a: { b: 1, c: [1, 2] } };
    provenance.placed(['a'], tree.a, (below) => formatPath(['file', ...below]));
    expect(provenance.leaves(tree).map(({ source }) => source)).toEqual(['file.b', 'file.c[0]', 'file.c[1]']);
  });
});

describe('for any sources', () => {
  const name = fc.constantFrom('a', 'b', 'joined', 'named', 'name', '__proto__', '1');
  const { mapping } = fc.letrec<{ value: unknown; mapping: Mapping }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom<unknown>(null, 1, 2, 'x'),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('mapping'),
    ),
    mapping: fc
      .array(fc.tuple(name, tie('value')), { maxLength: 4 })
      .map((members) => Object.fromEntries(members)),
  }));

  it('each leaf has the value of the tree and a source, and overrides each source once', () => {
    fc.assert(
      fc.property(fc.array(mapping, { minLength: 1, maxLength: 4 }), (sources) => {
        const provenance = new Provenance<number>();
        let tree: Mapping = {};
        for (const [source, over] of sources.entries()) {
          tree = merge(tree, over, schema, (path, _, value) => provenance.placed(path, value, () => source));
        }
        const leaves = provenance.leaves(tree);
        for (const { path, value, source, beats } of leaves) {
          expect(valueAt(tree, path)).toBe(value);
          const all = [source, ...beats];
          // A later one can't be beaten by an earlier one.
          expect(all.every((other) => other <= source)).toBe(true);
          expect(new Set(beats).size).toBe(beats.length);
        }
        expect(leaves.length > 0).toBe(Object.keys(tree).length > 0);
      }),
    );
  });
});
