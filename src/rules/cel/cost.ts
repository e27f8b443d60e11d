/**
 * The cost of an expression before it runs: an upper bound of its steps, for the largest request that the
 * sizes of its variables allow. Larger requests are measured while the rules run.
 */
import { errorText } from '../../base/errors.ts';
import type { RuleEnvironment } from './environment.ts';
import { Failure, Frame, Meter, type Run } from './frame.ts';
import {
  ANYTHING,
  type CelFunction,
  CHEAP,
  eitherShape,
  listShape,
  SCALAR,
  type Shape,
  textShape,
} from './function.ts';
import {
  type Binding,
  bindingOf,
  checkedTypeOf,
  ExpressionMistake,
  type Loop,
  loopOf,
  type Node,
  partsOf,
  presenceOf,
} from './syntax.ts';

interface Cost {
  readonly steps: number;
  readonly shape: Shape;
  /** The most expensive loop and its steps. */
  readonly mostExpensive: { readonly node: Node; readonly steps: number } | undefined;
}

interface Sight {
  readonly name: string;
  readonly shape: Shape;
  readonly outer: Sight | undefined;
  /** For a loop over objects that occur once each: lists divided among them count once for the whole loop. */
  readonly objects: number | undefined;
}

export class Estimator {
  readonly #environment: RuleEnvironment;
  readonly #run: (node: Node) => () => unknown;
  #mostExpensive: Cost['mostExpensive'];

  /** `run`: evaluates a constant. */
  constructor(environment: RuleEnvironment, run: (node: Node) => () => unknown) {
    this.#environment = environment;
    this.#run = run;
  }

  estimate(node: Node): Cost {
    this.#mostExpensive = undefined;
    const { steps, shape } = this.#part(node, undefined, new Set());
    return { steps, shape, mostExpensive: this.#mostExpensive };
  }

  /** `shared`: enclosing loop variables whose lists are already counted. */
  #part(node: Node, sight: Sight | undefined, shared: ReadonlySet<Sight>): { steps: number; shape: Shape } {
    const operand = presenceOf(node);
    if (operand !== undefined) {
      return { steps: 2 + this.#part(operand, sight, shared).steps, shape: SCALAR };
    }
    const loop = loopOf(node);
    if (loop !== undefined) {
      return this.#loop(loop, node, sight, shared);
    }
    const binding = bindingOf(node);
    if (binding !== undefined) {
      return this.#binding(binding, sight, shared);
    }
    const parts = partsOf(node).map((part) => this.#part(part, sight, shared));
    const before = parts.reduce((sum, { steps }) => sum + steps, 1);
    const shapes = parts.map(({ shape }) => shape);
    const { steps, shape } = this.#own(node, shapes, sight);
    return { steps: before + steps, shape };
  }

  /** The cost of a node in addition to its parts and the one step of each node. */
  #own(node: Node, shapes: readonly Shape[], sight: Sight | undefined): { steps: number; shape: Shape } {
    const [first = SCALAR, second = SCALAR] = shapes;
    switch (node.op) {
      case 'value':
        return { steps: 0, shape: typeof node.args === 'string' ? textShape(node.args.length) : SCALAR };
      case 'id':
        return { steps: 0, shape: this.#variable(node.args, sight)?.shape ?? SCALAR };
      case '.':
      case '.?':
        return { steps: 0, shape: first.attributes?.get(node.args[1]) ?? first.item ?? SCALAR };
      case '[]':
      case '[?]':
        return { steps: 0, shape: first.item ?? this.#byName(first, node.args[1]) };
      case 'list':
      case 'map': {
        const item = shapes.reduce((one, other) => eitherShape(one, other), SCALAR);
        return { steps: 0, shape: listShape(shapes.length, item) };
      }
      case '?:':
        return { steps: 0, shape: eitherShape(second, shapes[2] ?? SCALAR) };
      case '+': {
        const length = first.text + second.text;
        const item = eitherShape(first.item ?? SCALAR, second.item ?? SCALAR);
        const items = first.items + second.items;
        const list = listShape(items, item);
        const isList = items > 0;
        return {
          steps: Math.ceil(length / 16) + items,
          shape: isList ? { ...list, text: length } : textShape(length),
        };
      }
      case '==':
      case '!=':
        return { steps: Math.min(first.weight, second.weight), shape: SCALAR };
      case '<':
      case '<=':
      case '>':
      case '>=':
        return { steps: Math.ceil(Math.min(first.text, second.text) / 16), shape: SCALAR };
      case 'in': {
        const item = second.item ?? SCALAR;
        return { steps: second.items * (1 + Math.min(first.weight, item.weight)), shape: SCALAR };
      }
      case 'call':
      case 'rcall':
        return this.#call(node, shapes);
      default:
        return { steps: 0, shape: SCALAR };
    }
  }

  #call(
    node: Node & { readonly op: 'call' | 'rcall' },
    shapes: readonly Shape[],
  ): { steps: number; shape: Shape } {
    const [name] = node.args;
    if (name === 'orValue' || name === 'or') {
      return { steps: 1, shape: eitherShape(shapes[0] ?? SCALAR, shapes[1] ?? SCALAR) };
    }
    const { called, nodes } = this.#environment.callOf(node);
    const constant = nodes.find((one, index) => called?.constants?.includes(index) && isConstant(one));
    const prepared =
      called === undefined || constant === undefined
        ? undefined
        : prepare(called, name, constant, this.#run(constant));
    return called?.estimate?.(shapes.slice(shapes.length - nodes.length), prepared) ?? CHEAP;
  }

  #loop(
    { over, variable, condition, result }: Loop,
    node: Node,
    sight: Sight | undefined,
    shared: ReadonlySet<Sight>,
  ): { steps: number; shape: Shape } {
    const list = this.#part(over, sight, shared);
    const sharing = this.#sharing(over, sight, shared);
    const within = sharing === undefined ? shared : new Set([...shared, sharing.owner]);
    const item = this.#itemOf(over, list.shape);
    const inner: Sight = {
      name: variable,
      shape: item,
      outer: sight,
      objects: list.shape.isDistinct === true ? list.shape.items : undefined,
    };
    const one = condition === undefined ? undefined : this.#part(condition, inner, within);
    const other = result === undefined ? undefined : this.#part(result, inner, within);
    const rounds = sharing?.rounds ?? list.shape.items;
    const steps = 2 + list.steps + rounds * (1 + (one?.steps ?? 0) + (other?.steps ?? 0));
    if (this.#mostExpensive === undefined || steps > this.#mostExpensive.steps) {
      this.#mostExpensive = { node, steps };
    }
    const isFilter = node.op === 'rcall' && node.args[0] === 'filter';
    const isMap = node.op === 'rcall' && node.args[0] === 'map';
    const made = isMap && other !== undefined ? other.shape : isFilter ? item : undefined;
    const shape =
      made === undefined
        ? SCALAR
        : { ...listShape(list.shape.items, made), isDistinct: isFilter && list.shape.isDistinct === true };
    return { steps, shape };
  }

  /** A loop over a list that is divided among the objects of an outer loop: its average number of rounds. */
  #sharing(
    over: Node,
    sight: Sight | undefined,
    shared: ReadonlySet<Sight>,
  ): { readonly owner: Sight; readonly rounds: number } | undefined {
    if (over.op !== '.' || over.args[0].op !== 'id') {
      return undefined;
    }
    const owner = this.#variable(over.args[0].args, sight);
    const total = owner?.shape.attributes?.get(over.args[1])?.shared?.total;
    return owner === undefined || owner.objects === undefined || total === undefined || shared.has(owner)
      ? undefined
      : { owner, rounds: Math.ceil(total / owner.objects) };
  }

  #binding(
    { variable, value, body }: Binding,
    sight: Sight | undefined,
    shared: ReadonlySet<Sight>,
  ): { steps: number; shape: Shape } {
    const bound = this.#part(value, sight, shared);
    const inner: Sight = { name: variable, shape: bound.shape, outer: sight, objects: undefined };
    const { steps, shape } = this.#part(body, inner, shared);
    return { steps: 2 + bound.steps + steps, shape };
  }

