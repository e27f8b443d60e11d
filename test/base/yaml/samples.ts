/** Texts, trees and changes that are easy to write wrongly in YAML. */
import fc from 'fast-check';
import { setMember } from '../../../src/base/yaml/tree.ts';
import { ANY_CHARACTER } from '../../support/characters.ts';

/** Texts that YAML reads as another type, or that look like its syntax. */
export const ODD_TEXTS = [
  ...['yes', 'no', 'On', 'y', 'n', 'true', 'tRUE', 'null', '~', '=', '<<', '', '.inf', '.nAn', 'Infinity'],
  ...['0', '012', '08', '1:30', '1_000', '0x1F', '0b1', '0o14', '1e3', '1.5e+3', '.5', '1.', '-0', '+1'],
  ...['1__'],
  ...['190:20:30.15', '2026-11-21', '2026-11-21 10:00:00', '8080', '9'.repeat(40)],
  ...['- a', '-', '? a', '?', '?a', ': a', ':', 'a: b', 'a:', '#', 'a #b', 'a#b', '&a', '*a', '!a'],
  ...['!!str a'],
  ...['| a', '> a', '%a', '@a', '`a`', '[', '{', '}', ']', 'a, b', ',', "'a'", '"a"', '"', "'", '\\'],
  ...['a\\nb'],
  ...['...', '---', '--- a', 'a\n---\nb', 'a\n...\nb', 'a\n# b', '# a\nb', 'a: |\n  b\n'],
  ...[' a', 'a ', 'a\t', '\ta', 'a\nb', 'a\nb\n', 'a\n\nb\n\n', '\n', ' a\nb', 'a \nb', 'a\n b\n'],
  ...['a\n  \nb'],
  ...['a\r\nb', '\r', 'a\n\tb', '\0', 'a\u0007b', '\u007f', 'a\u0085b', 'a\u2028b', 'a\u2029\nb', '\u00a0'],
  ...['\ufeffa', 'a\ufeff', '\ufffe', '\ud800', '\udc00a', 'é😀', '\u{10ffff}', 'x\u200by'],
  ...['x'.repeat(300), `${'a '.repeat(200)}b`, `a\n${'b'.repeat(1100)}`],
  ...['__proto__', 'constructor', 'toString'],
];

const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...ODD_TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: ANY_CHARACTER, maxLength: 6 }) },
);
/** PyYAML reads no longer names in a mapping between brackets. */
const name = text.filter((one) => one.length < 1000);
const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }),
  fc.constantFrom(1e21, -0, 5e-324, 1e-7, 0.1, 2 ** 53, 123456789012345680000),
);

/** What a policy may set. */
export const values: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.oneof({ weight: 3, arbitrary: text }, number, fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((members) => {
      const mapping: Record<string, unknown> = {};
      for (const [name, value] of members) {
        setMember(mapping, name, value);
      }
      return mapping;
    }),
  ),
})).value;

interface Change {
  readonly place: number;
  readonly kind: 'replace' | 'remove' | 'insert' | 'add below' | 'reverse';
  readonly name: string;
  readonly value: unknown;
}

export const changes: fc.Arbitrary<readonly Change[]> = fc.array(
  fc.record({
    place: fc.nat(),
    kind: fc.constantFrom('replace', 'remove', 'insert', 'add below', 'reverse'),
    name,
    value: values,
  }),
  { minLength: 1, maxLength: 4 },
);

type Parent = unknown[] | Record<string, unknown>;

/** A copy of the tree, changed at some of its places. */
export function changed(tree: unknown, all: readonly Change[]): unknown {
  const root = { tree: structuredClone(tree) };
  for (const change of all) {
    const places = placesIn(root);
    const [parent, step] = places[change.place % places.length] ?? [root, 'tree'];
    apply(change, parent, step);
  }
  return root.tree;
}

function placesIn(parent: Parent): [Parent, string][] {
  return Object.entries(parent).flatMap(([step, value]) => [
    [parent, step],
    ...(typeof value === 'object' && value !== null ? placesIn(value as Parent) : []),
  ]);
}

