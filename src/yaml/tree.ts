/** Trees of plain data: what a configuration is once it is read, whatever it was written in. */

/** A mapping by name. `__proto__` is a name like any other: see `setMember`. */
export type Mapping = { readonly [name: string]: unknown };

/** From the root to a value: names, and positions in lists. */
export type Path = readonly (string | number)[];

/** No configuration and no task is nested or as large as this; a circle is. */
const MAX_DEPTH = 100;
const MAX_VALUES = 50_000;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The member of that name, never what every object inherits. */
export function member(mapping: Mapping, name: string): unknown {
  return Object.hasOwn(mapping, name) ? mapping[name] : undefined;
}

/** Sets a member whatever its name: an assignment to `__proto__` would set no member at all. */
export function setMember(mapping: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(mapping, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    mapping[name] = value;
  }
}

/** What stands at a path; `undefined` when nothing does, or when a step is no mapping or list. */
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

/** `kubernetes.pod_config.spec`, `tolerations[2]` */
export function formatPath(path: Path): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('');
}

/**
 * A copy that shares nothing with the value, which must be plain data: `null`, booleans, numbers, texts, lists and mappings
 * of such. A member that is `undefined` is left out. Throws a `TypeError` that names the place of what is none.
 */
export function plainCopy<Value>(value: Value): Value {
  let count = 0;
  // One for all: most copies meet nothing that is worth a name.
  const path: (string | number)[] = [];
  const refuse = (expectation: string): never => {
    throw new TypeError(`${shown(path)}: ${expectation}`);
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
      return refuse('expected less deep and less data, or no circle');
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

function shown(path: Path): string {
  // Deep enough to find it, short enough to read.
  return formatPath(path.slice(0, 8)) || 'the whole';
}
