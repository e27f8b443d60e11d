/**
 * What a filter is given to look at. A filter that changed a lease in place would change what its caller holds, and
 * what the filters before it have already accepted. Copying or freezing would cost more the larger the lease is; this
 * costs nothing until something is read, and an attempt to write throws, which refuses the lease.
 */

/** The value behind a view. */
const originals = new WeakMap<object, object>();

const refuseToWrite = () => {
  throw new TypeError('a filter tried to change the request in place; return allow({ ...lease, … }) instead');
};

/**
 * A view of plain objects and arrays that can be read, spread and serialised like the value itself, but not written
 * to at any depth. Other values (texts, `Date`, luxon `DateTime`) are returned as they are.
 */
export function readOnly<Value>(value: Value): Value {
  return isPlain(value) && !originals.has(value) ? view(value) : value;
}

/** The value itself: views at any depth are replaced by what they show. Parts that hold no view are kept, not copied. */
export function withoutViews<Value>(value: Value): Value {
  return unwrap(value, new Map()) as Value;
}

function unwrap(value: unknown, seen: Map<object, unknown>): unknown {
  if (!isPlain(value)) {
    return value;
  }
  const original = originals.get(value);
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
  // A stand-in as the proxy's target: a frozen original would otherwise forbid to answer with views of its parts.
  const standIn = Array.isArray(original) ? [] : {};
  const views = new Map<PropertyKey, unknown>();
  const read = (key: PropertyKey) => {
    const value: unknown = Reflect.get(original, key);
    if (!isPlain(value)) {
      return value;
    }
    let part = views.get(key);
    if (part === undefined) {
      part = view(value);
      views.set(key, part);
    }
    return part;
  };
  const proxy = new Proxy(standIn, {
    // JSON.stringify asks for it first, and then reads the original at full speed.
    get: (_, key) => (key === 'toJSON' && !(key in original) ? () => original : read(key)),
    has: (_, key) => Reflect.has(original, key),
    ownKeys: () => Reflect.ownKeys(original),
    getPrototypeOf: () => Reflect.getPrototypeOf(original),
    getOwnPropertyDescriptor: (_, key) => {
      const descriptor = Reflect.getOwnPropertyDescriptor(original, key);
      return (
        descriptor && {
          value: read(key),
          enumerable: descriptor.enumerable ?? false,
          writable: true,
          configurable: key !== 'length' || !Array.isArray(original),
        }
      );
    },
    set: refuseToWrite,
    defineProperty: refuseToWrite,
    deleteProperty: refuseToWrite,
    setPrototypeOf: refuseToWrite,
    preventExtensions: refuseToWrite,
  });
  originals.set(proxy, original);
  return proxy as Value;
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Array.isArray(value);
}
