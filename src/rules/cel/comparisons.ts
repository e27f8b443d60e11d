/** Fast comparisons with constants, as in most rules. Same results as `OPERATORS`, their fallback. */
import { Failure, type Frame, placed, type Run } from './frame.ts';
import type { Operator } from './operators.ts';
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
  const sizeOf =
    limit !== undefined
      ? numberOf
      : constant instanceof Duration
        ? lengthOf
        : constant instanceof Timestamp
          ? timeOf
          : undefined;
  if (sizeOf !== undefined) {
    return orderRun(isTurned ? turned : name, value, limit ?? (constant as Moment).nanos, sizeOf, otherwise);
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

type Moment = Duration | Timestamp;
type Size = number | bigint | undefined;

const numberOf = (value: unknown): Size =>
  typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : undefined;
const lengthOf = (value: unknown): Size => (value instanceof Duration ? value.nanos : undefined);
const timeOf = (value: unknown): Size => (value instanceof Timestamp ? value.nanos : undefined);

/** `sizeOf`: of values of the constant's kind. `NaN` is neither less nor more than a number, and not equal. */
function orderRun(
  name: string,
  left: Run,
  limit: number | bigint,
  sizeOf: (value: unknown) => Size,
  otherwise: Otherwise,
): Run {
  const isDifferent = name === '!=';
  const ifLess = name.startsWith('<') || isDifferent;
  const ifEqual = /^[<>=]=$/.test(name);
  const ifMore = name.startsWith('>') || isDifferent;
  return (frame) => {
    const value = left(frame);
    const size = sizeOf(value);
    return size === undefined
      ? otherwise(value, frame)
      : size < limit
        ? ifLess
        : size > limit
          ? ifMore
          : size === limit
            ? ifEqual
            : isDifferent;
  };
}

function textRun(isEqual: boolean, left: Run, text: string, otherwise: Otherwise): Run {
  const { length } = text;
  const steps = textSteps(length);
  return (frame) => {
    const value = left(frame);
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
