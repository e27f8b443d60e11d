/** The names in expressions: variables, attributes of objects, and functions. */
import { Environment } from '@marcbachmann/cel-js';
import { CONVERSIONS, OPTIONAL_FUNCTIONS } from './conversions.ts';
import {
  ANYTHING,
  type CelFunction,
  functionKey,
  listShape,
  SCALAR,
  type Shape,
  TEXT,
  USUAL_ITEMS,
} from './function.ts';
import { TEXT_FUNCTIONS } from './functions/text.ts';
import { TIME_FUNCTIONS } from './functions/time.ts';
import type { Node } from './syntax.ts';

const TIMESTAMP = 'google.protobuf.Timestamp';
const DURATION = 'google.protobuf.Duration';
const SIGNATURE = /^(?:([\w.]+)\.)?(\w+)\((.*)\): *(.+)$/;

export interface Attribute<T> {
  /** In CEL's notation: `string`, `list<Reservation>`; `timestamp` and `duration` for short. */
  readonly type: string;
  /** For the documentation. */
  readonly description: string;
  /** `undefined` = the object has none, which is a failure. Thrown errors are failures, too. */
  read(object: T): unknown;
  /** Maximum number of elements of a list. Default: 100. */
  readonly items?: number;
  /** Maximum number of elements of this attribute in all objects of a list together. */
  readonly total?: number;
  /** The elements are objects that occur once each. */
  readonly isDistinct?: boolean;
  /** Known only with `[keystone] resolve_names`. */
  readonly isName?: boolean;
}

export interface ObjectType<T = unknown> {
  readonly name: string;
  readonly description: string;
  readonly attributes: ReadonlyMap<string, Attribute<T>>;
  readonly isInstance: (value: unknown) => boolean;
}

/** A variable, an attribute or a function, for the documentation. */
export interface Documented {
  readonly name: string;
  readonly type: string;
  readonly description: string;
}

interface Variable extends Documented {
  readonly shape: Shape;
}

interface DocumentedFunction extends CelFunction {
  readonly description: string;
}

