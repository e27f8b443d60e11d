/** Attributes of objects, entries of maps, and elements of lists. */
import type { RuleEnvironment } from './environment.ts';
import { Failure, placed } from './failure.ts';
import type { Run } from './frame.ts';
import { JsonMap } from './json.ts';
import { missingAttribute } from './mistakes.ts';
import { failureOf, optionalPart, type Part, partAt, partReader } from './select.ts';
import { slotOfRun, valueIn } from './sharing.ts';
import { checkedTypeOf, ExpressionMistake, type Node, sourceOf } from './syntax.ts';
import { Optional } from './values.ts';

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

/** `a.b` and `a.?b`. `isNumeric`: the numbers of JSON as they are, because what reads them makes no difference between `int` and `double`. */
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
  const slot = slotOfRun(value);
  return (frame) => {
    const one = valueIn(frame, value, slot);
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

/** `has(a.b)`: whether `a` has a `b`. The checker does not look at `b`. */
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

/** The type of a part, of parts in `has()` too, which the checker leaves out. @throws ExpressionMistake for attributes that do not exist */
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

/** The type of an attribute; `undefined` for what has no known attributes. @throws ExpressionMistake if there is no such attribute */
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
