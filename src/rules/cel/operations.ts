/** Evaluates the nodes of an expression: operators, logic, lists and maps, calls, and loops. */

import { failureOf } from './attributes.ts';
import { Failure, placed, type Run, TooManyStepsError } from './frame.ts';
import type { CelFunction } from './function.ts';
import { negated, negative, type Operator } from './operators.ts';
import type { Loop, Node } from './syntax.ts';
import { isMap, itemsOf, Optional, typeName } from './values.ts';

export function negativeRun(operand: Run, offset: number): Run {
  return (frame) => {
    const value = operand(frame);
    return value instanceof Failure ? value : placed(negative(value), offset);
  };
}

export function operationRun(left: Run, right: Run, offset: number, operator: Operator): Run {
  return (frame) => {
    const a = left(frame);
    if (a instanceof Failure) {
      return a;
    }
    const b = right(frame);
    return b instanceof Failure ? b : placed(operator(a, b, frame.meter), offset);
  };
}

/** `value in […]` with constant texts, by lookup instead of search. `undefined` for any other list. */
export function membershipRun(left: Run, list: Node): Run | undefined {
  const texts = list.op === 'list' ? list.args.map((one) => (one.op === 'value' ? one.args : undefined)) : [];
  if (list.op !== 'list' || texts.some((one) => typeof one !== 'string')) {
    return undefined;
  }
  const set = new Set<unknown>(texts);
  return (frame) => {
    const value = left(frame);
    return typeof value === 'string' ? set.has(value) : value instanceof Failure ? value : false;
  };
}

/** True decides `||`, false decides `&&`, even if the other side has no value. */
export function logicRun(decides: boolean, left: Run, right: Run, offset: number): Run {
  return (frame) => {
    const a = left(frame);
    if (a === decides) {
      return decides;
    }
    const b = right(frame);
    if (b === decides) {
      return decides;
    }
    return a !== !decides ? notBoolean(a).at(offset) : b !== !decides ? notBoolean(b).at(offset) : !decides;
  };
}

export function notRun(operand: Run, offset: number): Run {
  return (frame) => {
    const value = operand(frame);
    return value === true ? false : value === false ? true : placed(negated(value), offset);
  };
}

export function choiceRun(condition: Run, then: Run, otherwise: Run, offset: number): Run {
  return (frame) => {
    const value = condition(frame);
    return value === true ? then(frame) : value === false ? otherwise(frame) : notBoolean(value).at(offset);
  };
}

/** The failure for a value that is neither true nor false. */
function notBoolean(value: unknown): Failure {
  return value instanceof Failure ? value : new Failure(`expected true or false, got ${typeName(value)}`);
}

export function listRun(elements: readonly Run[]): Run {
  return (frame) => {
    const values: unknown[] = [];
    for (const element of elements) {
      const value = element(frame);
      if (value instanceof Failure) {
        return value;
      }
      values.push(value);
    }
    return values;
  };
}

export function mapRun(entries: readonly (readonly [Run, Run])[], offset: number): Run {
  return (frame) => {
    const map = new Map<unknown, unknown>();
    for (const [key, value] of entries) {
      const name = key(frame);
      const one = value(frame);
      if (name instanceof Failure || one instanceof Failure) {
        return name instanceof Failure ? name : one;
      }
      if (typeof name === 'object' || typeof name === 'number') {
        return new Failure(`${typeName(name)} cannot be a key of a map`, offset);
      }
      if (map.has(name)) {
        return new Failure('a map with the same key twice', offset);
      }
      map.set(name, one);
    }
    return map;
  };
}

export interface Argument {
  readonly run: Run;
  /** Set if the value is the same for every request. */
  readonly constant: { readonly value: unknown } | undefined;
}

