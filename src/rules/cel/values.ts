/** The values of CEL: texts, booleans and null as in JavaScript, `int` as bigint, `double` as number. */

import { Failure, type Meter } from './frame.ts';

const NANOSECONDS = 1_000_000_000n;
/** From the CEL specification: the years 1 to 9999. */
const MIN_TIMESTAMP = -62_135_596_800n * NANOSECONDS;
const MAX_TIMESTAMP = 253_402_300_800n * NANOSECONDS - 1n;
/** From the CEL specification: about 10,000 years. */
const MAX_DURATION = 315_576_000_000n * NANOSECONDS;
const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;
/** JSON from clients may be nested deeper than the stack. */
const MAX_DEPTH = 100;

/** A moment, in nanoseconds of the epoch. */
export class Timestamp {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }

  static fromMicroseconds(instant: bigint): Timestamp {
    return new Timestamp(instant * 1000n);
  }
}

/** A length of time in nanoseconds, negative for one into the past. */
export class Duration {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

/** A value that may be missing: the result of `.?`. */
export class Optional {
  /** `undefined` = missing. */
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

export const NONE = new Optional(undefined);

/** An `int`, unless it does not fit into 64 bits. */
export function intOf(value: bigint): bigint | Failure {
  return value >= MIN_INT && value <= MAX_INT ? value : new Failure('the number does not fit into 64 bits');
}

export function timestampOf(nanos: bigint): Timestamp | Failure {
  return nanos >= MIN_TIMESTAMP && nanos <= MAX_TIMESTAMP
    ? new Timestamp(nanos)
    : new Failure('the time is not within the years 1 to 9999');
}

export function durationOf(nanos: bigint): Duration | Failure {
  return nanos >= -MAX_DURATION && nanos <= MAX_DURATION
    ? new Duration(nanos)
    : new Failure('the duration is longer than 10,000 years');
}

export function typeName(value: unknown): string {
  switch (typeof value) {
    case 'string':
    case 'function':
    case 'symbol':
    case 'undefined':
      return typeof value;
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'boolean':
      return 'bool';
    default:
      return typeof value === 'object' && value !== null ? objectTypeName(value) : 'null';
  }
}

function objectTypeName(value: object): string {
  if (value instanceof Timestamp) {
    return 'timestamp';
  }
  if (value instanceof Duration) {
    return 'duration';
  }
  if (value instanceof Optional) {
    return 'optional';
  }
  return itemsOf(value) !== undefined ? 'list' : isMap(value) ? 'map' : 'object';
}

/** The elements of a list; `undefined` for anything else. */
export function itemsOf(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : value instanceof JsonList ? value.items : undefined;
}

type CelMap = JsonMap | ReadonlyMap<unknown, unknown>;

export function isMap(value: unknown): value is CelMap {
  return value instanceof JsonMap || value instanceof Map;
}

/** The value of a map's entry; `undefined` = no entry. Whole doubles are the same keys as ints. */
export function entryOf(map: CelMap, key: unknown): unknown {
  const whole = typeof key === 'number' && Number.isInteger(key) ? BigInt(key) : key;
  return map.get(whole);
}

/** Steps to read a whole text. */
export function textSteps(length: number): number {
  return length >> 4;
}

/** By the specification, numbers are equal across their types, values of other types never. */
export function areEqual(a: unknown, b: unknown, meter: Meter, depth = 0): boolean | Failure {
  if (a === b) {
    if (typeof a === 'string') {
      meter.spend(textSteps(a.length));
    }
    return true;
  }
  if (typeof a === 'bigint' || typeof a === 'number') {
    return (
      ((typeof a === 'bigint' && typeof b === 'number') ||
        (typeof a === 'number' && typeof b === 'bigint')) &&
      Number(a) === Number(b)
    );
  }
  if (typeof a === 'string') {
    if (typeof b === 'string' && a.length === b.length) {
      meter.spend(textSteps(a.length));
    }
    return false;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return false;
  }
  if (a instanceof Timestamp) {
    return b instanceof Timestamp && a.nanos === b.nanos;
  }
  if (a instanceof Duration) {
    return b instanceof Duration && a.nanos === b.nanos;
  }
  if (depth > MAX_DEPTH) {
    return new Failure('the values are nested too deeply to be compared');
  }
  if (a instanceof Optional || b instanceof Optional) {
    return a instanceof Optional && b instanceof Optional
      ? a.value === undefined || b.value === undefined
        ? a.value === b.value
        : areEqual(a.value, b.value, meter, depth + 1)
      : false;
  }
  const items = itemsOf(a);
  const others = itemsOf(b);
  if (items !== undefined && others !== undefined) {
    return listsAreEqual(items, others, meter, depth + 1);
  }
  return isMap(a) && isMap(b) ? mapsAreEqual(a, b, meter, depth + 1) : false;
}

function listsAreEqual(
  items: readonly unknown[],
  others: readonly unknown[],
  meter: Meter,
  depth: number,
): boolean | Failure {
  if (items.length !== others.length) {
    return false;
  }
  meter.spend(items.length);
  let failure: Failure | undefined;
  for (const [index, item] of items.entries()) {
    const equal = areEqual(item, others[index], meter, depth);
    if (equal === false) {
      return false;
    }
    failure ??= equal instanceof Failure ? equal : undefined;
  }
  return failure ?? true;
}

function mapsAreEqual(a: CelMap, b: CelMap, meter: Meter, depth: number): boolean | Failure {
  if (a.size !== b.size) {
    return false;
  }
  meter.spend(a.size);
  let failure: Failure | undefined;
  for (const key of a.keys()) {
    const other = b.get(key);
    const equal = other === undefined ? false : areEqual(a.get(key), other, meter, depth);
    if (equal === false) {
      return false;
    }
    failure ??= equal instanceof Failure ? equal : undefined;
  }
  return failure ?? true;
}

/** A mapping of JSON. Inherited members do not exist. */
export class JsonMap {
  readonly #raw: Readonly<Record<string, unknown>>;

  constructor(raw: object) {
    this.#raw = raw as Readonly<Record<string, unknown>>;
  }

  /** `undefined` = there is no such entry. */
  get(key: unknown): unknown {
    return typeof key === 'string' && Object.hasOwn(this.#raw, key) ? fromJson(this.#raw[key]) : undefined;
  }

  keys(): string[] {
    return Object.keys(this.#raw).filter((name) => this.#raw[name] !== undefined);
  }

  get size(): number {
    return this.keys().length;
  }
}

/** A list of JSON. */
export class JsonList {
  readonly #raw: readonly unknown[];
  #items: readonly unknown[] | undefined;

  constructor(raw: readonly unknown[]) {
    this.#raw = raw;
  }

  get items(): readonly unknown[] {
    this.#items ??= this.#raw.map((one) => fromJson(one) ?? null);
    return this.#items;
  }
}

/** Whole numbers become `int`, other numbers `double`. `undefined` = JSON cannot express it. */
export function fromJson(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return value;
    case 'number':
      return Number.isSafeInteger(value) ? BigInt(value) : value;
    case 'object': {
      if (value === null) {
        return null;
      }
      return Array.isArray(value) ? new JsonList(value) : isMapping(value) ? new JsonMap(value) : undefined;
    }
    default:
      return undefined;
  }
}

function isMapping(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
