/** Reads parts of values: attributes, entries, elements. */
import type { Attribute, RuleEnvironment } from './environment.ts';
import { Failure } from './failure.ts';
import { entryOf, isMap, itemsOf, Optional, typeName } from './values.ts';

/** A part of a value. `undefined` = it is missing, a `Failure` = there can be no such part. */
export type Part = (value: unknown) => unknown;

/** Reads an attribute of an object, or an entry of a map. `type`: that of the value, as the checker knows it. */
export function partReader(environment: RuleEnvironment, type: string, name: string): Part {
  const known = environment.objectType(type);
  const attribute = known?.attributes.get(name);
  return (value) => {
    if (known !== undefined && attribute !== undefined && known.isInstance(value)) {
      return guarded(attribute, value);
    }
    return isMap(value) ? value.get(name) : attributeOf(environment, value, name);
  };
}

/** An element of a list, an entry of a map, or an attribute by its name as a text. */
export function partAt(environment: RuleEnvironment, value: unknown, key: unknown): unknown {
  if (isMap(value)) {
    return entryOf(value, key);
  }
  const items = itemsOf(value);
  if (items === undefined) {
    return typeof key === 'string'
      ? attributeOf(environment, value, key)
      : new Failure(`${typeName(value)} has no elements`);
  }
  const place = typeof key === 'number' && Number.isInteger(key) ? BigInt(key) : key;
  if (typeof place !== 'bigint') {
    return new Failure(`expected a whole number as the place in a list, got ${typeName(key)}`);
  }
  return place >= 0n && place < BigInt(items.length)
    ? items[Number(place)]
    : new Failure(`the list has ${items.length} elements, and no element ${place}`);
}

/** The part of an optional value, or of a value: an optional value. */
export function optionalPart(value: unknown, read: Part): unknown {
  const inner = value instanceof Optional ? value.value : value;
  if (inner === undefined) {
    return value;
  }
  const part = read(inner);
  // A place that is not in the list is missing, like a name that is not in the map.
  return part instanceof Failure && itemsOf(inner) === undefined
    ? part
    : new Optional(part instanceof Failure ? undefined : part);
}

function attributeOf(environment: RuleEnvironment, value: unknown, name: string): unknown {
  const type = environment.objectTypeOf(value);
  const attribute = type?.attributes.get(name);
  return attribute === undefined
    ? new Failure(`${type?.name ?? typeName(value)} has no attribute "${name}"`)
    : guarded(attribute, value);
}

function guarded(attribute: Attribute<unknown>, value: unknown): unknown {
  try {
    return attribute.read(value);
  } catch (thrown) {
    return failureOf(thrown);
  }
}

/** What code of this package throws about a request says what is wrong with it. */
export function failureOf(thrown: unknown): Failure {
  return new Failure(thrown instanceof Error ? thrown.message : String(thrown), undefined, thrown);
}
