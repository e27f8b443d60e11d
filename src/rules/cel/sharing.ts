/**
 * Parts that expressions have in common, such as `hours(lease)`, are evaluated once for each request.
 * Attributes and functions of an environment always have the same result for one request.
 */
import { Failure, type Numbering, type Run } from './frame.ts';
import type { Node } from './syntax.ts';

/** Parts that are written alike, in any place. */
interface Kind {
  readonly number: number;
  /** All names in the part, including its own loop variables. */
  readonly names: ReadonlySet<string>;
  uses: number;
  /** Index of the value in a frame; `undefined` = not used yet. */
  slot: number | undefined;
}

/** The parts of expressions of one environment that are loaded together, such as a folder's rules. */
export class SharedParts implements Numbering {
  readonly #kinds = new Map<string, Kind>();
  readonly #kindOf = new WeakMap<Node, Kind>();
  readonly #links: (() => void)[] = [];
  #count = 0;

  /** The slots in use. */
  get count(): number {
    return this.#count;
  }

  /** Counts the parts of an expression. `link`: compiles it with the parts that it shares with the others. */
  add(expression: Node, link: () => void): void {
    this.#kind(expression);
    this.#links.push(link);
  }

  /** Call it after adding all expressions. Otherwise, each is linked when it first runs. */
  complete(): void {
    for (const link of this.#links.splice(0)) {
      link();
    }
  }

  /** `run`, evaluated once for each request if it is repeated and uses no variable of an enclosing loop. */
  once(node: Node, run: Run, scope: Scope | undefined): Run {
    const kind = this.#kindOf.get(node);
    if (
      kind === undefined ||
      kind.uses < 2 ||
      [...kind.names].some((name) => slotOf(name, scope) !== undefined)
    ) {
      return run;
    }
    if (kind.slot === undefined) {
      kind.slot = this.#count;
      this.#count += 1;
    }
    return remembering(run, kind.slot);
  }

  #kind(node: Node): Kind {
    const names = new Set<string>();
    const key = `${node.op} ${this.#written(node.args, names)}`;
    if (node.op === 'id') {
      names.add(node.args);
    }
    const kind = this.#kinds.get(key) ?? { number: this.#kinds.size, names, uses: 0, slot: undefined };
    kind.uses += 1;
    this.#kinds.set(key, kind);
    this.#kindOf.set(node, kind);
    return kind;
  }

  /** A text that differs for different arguments. */
  #written(args: unknown, names: Set<string>): string {
    if (isNode(args)) {
      const kind = this.#kind(args);
      for (const name of kind.names) {
        names.add(name);
      }
      return `#${kind.number}`;
    }
    if (Array.isArray(args)) {
      return `[${args.map((one) => this.#written(one, names)).join()}]`;
    }
    switch (typeof args) {
      case 'string':
        return JSON.stringify(args);
      case 'bigint':
        return `${args}n`;
      case 'number':
        return Object.is(args, -0) ? '-0' : String(args);
      default:
        // Bytes and unsigned numbers are refused later.
        return typeof args === 'boolean' || args === null ? String(args) : '?';
    }
  }
}

/** A failure is not stored: it has a position in this expression, which is wrong in the next one. */
function remembering(part: Run, slot: number): Run {
  return (frame) => {
    const known = frame.shared[slot];
    if (known !== undefined) {
      return known;
    }
    const value = part(frame);
    if (!(value instanceof Failure)) {
      frame.shared[slot] = value;
    }
    return value;
  };
}

function isNode(args: unknown): args is Node {
  return typeof args === 'object' && args !== null && 'op' in args && 'args' in args;
}

/** The loop variables in scope, innermost first. */
export interface Scope {
  readonly name: string;
  /** Index of its value in a frame. */
  readonly slot: number;
  readonly outer: Scope | undefined;
}

/** Numbers the loop variables of one expression. */
export class Scopes {
  #count = 0;

  within(name: string, outer: Scope | undefined): Scope {
    this.#count += 1;
    return { name, slot: this.#count - 1, outer };
  }
}

export function slotOf(name: string, scope: Scope | undefined): number | undefined {
  for (let one = scope; one !== undefined; one = one.outer) {
    if (one.name === name) {
      return one.slot;
    }
  }
  return undefined;
}
