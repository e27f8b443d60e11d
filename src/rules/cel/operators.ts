/** The operators of CEL on values of any type: unsupported types are failures. */
import { Failure, type Meter } from './frame.ts';
import {
  areEqual,
  Duration,
  durationOf,
  entryOf,
  intOf,
  isMap,
  itemsOf,
  Timestamp,
  textSteps,
  timestampOf,
  typeName,
} from './values.ts';

export type Operator = (a: unknown, b: unknown, meter: Meter) => unknown;

const BY_ZERO = new Failure('a division by zero');

export const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['+', add],
  ['-', subtract],
  [
    '*',
    arithmetic(
      '*',
      (a, b) => intOf(a * b),
      (a, b) => a * b,
    ),
  ],
  [
    '/',
    arithmetic(
      '/',
      (a, b) => (b === 0n ? BY_ZERO : intOf(a / b)),
      (a, b) => a / b,
    ),
  ],
  ['%', arithmetic('%', (a, b) => (b === 0n ? BY_ZERO : a % b))],
  ['==', areEqual],
  ['!=', (a, b, meter) => negated(areEqual(a, b, meter))],
  ['<', ordered('<', (order) => order < 0)],
  ['<=', ordered('<=', (order) => order <= 0)],
  ['>', ordered('>', (order) => order > 0)],
  ['>=', ordered('>=', (order) => order >= 0)],
  ['in', isIn],
]);

/** Of two ints or two doubles. `%` has no doubles. */
function arithmetic(
  name: string,
  ofInts: (a: bigint, b: bigint) => bigint | Failure,
  ofDoubles?: (a: number, b: number) => number,
): Operator {
  return (a, b) =>
    typeof a === 'bigint' && typeof b === 'bigint'
      ? ofInts(a, b)
      : ofDoubles !== undefined && typeof a === 'number' && typeof b === 'number'
        ? ofDoubles(a, b)
        : unsuited(name, a, b);
}

function add(a: unknown, b: unknown, meter: Meter): unknown {
  if (typeof a === 'bigint' && typeof b === 'bigint') {
    return intOf(a + b);
  }
  if (typeof a === 'number' && typeof b === 'number') {
    return a + b;
  }
  if (typeof a === 'string' && typeof b === 'string') {
    meter.spend(textSteps(a.length + b.length));
    return a + b;
  }
  if (a instanceof Duration) {
    return b instanceof Duration
      ? durationOf(a.nanos + b.nanos)
      : b instanceof Timestamp
        ? timestampOf(a.nanos + b.nanos)
        : unsuited('+', a, b);
  }
  if (a instanceof Timestamp && b instanceof Duration) {
    return timestampOf(a.nanos + b.nanos);
  }
  const items = itemsOf(a);
  const others = itemsOf(b);
  if (items !== undefined && others !== undefined) {
    meter.spend(items.length + others.length);
    return [...items, ...others];
  }
  return unsuited('+', a, b);
}

function subtract(a: unknown, b: unknown): unknown {
  if (typeof a === 'bigint' && typeof b === 'bigint') {
    return intOf(a - b);
  }
  if (typeof a === 'number' && typeof b === 'number') {
    return a - b;
  }
  if (a instanceof Timestamp) {
    return b instanceof Timestamp
      ? between(a, b)
      : b instanceof Duration
        ? timestampOf(a.nanos - b.nanos)
        : unsuited('-', a, b);
  }
  return a instanceof Duration && b instanceof Duration ? durationOf(a.nanos - b.nanos) : unsuited('-', a, b);
}

/** The specification limits it to 64 bits: 292 years. */
function between(a: Timestamp, b: Timestamp): unknown {
  const nanos = a.nanos - b.nanos;
  return BigInt.asIntN(64, nanos) === nanos
    ? new Duration(nanos)
    : new Failure('the times are more than 292 years apart');
}

export function negative(value: unknown): unknown {
  return typeof value === 'bigint'
    ? intOf(-value)
    : typeof value === 'number'
      ? -value
      : new Failure(`expected a number behind -, got ${typeName(value)}`);
}

/** `!`, also for a failed comparison. */
export function negated(value: unknown): unknown {
  return typeof value === 'boolean'
    ? !value
    : value instanceof Failure
      ? value
      : new Failure(`expected true or false behind !, got ${typeName(value)}`);
}

/** Comparisons with `NaN` are false. Mixed numbers compare as doubles, as in CEL's conformance cases. */
function ordered(name: string, holds: (order: number) => boolean): Operator {
  return (a, b, meter) => {
    if (typeof a === 'bigint' || typeof a === 'number') {
      return typeof b === 'bigint' || typeof b === 'number'
        ? holds(typeof a === typeof b ? orderOfNumbers(a, b) : orderOfNumbers(Number(a), Number(b)))
        : unsuited(name, a, b);
    }
    if (typeof a === 'string' && typeof b === 'string') {
      meter.spend(textSteps(Math.min(a.length, b.length)));
      return holds(orderOfTexts(a, b));
    }
    if (typeof a === 'boolean' && typeof b === 'boolean') {
      return holds(Number(a) - Number(b));
    }
    return (a instanceof Timestamp && b instanceof Timestamp) ||
      (a instanceof Duration && b instanceof Duration)
      ? holds(a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0)
      : unsuited(name, a, b);
  };
}

function orderOfNumbers(a: bigint | number, b: bigint | number): number {
  return a < b ? -1 : a > b ? 1 : a >= b ? 0 : Number.NaN;
}

/** By code points: JavaScript compares the halves of surrogate pairs, which sort before U+E000. */
function orderOfTexts(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let index = 0;
  while (index < shorter && a.charCodeAt(index) === b.charCodeAt(index)) {
    index += 1;
  }
  if (index === shorter) {
    return a.length - b.length;
  }
  const one = a.charCodeAt(index);
  const other = b.charCodeAt(index);
  return rank(one) - rank(other);
}

/** Surrogates stand for code points above U+FFFF. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

function isIn(value: unknown, all: unknown, meter: Meter): unknown {
  if (isMap(all)) {
    return entryOf(all, value) !== undefined;
  }
  const items = itemsOf(all);
  if (items === undefined) {
    return new Failure(`expected a list or a map behind "in", got ${typeName(all)}`);
  }
  let failure: Failure | undefined;
  for (const item of items) {
    meter.spend(1);
    const equal = areEqual(value, item, meter);
    if (equal === true) {
      return true;
    }
    failure ??= equal === false ? undefined : equal;
  }
  return failure ?? false;
}

function unsuited(operator: string, a: unknown, b: unknown): Failure {
  return new Failure(`${typeName(a)} ${operator} ${typeName(b)} cannot be computed`);
}
