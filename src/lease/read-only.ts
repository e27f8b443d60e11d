/**
 * What a filter is given to look at. A filter that changed a lease in place would change what its caller holds, and
 * what the filters before it have already accepted. Copying or freezing would cost more the larger the lease is; this
 * costs nothing until something is read, and an attempt to write throws, which refuses the lease.
 */

/**
 * A proxy's target, in place of the value itself: a frozen value would otherwise forbid to answer with views of its
 * parts. An array where the value is one, for `Array.isArray`.
 */
interface StandIn {
  [ORIGINAL]: object;
  [PARTS]: Map<PropertyKey, object> | undefined;
}
/** Asked of a view, it leads to the value behind it. Nobody else has this symbol; a WeakMap would cost more than the check. */
const ORIGINAL = Symbol('original');
const PARTS = Symbol('views of parts');

/**
 * A view of plain objects and arrays that can be read, spread and serialised like the value itself, but not written
 * to at any depth. Other values (texts, `Date`, luxon `DateTime`) are returned as they are.
 */
export function readOnly<Value>(value: Value): Value {
  return isPlain(value) && originalOf(value) === undefined ? view(value) : value;
}

/**
 * What a view shows; anything else as it is. For our own code that looks at all of a request, and changes nothing: through a view
 * that takes ten times as long.
 */
export function shownBy<Value extends object>(value: Value): Value {
  return (originalOf(value) as Value | undefined) ?? value;
}

/** The value itself: views at any depth are replaced by what they show. Parts that hold no view are kept, not copied. */
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
    return value;
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
    // JSON.stringify asks for it first, and then reads the original at full speed.
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
        // An array's own length is the one property that the stand-in has too, and can't be said otherwise of.
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
