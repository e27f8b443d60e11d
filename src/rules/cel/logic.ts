/** `&&`, `||`, `!` and `? :`. */
import { Failure, placed } from './failure.ts';
import type { Run } from './frame.ts';
import { negated } from './operators.ts';
import { typeName } from './values.ts';

/** `||` decides by true, `&&` by false, also if the other side has no value. */
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

/** Why a value is neither true nor false. */
export function notBoolean(value: unknown): Failure {
  return value instanceof Failure ? value : new Failure(`expected true or false, got ${typeName(value)}`);
}
