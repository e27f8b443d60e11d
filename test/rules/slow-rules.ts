/** A small part of CEL, written down a second time: expressions as trees, their texts, and a slow evaluation that counts what it visits. */
import fc from 'fast-check';

export type Tree =
  | { readonly kind: 'constant'; readonly value: bigint | boolean | string }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'member'; readonly of: Tree; readonly name: string }
  | { readonly kind: 'has'; readonly of: Tree; readonly name: string }
  | { readonly kind: 'not' | 'minus'; readonly of: Tree }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: Tree; readonly right: Tree }
  | { readonly kind: 'choice'; readonly if: Tree; readonly yes: Tree; readonly no: Tree }
  | { readonly kind: 'size'; readonly of: Tree }
  | {
      readonly kind: 'loop';
      readonly macro: 'all' | 'exists' | 'exists_one' | 'filter' | 'map';
      readonly over: Tree;
      readonly variable: string;
      readonly body: Tree;
    }
  | { readonly kind: 'bind'; readonly variable: string; readonly value: Tree; readonly body: Tree };

/** The largest request: the estimate counts with these sizes. */
export const SIZES = { xs: 4, rows: 3, groups: 3, members: 5 } as const;

export interface Request {
  readonly xs: readonly bigint[];
  readonly name: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly groups: readonly { readonly size: bigint; readonly members: readonly bigint[] }[];
}

export function textOf(tree: Tree): string {
  switch (tree.kind) {
    case 'constant':
      return typeof tree.value === 'string'
        ? JSON.stringify(tree.value)
        : tree.value === -(2n ** 63n)
          ? '(-9223372036854775807 - 1)'
          : `(${tree.value})`;
    case 'name':
      return tree.name;
    case 'member':
      return `${textOf(tree.of)}.${tree.name}`;
    case 'has':
      return `has(${textOf(tree.of)}.${tree.name})`;
    case 'not':
      return `!(${textOf(tree.of)})`;
    case 'minus':
      return `-(${textOf(tree.of)})`;
    case 'binary':
      return `(${textOf(tree.left)} ${tree.operator} ${textOf(tree.right)})`;
    case 'choice':
      return `(${textOf(tree.if)} ? ${textOf(tree.yes)} : ${textOf(tree.no)})`;
    case 'size':
      return `size(${textOf(tree.of)})`;
    case 'loop':
      return `${textOf(tree.over)}.${tree.macro}(${tree.variable}, ${textOf(tree.body)})`;
    case 'bind':
      return `cel.bind(${tree.variable}, ${textOf(tree.value)}, ${textOf(tree.body)})`;
  }
}

class NoValue extends Error {}

/** The value, or `undefined` if there is none; and how many nodes were visited. */
export function slowly(tree: Tree, request: Request): { readonly value: unknown; readonly visits: number } {
  let visits = 0;
  const variables: (readonly [string, unknown])[] = Object.entries(request);
  try {
    return { value: look(tree, variables), visits };
  } catch (thrown) {
    if (thrown instanceof NoValue) {
      return { value: undefined, visits };
    }
    throw thrown;
  }

  function look(one: Tree, seen: readonly (readonly [string, unknown])[]): unknown {
    visits += 1;
    switch (one.kind) {
      case 'constant':
        return one.value;
      case 'name':
        return seen.findLast(([name]) => name === one.name)?.[1] ?? none();
      case 'member': {
        const of = look(one.of, seen);
        return isRecord(of) && Object.keys(of).includes(one.name) ? read(of[one.name]) : none();
      }
      case 'has': {
        const of = look(one.of, seen);
        return isRecord(of) ? Object.keys(of).includes(one.name) : none();
      }
      case 'not':
        return !truth(look(one.of, seen));
      case 'minus':
        return fitting(-whole(look(one.of, seen)));
      case 'choice':
        return look(truth(look(one.if, seen)) ? one.yes : one.no, seen);
      case 'size': {
        const of = look(one.of, seen);
        return typeof of === 'string' ? BigInt([...of].length) : BigInt(list(of).length);
      }
      case 'bind':
        return look(one.body, [...seen, [one.variable, look(one.value, seen)]]);
      case 'binary':
        return binary(one, seen);
      case 'loop':
        return loop(one, seen);
    }
  }

  function binary(
    { operator, left, right }: Extract<Tree, { kind: 'binary' }>,
    seen: readonly (readonly [string, unknown])[],
  ): unknown {
    if (operator === '||' || operator === '&&') {
      const sides = [left, right].map((side) => attempt(() => truth(look(side, seen))));
      const decisive = operator === '||';
      return sides.includes(decisive) ? decisive : sides.includes('none') ? none() : !decisive;
    }
    const a = look(left, seen);
    const b = look(right, seen);
    switch (operator) {
      case '==':
        return same(a, b);
      case '!=':
        return !same(a, b);
      case 'in':
        return list(b).some((item) => same(a, item));
      case '+':
        return typeof a === 'string' && typeof b === 'string'
          ? a + b
          : Array.isArray(a) && Array.isArray(b)
            ? [...a, ...b]
            : fitting(whole(a) + whole(b));
      case '-':
        return fitting(whole(a) - whole(b));
      case '*':
        return fitting(whole(a) * whole(b));
      case '/':
        return whole(b) === 0n ? none() : fitting(whole(a) / whole(b));
      case '%':
        return whole(b) === 0n ? none() : whole(a) % whole(b);
      case '<':
        return isBefore(a, b);
      default:
        return !isBefore(a, b);
    }
  }

  function loop(
    { macro, over, variable, body }: Extract<Tree, { kind: 'loop' }>,
    seen: readonly (readonly [string, unknown])[],
  ): unknown {
    const items = list(look(over, seen));
    const within = (item: unknown) => look(body, [...seen, [variable, read(item)] as const]);
    if (macro === 'map') {
      return items.map(within);
    }
    if (macro === 'filter') {
      return items.filter((item) => truth(within(item))).map(read);
    }
    if (macro === 'exists_one') {
      return items.filter((item) => truth(within(item))).length === 1;
    }
    const decisive = macro === 'exists';
    const answers = items.map((item) => attempt(() => truth(within(item))));
    return answers.includes(decisive) ? decisive : answers.includes('none') ? none() : !decisive;
  }
}