/** Most calls have one argument, or constants after it: no list of arguments, and no call for each. */
export function callRun({ run }: CelFunction, args: readonly Argument[], offset: number): Run {
  const nothing = new Failure('the function has no value', offset);
  const finished = (value: unknown) => (value === undefined ? nothing : placed(value, offset));
  const [first, ...others] = args;
  if (first === undefined || others.length > 2 || others.some(({ constant }) => constant === undefined)) {
    return (frame) => {
      try {
        const values = args.map((arg) => arg.run(frame));
        return values.find((value) => value instanceof Failure) ?? finished(run(frame, ...values));
      } catch (thrown) {
        return failed(thrown, offset);
      }
    };
  }
  const { run: receiver } = first;
  const [second, third] = others.map(({ constant }) => constant?.value);
  return (frame) => {
    try {
      const value = receiver(frame);
      return value instanceof Failure ? value : finished(run(frame, value, second, third));
    } catch (thrown) {
      return failed(thrown, offset);
    }
  };
}

function failed(thrown: unknown, offset: number): Failure {
  if (thrown instanceof TooManyStepsError) {
    throw thrown;
  }
  return failureOf(thrown).at(offset);
}

/** `orValue`, or `or` if not `isPlain`. Evaluates the alternative only if there is no value. */
export function alternativeRun(isPlain: boolean, value: Run, alternative: Run, offset: number): Run {
  return (frame) => {
    const one = value(frame);
    if (one instanceof Failure) {
      return one;
    }
    if (!(one instanceof Optional)) {
      return new Failure(`expected an optional value, got ${typeName(one)}`, offset);
    }
    return one.value === undefined ? alternative(frame) : isPlain ? one.value : one;
  };
}

interface CompiledLoop {
  readonly kind: Loop['kind'];
  readonly over: Run;
  readonly slot: number;
  readonly condition: Run | undefined;
  readonly result: Run | undefined;
  /** For each element. */
  readonly steps: number;
  readonly offset: number;
}

/** A loop over the elements of `over`. */
export function loopRun(loop: CompiledLoop): Run {
  const { kind, condition } = loop;
  const holds = condition ?? (() => true);
  return kind === 'all' || kind === 'exists'
    ? quantifierRun(loop, holds)
    : kind === 'exists_one'
      ? uniquenessRun(loop, holds)
      : collectionRun(loop, holds);
}

function elementsOf(value: unknown, offset: number): readonly unknown[] | Failure {
  if (value instanceof Failure) {
    return value;
  }
  return (
    itemsOf(value) ??
    (isMap(value)
      ? [...value.keys()]
      : new Failure(`expected a list or a map, got ${typeName(value)}`, offset))
  );
}

/** `filter` and `map`. */
function collectionRun({ over, slot, result, steps, offset }: CompiledLoop, holds: Run): Run {
  return (frame) => {
    const items = elementsOf(over(frame), offset);
    if (items instanceof Failure) {
      return items;
    }
    const collected: unknown[] = [];
    for (const item of items) {
      frame.meter.spend(steps);
      frame.slots[slot] = item;
      const wanted = holds(frame);
      if (wanted === false) {
        continue;
      }
      if (wanted !== true) {
        return notBoolean(wanted);
      }
      const made = result === undefined ? item : result(frame);
      if (made instanceof Failure) {
        return made;
      }
      collected.push(made);
    }
    return collected;
  };
}

/** `exists` and `all` are `||` and `&&` over the elements: they may ignore elements that fail. */
function quantifierRun({ kind, over, slot, steps, offset }: CompiledLoop, holds: Run): Run {
  const decides = kind === 'exists';
  return (frame) => {
    const items = elementsOf(over(frame), offset);
    if (items instanceof Failure) {
      return items;
    }
    let failure: Failure | undefined;
    for (const item of items) {
      frame.meter.spend(steps);
      frame.slots[slot] = item;
      const value = holds(frame);
      if (value === decides) {
        return decides;
      }
      if (value !== !decides) {
        failure ??= notBoolean(value);
      }
    }
    return failure ?? !decides;
  };
}

/** `exists_one`: a filter that has found one. */
function uniquenessRun(loop: CompiledLoop, holds: Run): Run {
  const filter = collectionRun({ ...loop, result: undefined }, holds);
  return (frame) => {
    const found = filter(frame);
    return found instanceof Failure ? found : (found as readonly unknown[]).length === 1;
  };
}