function apply({ kind, name, value }: Change, parent: Parent, step: string): void {
  const copy = structuredClone(value);
  const here: unknown = Array.isArray(parent) ? parent[Number(step)] : parent[step];
  const isRoot = Object.hasOwn(parent, 'tree') && step === 'tree';
  if (kind === 'add below' && typeof here === 'object' && here !== null) {
    add(here as Parent, name, copy);
  } else if (kind === 'replace' || isRoot) {
    set(parent, step, copy);
  } else if (kind === 'insert') {
    add(parent, name, copy, Number(step));
  } else if (kind === 'reverse' && Array.isArray(parent)) {
    parent.reverse();
  } else if (Array.isArray(parent)) {
    parent.splice(Number(step), 1);
  } else {
    delete parent[step];
  }
}

function set(parent: Parent, step: string, value: unknown): void {
  if (Array.isArray(parent)) {
    parent[Number(step)] = value;
  } else {
    setMember(parent, step, value);
  }
}

function add(parent: Parent, name: string, value: unknown, index = 0): void {
  if (Array.isArray(parent)) {
    parent.splice(index, 0, value);
  } else {
    setMember(parent, name, value);
  }
}

/** The styles that people write in. */
export const HAND_WRITTEN = [
  ...['', '# only\n# comments\n', 'null', '- a\n- b', '"quoted"', '|\n a\n b\n'],
  ...['a: [1, 2.0, {b: 012, c: 2026-11-21}, yes]\nb: {x: 1, y: [a, "b"], z: {}}\n'],
  ...[
    'a: |\n  x\n  y\nb: |-\n  x\n\n  y\nc: |+\n  x\n\n\nd: >\n  f\n  g\n\n  h\n   i\n  j\ne: >-\n  x\n\nf: >+\n  x\n\n\ng: 1\n',
  ],
  ...["a: \"x\n  y\n\n  z\\n\\t\\\n  w\"\nb: 'x\n  y\n\n  it''s'\nc: plain\n  more\n\n  lines\n"],
  ...[
    '# c0\n\n# c1\na: 1 # c2\n# c3\nb: # c4\n  # c5\n  - 1 # c6\n  # c7\n  - 2\n# c8\nc:\n  d: 1\n  # c9\n# c10\n',
  ],
  ...[
    'base: &base {x: 1.0, y: [012, 1:30]}\na: *base\nb:\n  <<: *base\n  y: 2\nc: [*base, &z 2026-01-01, *z]\n',
  ],
  ...['a: &x\n  - 1.0\n  - &y {k: yes}\nb: *x\nc: {<<: *y, z: 1}\nd:\n  - <<: [*y, {k: 1.0, m: 2}]\n'],
  ...['a: &x "x"\n*x : 1.0\n'],
  ...["2: a\nnull: b\nyes: c\n2.50: d\n2026-01-01: e\n8080: x\n'8080': y\n0x1F: z\n"],
  ...['a: 1\na: 2\nb: 3\na: 1.0\n'],
  ...[
    'a: !!str 012\nb: !!int "3"\nd: !!binary aGVsbG8=\ne: !!float 1.5\nf: !!null ""\ng: !!map {a: 1.0}\nh: !!seq [1.0]\ni: !!timestamp 2026-01-01\n',
  ],
  ...['--- # c\na: 1.0\n...\n', '%YAML 1.1\n---\na: 012\n'],
  ...['- - 1.0\n  - 012\n- - - yes\n-\n  a: 1\n  b: ~\n- {}\n- []\n- ""\n-\n'],
  ...['? a\n: 1.0\n? b\n? "c d"\n: - 1\n  - 2\n? |\n  g\n  h\n: 3\n'],
  ...[
    'a: 123456789012345678901234567890\nb: 1.50\nc: 0.1000000000000000055\nd: 1e3\ne: .5\nf: 0o14\ng: +1\nh: 1_000\ni: 1.e+5\n',
  ],
  ...['a:\r\n  b: 1.0\r\n  c: |\r\n    x\r\n    y\r\n  d: "x\r\n    y"\r\n'],
  ...['{"a": [1.0, 2, {"b": "c"}], "d": null, "e": {}}'],
  ...['- {a: 1.0, b: {c: 012}}\n- {a: 2, b: }\n- [a, [b, {c: d}], "e f"]\n', 'a: "\\u2028\\x07"\nb: 1.0\n'],
  ...['run: |\n  echo a\n   echo b\n\n\n  # not a comment\nsetup: |2\n    lead\n  x\nmore: >1\n   x\n  y\n'],
  ...['\ufeffa: 1.0\nb: yes\n', 'a:\n# before\n- 1.0\n# between\n- 2.0\n# after\nb: 1\n'],
  ...['[1.0, 2, # c\n  3.0]\n', '{a: 1.0, # c\n  b: 2}\n'],
];