function attempt(work: () => boolean): boolean | 'none' {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof NoValue) {
      return 'none';
    }
    throw thrown;
  }
}

function none(): never {
  throw new NoValue();
}

function read(value: unknown): unknown {
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
}

function truth(value: unknown): boolean {
  return typeof value === 'boolean' ? value : none();
}

function whole(value: unknown): bigint {
  return typeof value === 'bigint' ? value : none();
}

function isBefore(a: unknown, b: unknown): boolean {
  if (typeof a === 'string' && typeof b === 'string') {
    const [points, others] = [a, b].map((text) => [...text].map((one) => one.codePointAt(0) ?? 0));
    const at = (points ?? []).findIndex((point, index) => point !== others?.[index]);
    return at < 0 ? a.length < b.length : (points?.[at] ?? 0) < (others?.[at] ?? -1);
  }
  return typeof a === 'boolean' && typeof b === 'boolean' ? !a && b : whole(a) < whole(b);
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : none();
}

function fitting(value: bigint): bigint {
  return BigInt.asIntN(64, value) === value ? value : none();
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => same(read(item), read(b[index])));
  }
  return a === b;
}

type Kind = 'bool' | 'int' | 'text' | 'ints';

/** The names in sight, by what they stand for. */
interface Sight {
  readonly ints: readonly string[];
  readonly rows: readonly string[];
  readonly groups: readonly string[];
}

const WHOLE = fc.oneof(
  { weight: 8, arbitrary: fc.bigInt({ min: -3n, max: 5n }) },
  { weight: 1, arbitrary: fc.constantFrom(2n ** 63n - 1n, -(2n ** 63n), 4611686018427387904n) },
);
const NAMES = fc.constantFrom('n', 's', 'constructor', 'missing');

/** Expressions that are true or false, with the right types almost everywhere; attributes of rows are of any type. */
export function anyExpression(depth: number): fc.Arbitrary<Tree> {
  return expression('bool', depth, { ints: [], rows: [], groups: [] });
}