  /** Keys of maps are texts. */
  #itemOf(over: Node, shape: Shape): Shape {
    const type = checkedTypeOf(over) ?? 'dyn';
    return type.startsWith('map') ? textShape(ANYTHING.text) : (shape.item ?? SCALAR);
  }

  #byName(shape: Shape, key: Node): Shape {
    return (
      (key.op === 'value' && typeof key.args === 'string' ? shape.attributes?.get(key.args) : undefined) ??
      SCALAR
    );
  }

  #variable(name: string, sight: Sight | undefined): Sight | undefined {
    for (let one = sight; one !== undefined; one = one.outer) {
      if (one.name === name) {
        return one;
      }
    }
    const shape = this.#environment.variableShape(name);
    return shape === undefined ? undefined : { name, shape, outer: undefined, objects: undefined };
  }
}

/** Whether the value is the same for every request. Ignores calls, except conversions of constants. */
export function isConstant(node: Node): boolean {
  switch (node.op) {
    case 'value':
      return true;
    case 'call':
      return (
        /^(?:timestamp|duration|int|double|string)$/.test(node.args[0]) && node.args[1].every(isConstant)
      );
    case 'list':
      return node.args.every(isConstant);
    case '-_':
      return isConstant(node.args);
    case '+':
    case '-':
    case '*':
    case '/':
      return node.args.every(isConstant);
    default:
      return false;
  }
}

/** The value of a constant. @throws ExpressionMistake if it has none */
export function constantValue(node: Node, run: Run): unknown {
  const value = run(constantFrame());
  if (value instanceof Failure) {
    throw new ExpressionMistake(value.reason, value.offset ?? node.start);
  }
  return value;
}

/** The result of `prepare` for a constant argument. */
export function prepare(called: CelFunction, name: string, node: Node, run: Run): unknown {
  if (!isConstant(node)) {
    throw new ExpressionMistake(
      `${name}() needs a constant here: it is checked when the rules are loaded`,
      node.start,
    );
  }
  const value = run(constantFrame());
  try {
    return called.prepare?.(value) ?? value;
  } catch (thrown) {
    throw new ExpressionMistake(errorText(thrown), node.start);
  }
}

function constantFrame(): Frame {
  return new Frame({}, new Meter());
}
