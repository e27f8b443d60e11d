/**
 * Read-only views of requests, for filters. A filter that changed a lease in place would change the caller's
 * object, and the lease that earlier filters accepted. Copying or freezing costs more for larger leases; a
 * view costs nothing until it is read. Writing to a view throws, which refuses the lease.
 */

/**
 * The proxy's target, instead of the value: a proxy of a frozen target may not return views of its parts. An
 * array if the value is one, for `Array.isArray`.
 */
interface StandIn {
  [ORIGINAL]: object;
  [PARTS]: Map<PropertyKey, object> | undefined;
}
/**
 * The property of a view that returns its value. The symbol is private to this module. A WeakMap costs more
 * than a check.
 */
const ORIGINAL = Symbol('original');
const PARTS = Symbol('views of parts');

/**
 * A view of a plain object or array. It can be read, spread and serialised like the value, but not written
 * to, at any depth. A `Date` in it is a copy; other values (texts, luxon `DateTime`) are returned unchanged.
 */
export function readOnly<Value>(value: Value): Value {
  if (!isPlain(value) || originalOf(value) !== undefined) {
    return value;
  }
  const made = view(value);
  lastButOne = last;
  last = { view: made, original: value };
  return made;
}

/** The last two views of whole values: all filters of a chain get the same context and lease. */
let last: { readonly view: object; readonly original: object } = { view: {}, original: {} };
let lastButOne = last;

/**
 * The value behind a view; anything else unchanged. For code of this package that only reads a whole request:
 * views are ten times slower.
 */
export function shownBy<Value extends object>(value: Value): Value {
  // Asking the proxy takes as long as parsing a date.
  if (value === last.view) {
    return last.original as Value;
  }
  if (value === lastButOne.view) {
    return lastButOne.original as Value;
  }
  return (originalOf(value) as Value | undefined) ?? value;
}

/** The value with all its views, at any depth, replaced by their values. Parts without views are not copied. */
export function withoutViews<Value>(value: Value): Value {
  return unwrap(value, new Map()) as Value;
}

function unwrap(value: unknown, seen: Map<object, unknown>): unknown {
  if (!isPlain(value)) {
    return value;
  }
  const original = originalOf(value);
  if (original !== undefined) {
    return original;
  }
  if (seen.has(value)) {
    return seen.get(value);
  }
  seen.set(value, value);
  const entries = Object.entries(value).map(([key, item]) => [key, unwrap(item, seen)] as const);
  if (entries.every(([key, item]) => Object.is(item, (value as Record<string, unknown>)[key]))) {
    return value;
  }
  const copy = Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries);
  seen.set(value, copy);
  return copy;
}

function view<Value extends object>(original: Value): Value {
  const standIn: Partial<StandIn> = Array.isArray(original) ? ([] as Partial<StandIn>) : {};
  standIn[ORIGINAL] = original;
  standIn[PARTS] = undefined;
  return new Proxy(standIn as StandIn, READ_ONLY) as object as Value;
}

function originalOf(value: object): object | undefined {
  return (value as Partial<StandIn>)[ORIGINAL];
}

function read(standIn: StandIn, key: PropertyKey): unknown {
  const value: unknown = Reflect.get(standIn[ORIGINAL], key);
  if (!isPlain(value)) {
    // Code that embeds the library may pass a Date, which has setters.
    return value instanceof Date ? new Date(value) : value;
  }
  standIn[PARTS] ??= new Map();
  let part = standIn[PARTS].get(key);
  if (part === undefined) {
    part = view(value);
    standIn[PARTS].set(key, part);
  }
  return part;
}

function refuseToWrite(): never {
  throw new TypeError('a filter tried to change the request in place; return allow({ ...lease, … }) instead');
}

const READ_ONLY: ProxyHandler<StandIn> = {
  get(standIn, key) {
    if (key === ORIGINAL) {
      return standIn[ORIGINAL];
    }
    // JSON.stringify reads it first, and then the original at full speed.
    if (key === 'toJSON' && !(key in standIn[ORIGINAL])) {
      return () => standIn[ORIGINAL];
    }
    return read(standIn, key);
  },
  has: (standIn, key) => Reflect.has(standIn[ORIGINAL], key),
  ownKeys: (standIn) => Reflect.ownKeys(standIn[ORIGINAL]),
  getPrototypeOf: (standIn) => Reflect.getPrototypeOf(standIn[ORIGINAL]),
  getOwnPropertyDescriptor(standIn, key) {
    const descriptor = Reflect.getOwnPropertyDescriptor(standIn[ORIGINAL], key);
    return (
      descriptor && {
        value: read(standIn, key),
        enumerable: descriptor.enumerable ?? false,
        writable: true,
        // An array's `length` is the one property that the target has too, and a proxy must agree with its
        // target.
        configurable: !(key === 'length' && Array.isArray(standIn)),
      }
    );
  },
  set: refuseToWrite,
  defineProperty: refuseToWrite,
  deleteProperty: refuseToWrite,
  setPrototypeOf: refuseToWrite,
  preventExtensions: refuseToWrite,
};

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Array.isArray(value);
}
