/** Trees of plain data: a parsed configuration in any format. */

/** A mapping by name. `__proto__` is a name like any other: see `setMember`. */
export type Mapping = { readonly [name: string]: unknown };

/** From the root to a value: names, and list indexes. */
export type Path = readonly (string | number)[];

/** No configuration, task or request is deeper or larger; a circular reference is. */
export const MAX_DEPTH = 100;
export const TOO_DEEP = `it is nested deeper than ${MAX_DEPTH} levels`;
const MAX_VALUES = 50_000;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of a text in JSON; `undefined` = it is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The own member with that name, never an inherited one. */
export function member<Value>(mapping: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(mapping, name) ? mapping[name] : undefined;
}

/** Sets a member of any name: an assignment to `__proto__` would not create a member. */
export function setMember(mapping: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(mapping, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    mapping[name] = value;
  }
}

/** A copy with the members changed. */
export function mapMembers(
  mapping: Mapping,
  change: (value: unknown, name: string) => unknown,
): Record<string, unknown> {
  const changed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(mapping)) {
    setMember(changed, name, change(value, name));
  }
  return changed;
}

/** Whether a path is that of `start`, or below it. */
export function isAtOrBelow(path: Path, start: Path): boolean {
  return start.every((step, index) => path[index] === step);
}

/** A mapping per step of the path, with the value at the end. */
export function nested(path: readonly string[], value: unknown): unknown {
  return path.reduceRight<unknown>((below, name) => {
    const mapping: Record<string, unknown> = {};
    setMember(mapping, name, below);
    return mapping;
  }, value);
}

/** The value at a path; `undefined` when there is none. */
export function valueAt(tree: unknown, path: Path): unknown {
  let value = tree;
  for (const step of path) {
    if (Array.isArray(value)) {
      value = typeof step === 'number' ? value[step] : undefined;
    } else {
      value = isMapping(value) ? member(value, String(step)) : undefined;
    }
  }
  return value;
}

/** The way to the first list or mapping that is too deep for code that recurses; `undefined` = there is none. */
export function tooDeepAt(value: unknown, levels = MAX_DEPTH): Path | undefined {
  if (typeof value !== 'object' || value === null) {
    return undefined;
  }
  if (levels === 0) {
    return [];
  }
  for (const name in value) {
    const below = (value as Mapping)[name];
    // Every request comes here, and most of its values are texts.
    const path = typeof below === 'object' ? tooDeepAt(below, levels - 1) : undefined;
    if (path !== undefined) {
      return [Array.isArray(value) ? Number(name) : name, ...path];
    }
  }
  return undefined;
}

/** `lease.extra[0]: it is nested deeper than 100 levels`; `undefined` = it is not. Names where it begins. */
export function depthMistake(value: unknown): string | undefined {
  const path = tooDeepAt(value);
  return path && `${formatPath(path.slice(0, 3))}: ${TOO_DEEP}`;
}

/** `kubernetes.pod_config.spec`, `tolerations[2]` */
export function formatPath(path: Path): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('');
}

/**
 * A deep copy of plain data: `null`, booleans, numbers, texts, and lists and mappings of these. Omits members
 * that are `undefined`. Throws a `TypeError` with the path of anything else.
 */
export function plainCopy<Value>(value: Value): Value {
  let count = 0;
  // One array for the whole copy: most copies never need a path.
  const path: (string | number)[] = [];
  const refuse = (expectation: string): never => {
    throw new TypeError(`${shownPath(path)}: ${expectation}`);
  };
  const copyAt = (step: string | number, from: unknown): unknown => {
    path.push(step);
    const copied = copy(from);
    path.pop();
    return copied;
  };
  const copy = (from: unknown): unknown => {
    count += 1;
    if (path.length > MAX_DEPTH || count > MAX_VALUES) {
      return refuse(
        `expected at most ${MAX_DEPTH} levels and ${MAX_VALUES} values, and no circular reference`,
      );
    }
    switch (typeof from) {
      case 'string':
      case 'boolean':
      case 'number':
      case 'bigint':
        return from;
      case 'object':
        break;
      default:
        return refuse(`expected plain data, got ${typeof from}`);
    }
    if (from === null) {
      return from;
    }
    if (Array.isArray(from)) {
      return Array.from(from, (item, index) => copyAt(index, item));
    }
    const prototype = Object.getPrototypeOf(from);
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      return refuse('expected plain data, got an instance of a class');
    }
    const mapping: Record<string, unknown> = {};
    for (const [name, item] of Object.entries(from)) {
      if (item !== undefined) {
        setMember(mapping, name, copyAt(name, item));
      }
    }
    return mapping;
  };
  return copy(value) as Value;
}

function shownPath(path: Path): string {
  // Long enough to find the place, short enough to read.
  return formatPath(path.slice(0, 8)) || 'the value';
}

/** The text is not usable YAML. The message never contains a part of the text. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  /** The message without the line number. */
  readonly reason: string;
  /** From 1; `undefined` for the whole text. */
  readonly line: number | undefined;

  constructor(reason: string, line?: number) {
    super(line === undefined ? reason : `line ${line}: ${reason}`);
    this.reason = reason;
    this.line = line;
  }
}

/** For operators, shortened. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  }
  if (isMapping(value)) {
    return Object.keys(value).length === 0 ? 'an empty mapping' : 'a mapping';
  }
  return value === undefined ? 'nothing' : String(value);
}