/** The names in expressions about one kind of request. */
export class RuleEnvironment {
  readonly #types = new Environment({
    enableOptionalTypes: true,
    limits: {
      maxAstNodes: 2000,
      maxDepth: 50,
      maxListElements: 1000,
      maxMapEntries: 1000,
      maxCallArguments: 8,
    },
  })
    .registerFunction(`string(${TIMESTAMP}): string`, () => '')
    .registerFunction(`string(${DURATION}): string`, () => '')
    .registerFunction(`int(${TIMESTAMP}): int`, () => 0n)
    .registerFunction(`timestamp(${TIMESTAMP}): ${TIMESTAMP}`, () => undefined)
    .registerFunction(`duration(${DURATION}): ${DURATION}`, () => undefined)
    .registerFunction('matches(string, string): bool', () => false);
  readonly #functions = new Map<string, CelFunction>([...TEXT_FUNCTIONS, ...TIME_FUNCTIONS, ...CONVERSIONS]);
  readonly #objects = new Map<string, ObjectType>();
  readonly #variables = new Map<string, Variable>();
  readonly #documented: Documented[] = [];

  /** The types that the parser checks. */
  get types(): Environment {
    return this.#types;
  }

  /** Declare types before those that refer to them. */
  object(...types: readonly ObjectType[]): this {
    for (const type of types) {
      this.#objects.set(type.name, type);
      this.#types.registerType(type.name, {
        // The parser reads types, never values.
        ctor: { [type.name]: class {} }[type.name] ?? Object,
        fields: Object.fromEntries([...type.attributes].map(([name, one]) => [name, longType(one.type)])),
      });
    }
    return this;
  }

  variable(
    name: string,
    type: string,
    description: string,
    sizes: Pick<Attribute<unknown>, 'items' | 'isDistinct'> = {},
  ): this {
    this.#types.registerVariable(name, longType(type));
    this.#variables.set(name, { name, type, description, shape: this.#shapeOf({ type, ...sizes }) });
    return this;
  }

  /** Signatures of a function with the same number of parameters share one implementation. */
  function(signatures: string | readonly string[], implementation: DocumentedFunction): this {
    for (const signature of [signatures].flat()) {
      const [, receiver, name = '', parameters = '', returned = ''] = SIGNATURE.exec(signature) ?? [];
      const types = parameters === '' ? [] : parameters.split(/, */);
      const on = receiver === undefined ? '' : `${longType(receiver)}.`;
      this.#types.registerFunction(
        `${on}${name}(${types.map(longType).join(', ')}): ${longType(returned)}`,
        () => undefined,
      );
      this.#functions.set(functionKey(name, types.length, receiver !== undefined), implementation);
      this.#documented.push({ name, type: signature, description: implementation.description });
    }
    return this;
  }

  /** The function and arguments of a call. `called`: `undefined` = only the parser supports it. */
  callOf(node: Node & { readonly op: 'call' | 'rcall' }): {
    readonly called: CelFunction | undefined;
    readonly nodes: readonly Node[];
  } {
    if (node.op === 'call') {
      const [name, nodes] = node.args;
      return { called: this.#functions.get(functionKey(name, nodes.length, false)), nodes };
    }
    const [name, receiver, written] = node.args;
    const key = functionKey(name, written.length, true);
    return receiver.op === 'id' && receiver.args === 'optional'
      ? { called: OPTIONAL_FUNCTIONS.get(key), nodes: written }
      : { called: this.#functions.get(key), nodes: [receiver, ...written] };
  }

  objectType(name: string): ObjectType | undefined {
    return this.#objects.get(name);
  }

  objectTypeOf(value: unknown): ObjectType | undefined {
    for (const type of this.#objects.values()) {
      if (type.isInstance(value)) {
        return type;
      }
    }
    return undefined;
  }

  variableShape(name: string): Shape | undefined {
    return this.#variables.get(name)?.shape;
  }

  hasVariable(name: string): boolean {
    return this.#variables.has(name);
  }

  get variableNames(): string[] {
    return [...this.#variables.keys()];
  }

  functionNames(areMethods: boolean): string[] {
    const keys = [...this.#functions.keys()].filter((key) => key.startsWith('.') === areMethods);
    return [...new Set(keys.map((key) => key.replace(/^\.|\/.*$/g, '')))];
  }

  /** All names of this environment, without CEL's own functions. Source of the documentation's tables. */
  get documentation(): {
    readonly variables: readonly Documented[];
    readonly types: readonly (Documented & { readonly attributes: readonly Documented[] })[];
    readonly functions: readonly Documented[];
  } {
    return {
      variables: [...this.#variables.values()].map(({ name, type, description }) => ({
        name,
        type,
        description,
      })),
      types: [...this.#objects.values()].map(({ name, description, attributes }) => ({
        name,
        type: name,
        description,
        attributes: [...attributes].map(([attribute, { type, description: text }]) => ({
          name: attribute,
          type,
          description: text,
        })),
      })),
      functions: this.#documented,
    };
  }

  #shapeOf({ type, items, total, isDistinct }: Omit<Attribute<unknown>, 'read' | 'description'>): Shape {
    const inner = /^(list|map)<(?:\w+, *)?(.+)>$/.exec(type);
    if (inner !== null) {
      const [, kind, element = 'dyn'] = inner;
      const item = this.#shapeOf({ type: element });
      const shape = listShape(total ?? items ?? USUAL_ITEMS, item);
      return {
        ...shape,
        weight: kind === 'map' ? 2 * shape.weight : shape.weight,
        isDistinct: isDistinct ?? false,
        shared: total === undefined ? undefined : { total, objects: 1 },
      };
    }
    const object = this.#objects.get(type);
    if (object !== undefined) {
      const attributes = [...object.attributes].map(([name, one]) => [name, this.#shapeOf(one)] as const);
      return { text: 0, items: 0, weight: 1, attributes: new Map(attributes) };
    }
    return type === 'string' ? TEXT : type === 'dyn' ? ANYTHING : SCALAR;
  }
}

type Declared<T> = Omit<Attribute<T>, 'read'> & Partial<Pick<Attribute<T>, 'read'>>;

/**
 * Declares a type of objects. `instances`: the class of its values. An attribute without `read` is the
 * property of the same name.
 */
export function objectType<T, Name extends string>(
  name: string,
  description: string,
  instances: abstract new (...args: never[]) => T,
  attributes: { readonly [Key in Name]: Key extends keyof T ? Declared<T> : Attribute<T> },
): ObjectType<T> {
  const property = (key: string) => (object: T) => object[key as keyof T];
  const declared = Object.entries<Declared<T>>(attributes);
  return {
    name,
    description,
    attributes: new Map(declared.map(([key, one]) => [key, { read: property(key), ...one }])),
    isInstance: (value) => value instanceof instances,
  };
}

function longType(type: string): string {
  return type.replace(/\btimestamp\b/g, TIMESTAMP).replace(/\bduration\b/g, DURATION);
}

/** The name of a type in rules and messages. */
export function shortType(type: string): string {
  return type.replaceAll(TIMESTAMP, 'timestamp').replaceAll(DURATION, 'duration');
}
