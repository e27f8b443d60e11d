/** Operators on one part, and between two. */
import { Failure, placed } from './failure.ts';
import type { Run } from './frame.ts';
import { negative, type Operator } from './operators.ts';
import { slotOfRun, valueIn } from './sharing.ts';
import type { Node } from './syntax.ts';

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

/** `value in […]` of constant texts: they are looked up, not searched. `undefined` for any other list. */
export function membershipRun(left: Run, list: Node): Run | undefined {
  const texts = list.op === 'list' ? list.args.map((one) => (one.op === 'value' ? one.args : undefined)) : [];
  if (list.op !== 'list' || texts.some((one) => typeof one !== 'string')) {
    return undefined;
  }
  const set = new Set<unknown>(texts);
  const slot = slotOfRun(left);
  return (frame) => {
    const value = valueIn(frame, left, slot);
    return typeof value === 'string' ? set.has(value) : value instanceof Failure ? value : false;
  };
}