function expression(kind: Kind, depth: number, sight: Sight): fc.Arbitrary<Tree> {
  const leaf = leaves(kind, sight);
  if (depth <= 0) {
    return leaf;
  }
  const part = (one: Kind, inner = sight) => expression(one, depth - 1, inner);
  const binary = (operators: readonly string[], left: Kind, right: Kind = left) =>
    fc
      .tuple(fc.constantFrom(...operators), fc.noShrink(part(left)), fc.noShrink(part(right)))
      .map(([operator, a, b]): Tree => ({ kind: 'binary', operator, left: a, right: b }));
  const variable = `v${depth}`;
  const choice = fc
    .tuple(part('bool'), part(kind), part(kind))
    .map(([condition, a, b]): Tree => ({ kind: 'choice', if: condition, yes: a, no: b }));
  const bind = fc
    .tuple(part('int'), part(kind, { ...sight, ints: [...sight.ints, variable] }))
    .map(([value, body]): Tree => ({ kind: 'bind', variable, value, body }));
  switch (kind) {
    case 'bool':
      return fc.oneof(
        leaf,
        choice,
        bind,
        binary(['&&', '||'], 'bool'),
        binary(['<', '>=', '==', '!='], 'int'),
        binary(['==', '!='], 'text'),
        binary(['==', '!='], 'ints'),
        binary(['in'], 'int', 'ints'),
        part('bool').map((of): Tree => ({ kind: 'not', of })),
        quantified(depth, sight),
        quantified(depth, sight),
      );
    case 'int':
      return fc.oneof(
        leaf,
        choice,
        bind,
        binary(['+', '-', '*', '/', '%'], 'int'),
        part('int').map((of): Tree => ({ kind: 'minus', of })),
        part('ints').map((of): Tree => ({ kind: 'size', of })),
        part('text').map((of): Tree => ({ kind: 'size', of })),
      );
    case 'text':
      return fc.oneof(leaf, choice, binary(['+'], 'text'));
    case 'ints':
      return fc.oneof(
        leaf,
        binary(['+'], 'ints'),
        fc
          .tuple(part('ints'), part('bool', { ...sight, ints: [...sight.ints, variable] }))
          .map(([over, body]): Tree => ({ kind: 'loop', macro: 'filter', over, variable, body })),
        fc
          .tuple(part('ints'), part('int', { ...sight, ints: [...sight.ints, variable] }))
          .map(([over, body]): Tree => ({ kind: 'loop', macro: 'map', over, variable, body })),
      );
  }
}

function quantified(depth: number, sight: Sight): fc.Arbitrary<Tree> {
  const variable = `v${depth}`;
  const within = (over: fc.Arbitrary<Tree>, inner: Sight) =>
    fc
      .tuple(fc.constantFrom('all', 'exists', 'exists_one'), over, expression('bool', depth - 1, inner))
      .map(([macro, list, body]): Tree => ({ kind: 'loop', macro, over: list, variable, body }));
  return fc.oneof(
    within(expression('ints', depth - 1, sight), { ...sight, ints: [...sight.ints, variable] }),
    within(fc.constant({ kind: 'name', name: 'rows' }), { ...sight, rows: [...sight.rows, variable] }),
    within(fc.constant({ kind: 'name', name: 'groups' }), { ...sight, groups: [...sight.groups, variable] }),
  );
}

function leaves(kind: Kind, { ints, rows, groups }: Sight): fc.Arbitrary<Tree> {
  const named = (name: string): Tree => ({ kind: 'name', name });
  const member = (name: string, of: readonly string[]) =>
    of.map((one) => fc.constant<Tree>({ kind: 'member', of: named(one), name }));
  const ofRow = rows.map((one) => NAMES.map((name): Tree => ({ kind: 'member', of: named(one), name })));
  switch (kind) {
    case 'bool':
      return fc.oneof(
        fc.boolean().map((value): Tree => ({ kind: 'constant', value })),
        ...rows.map((one) => NAMES.map((name): Tree => ({ kind: 'has', of: named(one), name }))),
        ...ofRow,
      );
    case 'int':
      return fc.oneof(
        WHOLE.map((value): Tree => ({ kind: 'constant', value })),
        ...ints.map((one) => fc.constant(named(one))),
        ...member('size', groups),
        ...ofRow,
      );
    case 'text':
      return fc.oneof(
        fc.constantFrom('', 'n', '\u{1f600}').map((value): Tree => ({ kind: 'constant', value })),
        fc.constant(named('name')),
        ...ofRow,
      );
    case 'ints':
      return fc.oneof(fc.constant(named('xs')), ...member('members', groups));
  }
}

/** Requests up to `SIZES`. */
export const anyRequest: fc.Arbitrary<Request> = fc.record({
  xs: fc.array(WHOLE, { maxLength: SIZES.xs }),
  name: fc.constantFrom('', 'n', '\u{1f600}', 'x'.repeat(200)),
  rows: fc.array(
    fc.record(
      {
        n: fc.oneof(fc.integer({ min: -3, max: 5 }), fc.boolean()),
        s: fc.oneof(fc.constantFrom('', 'n', '\u{1f600}'), fc.integer()),
        constructor: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
    { maxLength: SIZES.rows },
  ),
  groups: fc.array(fc.array(WHOLE, { maxLength: SIZES.members }), { maxLength: SIZES.groups }).map((all) => {
    let left: number = SIZES.members;
    return all.map((members) => {
      const kept = members.slice(0, left);
      left -= kept.length;
      return { size: BigInt(kept.length), members: kept };
    });
  }),
});
