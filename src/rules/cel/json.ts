/** Parts of a request as values of CEL. They are converted when an expression reads them, because most are never read. */
import { shownBy } from '../../lease/read-only.ts';

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

  /** The same, but numbers as JSON has them. */
  plain(key: string): unknown {
    if (!Object.hasOwn(this.#raw, key)) {
      return undefined;
    }
    const value = this.#raw[key];
    return typeof value === 'number' ? value : fromJson(value);
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

/** Whole numbers become `int`, other numbers `double`. `undefined` for what JSON cannot express. */
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
      const raw = shownBy(value);
      return Array.isArray(raw) ? new JsonList(raw) : isMapping(raw) ? new JsonMap(raw) : undefined;
    }
    default:
      return undefined;
  }
}

function isMapping(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
