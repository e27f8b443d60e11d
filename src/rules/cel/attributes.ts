/** Parts of values: attributes of objects, entries of maps, and elements of lists. */
import { errorText } from '../../base/errors.ts';
import type { Attribute, RuleEnvironment } from './environment.ts';
import { Failure, placed, type Run } from './frame.ts';
import { missingAttribute } from './mistakes.ts';
import { checkedTypeOf, ExpressionMistake, type Node, sourceOf } from './syntax.ts';
import { entryOf, isMap, itemsOf, JsonMap, Optional, typeName } from './values.ts';

type Dot = Node & { readonly op: '.' | '.?' };
type Brackets = Node & { readonly op: '[]' | '[?]' };

export function variableRun(name: string, offset: number): Run {
  const missing = new Failure(`${name} is missing`, offset);
  return ({ activation }) => {
    try {
      return valueOr((activation as Readonly<Record<string, unknown>>)[name], missing);
    } catch (thrown) {
      return failureOf(thrown).at(offset);
    }
  };
}

/** `a.b`, `a.?b`. `isNumeric`: reads JSON numbers as they are, if `int` and `double` make no difference. */
export function attributeRun(environment: RuleEnvironment, node: Dot, value: Run, isNumeric = false): Run {
  const [base, name] = node.args;
  const { pos } = node;
  const read = partReader(environment, checkedTypeOf(base) ?? 'dyn', name);
  if (node.op === '.?') {
    return (frame) => {
      const one = value(frame);
      return one instanceof Failure ? one : placed(optionalPart(one, read), pos);
    };
  }
  const missing = new Failure(`${sourceOf(node)} is missing`, pos);
  return (frame) => {
    const one = value(frame);
    if (one instanceof JsonMap) {
      return valueOr(isNumeric ? one.plain(name) : one.get(name), missing);
    }
    return one instanceof Failure
      ? one
      : placed(one instanceof Optional ? optionalPart(one, read) : valueOr(read(one), missing), pos);
  };
}

/** `a[b]` and `a[?b]`. */
export function elementRun(environment: RuleEnvironment, node: Brackets, value: Run, key: Run): Run {
  const isOptional = node.op === '[?]';
  const { start } = node;
  const missing = new Failure(`${sourceOf(node)} is missing`);
  return (frame) => {
    const one = value(frame);
    if (one instanceof Failure) {
      return one;
    }
    const at = key(frame);
    if (at instanceof Failure) {
      return at;
    }
    const read: Part = (inner) => partAt(environment, inner, at);
    return placed(
      isOptional || one instanceof Optional ? optionalPart(one, read) : valueOr(read(one), missing),
      start,
    );
  };
}

/** `has(a.b)`: whether `a` has a `b`. The checker ignores `b`. */
export function presenceRun(environment: RuleEnvironment, operand: Dot, type: string, value: Run): Run {
  const read = partReader(environment, type, operand.args[1]);
  return (frame) => {
    const one = value(frame);
    if (one instanceof Failure) {
      return one;
    }
    const part = one instanceof Optional ? optionalPart(one, read) : read(one);
    return part instanceof Failure
      ? part.at(operand.pos)
      : part instanceof Optional
        ? part.value !== undefined
        : part !== undefined;
  };
}

/** The type of a part, also in `has()`, unlike the checker. @throws ExpressionMistake if it is missing */
export function typeOfPart(environment: RuleEnvironment, node: Node): string {
  const checked = checkedTypeOf(node);
  if (checked !== undefined || node.op !== '.') {
    return checked ?? 'dyn';
  }
  const [base, name] = node.args;
  const type = typeOfPart(environment, base);
  return environment.objectType(type) === undefined
    ? (/^map<\w+, (.+)>$/.exec(type)?.[1] ?? 'dyn')
    : (attributeType(environment, type, name, node.pos) ?? 'dyn');
}

/** The type of an attribute; `undefined` = no known attributes. @throws ExpressionMistake if it is missing */
export function attributeType(
  environment: RuleEnvironment,
  type: string,
  name: string,
  offset: number,
): string | undefined {
  const known = environment.objectType(type);
  const attribute = known?.attributes.get(name);
  if (known !== undefined && attribute === undefined) {
    throw new ExpressionMistake(missingAttribute(type, name, [...known.attributes.keys()]), offset);
  }
  return attribute?.type;
}

/** `null` is a value. */
function valueOr(value: unknown, missing: Failure): unknown {
  return value === undefined ? missing : value;
}

/** A part of a value. `undefined` = missing, a `Failure` = there can be no such part. */
type Part = (value: unknown) => unknown;

/** Reads an attribute of an object, or an entry of a map. `type`: the checker's type of the value. */
function partReader(environment: RuleEnvironment, type: string, name: string): Part {
  const known = environment.objectType(type);
  const attribute = known?.attributes.get(name);
  return (value) => {
    if (known !== undefined && attribute !== undefined && known.isInstance(value)) {
      return guarded(attribute, value);
    }
    return isMap(value) ? value.get(name) : attributeOf(environment, value, name);
  };
}

/** An element of a list, an entry of a map, or an attribute by name. */
function partAt(environment: RuleEnvironment, value: unknown, key: unknown): unknown {
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

/** The part of an optional or plain value, as an optional value. */
function optionalPart(value: unknown, read: Part): unknown {
  const inner = value instanceof Optional ? value.value : value;
  if (inner === undefined) {
    return value;
  }
  const part = read(inner);
  // An index outside the list is missing, like a key outside the map.
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

/** Errors that code of this package throws describe what is wrong with the request. */
export function failureOf(thrown: unknown): Failure {
  return new Failure(errorText(thrown), undefined, thrown);
}
