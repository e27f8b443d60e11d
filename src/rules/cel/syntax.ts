/** The syntax tree of expressions. */
import type { ASTNode } from '@marcbachmann/cel-js';

export type Node = ASTNode;

/** A mistake in an expression, found before any request. */
export class ExpressionMistake extends Error {
  override readonly name = 'ExpressionMistake';
  /** Its first character, from 0. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** The type from the checker, such as `list<Reservation>`. `undefined` for parts that it does not check. */
export function checkedTypeOf(node: Node): string | undefined {
  // The parser stores it in the node, but does not declare it.
  const { checkedType } = node as { checkedType?: { readonly name?: unknown } };
  return typeof checkedType?.name === 'string' ? checkedType.name : undefined;
}

/** A loop over a list or over the keys of a map. */
export interface Loop {
  readonly kind: 'all' | 'exists' | 'exists_one' | 'map' | 'filter';
  readonly over: Node;
  readonly variable: string;
  /** For `map` with three arguments, and for all others. */
  readonly condition: Node | undefined;
  /** The result of `map` for an element. */
  readonly result: Node | undefined;
}

/** `cel.bind(name, value, body)`. */
export interface Binding {
  readonly variable: string;
  readonly value: Node;
  readonly body: Node;
}

export function loopOf(node: Node): Loop | undefined {
  if (node.op !== 'rcall') {
    return undefined;
  }
  const [kind, over, [variable, first, second]] = node.args;
  const count = node.args[2].length;
  if (variable?.op !== 'id' || first === undefined) {
    return undefined;
  }
  const common = { over, variable: variable.args };
  switch (kind) {
    case 'all':
    case 'exists':
    case 'exists_one':
    case 'filter':
      return count === 2 ? { ...common, kind, condition: first, result: undefined } : undefined;
    case 'map':
      return count === 2
        ? { ...common, kind, condition: undefined, result: first }
        : count === 3
          ? { ...common, kind, condition: first, result: second }
          : undefined;
    default:
      return undefined;
  }
}

export function bindingOf(node: Node): Binding | undefined {
  if (node.op !== 'rcall' || node.args[0] !== 'bind') {
    return undefined;
  }
  const [, receiver, [variable, value, body]] = node.args;
  return receiver.op === 'id' &&
    receiver.args === 'cel' &&
    variable?.op === 'id' &&
    value !== undefined &&
    body !== undefined
    ? { variable: variable.args, value, body }
    : undefined;
}

/** The operand of `has(…)`. */
export function presenceOf(node: Node): Node | undefined {
  return node.op === 'call' && node.args[0] === 'has' ? node.args[1][0] : undefined;
}

/** The parts of a node that are evaluated with it, each at most once, without the bodies of loops. */
export function partsOf(node: Node): readonly Node[] {
  const loop = loopOf(node);
  if (loop !== undefined) {
    return [loop.over];
  }
  const binding = bindingOf(node);
  if (binding !== undefined) {
    return [binding.value, binding.body];
  }
  switch (node.op) {
    case 'value':
    case 'id':
      return [];
    case '.':
    case '.?':
      return [node.args[0]];
    case 'call':
      return node.args[1];
    case 'rcall':
      return [node.args[1], ...node.args[2]];
    case 'map':
      return node.args.flat();
    case '!_':
    case '-_':
      return [node.args];
    default:
      return node.args;
  }
}

/** The steps of a node with its parts: one for each, two for calls. */
export function stepsOf(node: Node): number {
  let steps = node.op === 'call' || node.op === 'rcall' ? 2 : 1;
  for (const part of partsOf(node)) {
    steps += stepsOf(part);
  }
  return steps;
}

/** The steps of one round of a loop, without those of nested loops. */
export function bodySteps({ condition, result }: Loop): number {
  return (
    1 + (condition === undefined ? 0 : stepsOf(condition)) + (result === undefined ? 0 : stepsOf(result))
  );
}

/** Strings, in which brackets have no meaning, comments, and brackets. */
const TEXT_OR_BRACKET =
  /[rR][bB]?(?:"[^"]*"|'[^']*')|"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'|\/\/.*|[()]/g;

/** A node as written, with its outer brackets: for `(a || b) && c`, the parser starts at `a`. */
export function sourceOf({ input, start, end }: Node): string {
  const text = input.slice(start, end);
  let closing = 0;
  let opening = 0;
  for (const [sign] of text.matchAll(TEXT_OR_BRACKET)) {
    if (sign === '(') {
      opening += 1;
    } else if (sign === ')' && opening > 0) {
      opening -= 1;
    } else if (sign === ')') {
      closing += 1;
    }
  }
  const [before = ''] = new RegExp(`(?:\\(\\s*){${closing}}$`).exec(input.slice(0, start)) ?? [];
  const [after = ''] = new RegExp(`^(?:\\s*\\)){${opening}}`).exec(input.slice(end)) ?? [];
  return `${before}${text}${after}`;
}
