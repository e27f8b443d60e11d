/** Loops over lists and over the keys of maps. */
import { Failure } from './failure.ts';
import type { Frame, Run } from './frame.ts';
import { notBoolean } from './logic.ts';
import { slotOfRun, valueIn } from './sharing.ts';
import type { Loop } from './syntax.ts';
import { isMap, itemsOf, typeName } from './values.ts';

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

/** A loop over the elements that `over` has. */
export function loopRun(loop: CompiledLoop): Run {
  const { kind, over, offset, condition } = loop;
  const slotOfList = slotOfRun(over);
  if ((kind === 'all' || kind === 'exists') && condition !== undefined) {
    return quantifierRun(loop, condition);
  }
  const iterate = iteration(loop);
  return (frame) => {
    const items = elementsOf(valueIn(frame, over, slotOfList), offset);
    return items instanceof Failure ? items : iterate(items, frame);
  };
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

type Iterate = (items: readonly unknown[], frame: Frame) => unknown;

function iteration({ kind, slot, condition, result, steps }: CompiledLoop): Iterate {
  const holds = condition ?? (() => true);
  switch (kind) {
    case 'exists_one':
      return (items, frame) => countsOne(items, frame, holds, slot, steps);
    default:
      return (items, frame) => {
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
}

/** `exists` and `all` are `||` and `&&` over the elements: they may do without elements that fail. */
function quantifierRun({ kind, over, slot, steps, offset }: CompiledLoop, holds: Run): Run {
  const decides = kind === 'exists';
  const slotOfList = slotOfRun(over);
  return (frame) => {
    const items = elementsOf(valueIn(frame, over, slotOfList), offset);
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

function countsOne(
  items: readonly unknown[],
  frame: Frame,
  holds: Run,
  slot: number,
  steps: number,
): unknown {
  let count = 0;
  for (const item of items) {
    frame.meter.spend(steps);
    frame.slots[slot] = item;
    const value = holds(frame);
    if (typeof value !== 'boolean') {
      return notBoolean(value);
    }
    count += value ? 1 : 0;
  }
  return count === 1;
}
