/** Fast comparisons with constants, as in most rules. Same results as `OPERATORS`, their fallback. */
import { Failure, type Frame, placed, type Run } from './frame.ts';
import type { Operator } from './operators.ts';
import { slotOfRun, valueIn } from './sharing.ts';
import { Duration, Timestamp, textSteps } from './values.ts';

/** Operators with swapped sides: `constant < value` is `value > constant`. */
const TURNED: Readonly<Record<string, string>> = {
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
  '==': '==',
  '!=': '!=',
};

interface ConstantComparison {
  readonly name: string;
  readonly operator: Operator;
  readonly value: Run;
  readonly constant: unknown;
  /** The constant is on the left. */
  readonly isTurned: boolean;
  readonly offset: number;
}

/** Whether plain JSON numbers suffice for the constant: an `int` and an equal `double` compare alike. */
export function comparesNumbers(name: string, constant: unknown): boolean {
  return TURNED[name] !== undefined && limitOf(constant) !== undefined;
}

/** `undefined` = no faster way than the operator. */
export function comparisonRun(comparison: ConstantComparison): Run | undefined {
  const { name, operator, value, constant, isTurned, offset } = comparison;
  const turned = TURNED[name];
  if (turned === undefined) {
    return undefined;
  }
  const otherwise: Otherwise = (one, { meter }) =>
    one instanceof Failure
      ? one
      : placed(isTurned ? operator(constant, one, meter) : operator(one, constant, meter), offset);
  const limit = limitOf(constant);
  if (limit !== undefined) {
    return numberRun(isTurned ? turned : name, value, limit, otherwise);
  }
  if (constant instanceof Duration || constant instanceof Timestamp) {
    return momentRun(isTurned ? turned : name, value, constant, otherwise);
  }
  return typeof constant === 'string' && (name === '==' || name === '!=')
    ? textRun(name === '==', value, constant, otherwise)
    : undefined;
}

type Otherwise = (value: unknown, frame: Frame) => unknown;

/** Beyond 53 bits a number may be several ints. Below, rounding an int does not move it across the limit. */
function limitOf(constant: unknown): number | undefined {
  return typeof constant === 'number'
    ? constant
    : typeof constant === 'bigint' && Number.isSafeInteger(Number(constant))
      ? Number(constant)
      : undefined;
}

/** A separate function for each operator: a common one would look up the operator for each request. */
function numberRun(name: string, left: Run, limit: number, otherwise: Otherwise): Run {
  const slot = slotOfRun(left);
  switch (name) {
    case '<':
      return (frame) => {
        const value = valueIn(frame, left, slot);
        return typeof value === 'number'
          ? value < limit
          : typeof value === 'bigint'
            ? Number(value) < limit
            : otherwise(value, frame);
      };
    case '<=':
      return (frame) => {
        const value = valueIn(frame, left, slot);
        return typeof value === 'number'
          ? value <= limit
          : typeof value === 'bigint'
            ? Number(value) <= limit
            : otherwise(value, frame);
      };
    case '>':
      return (frame) => {
        const value = valueIn(frame, left, slot);
        return typeof value === 'number'
          ? value > limit
          : typeof value === 'bigint'
            ? Number(value) > limit
            : otherwise(value, frame);
      };
    case '>=':
      return (frame) => {
        const value = valueIn(frame, left, slot);
        return typeof value === 'number'
          ? value >= limit
          : typeof value === 'bigint'
            ? Number(value) >= limit
            : otherwise(value, frame);
      };
    default: {
      const isEqual = name === '==';
      return (frame) => {
        const value = valueIn(frame, left, slot);
        return typeof value === 'number'
          ? (value === limit) === isEqual
          : typeof value === 'bigint'
            ? (Number(value) === limit) === isEqual
            : otherwise(value, frame);
      };
    }
  }
}

function textRun(isEqual: boolean, left: Run, text: string, otherwise: Otherwise): Run {
  const slot = slotOfRun(left);
  const { length } = text;
  const steps = textSteps(length);
  return (frame) => {
    const value = valueIn(frame, left, slot);
    if (typeof value !== 'string') {
      return otherwise(value, frame);
    }
    if (value.length !== length) {
      return !isEqual;
    }
    frame.meter.spend(steps);
    return (value === text) === isEqual;
  };
}

/** Durations or times. */
function momentRun(name: string, left: Run, limit: Duration | Timestamp, otherwise: Otherwise): Run {
  const slot = slotOfRun(left);
  const { nanos } = limit;
  const isDuration = limit instanceof Duration;
  const ifLess = name.startsWith('<') || name === '!=';
  const ifEqual = /^[<>=]=$/.test(name);
  const ifMore = name.startsWith('>') || name === '!=';
  return (frame) => {
    const value = valueIn(frame, left, slot);
    const isSuited = isDuration ? value instanceof Duration : value instanceof Timestamp;
    if (!isSuited) {
      return otherwise(value, frame);
    }
    const { nanos: own } = value as Duration | Timestamp;
    return own < nanos ? ifLess : own === nanos ? ifEqual : ifMore;
  };
}
