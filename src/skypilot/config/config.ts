import { isMapping, type Mapping, member, nested, plainCopy, setMember } from '../../base/yaml/tree.ts';
import { merge } from '../../config/merge.ts';
import { skypilotRules } from './config-schema.ts';
import { checkOverrideKeys, type OverrideKeys } from './permitted-keys.ts';

/** A configuration over plain data that no longer changes. Copies nothing. Not for policies. */
export let configOver: (tree: Mapping) => Config;
/** The content of a configuration, not to be changed; `undefined` = not a configuration. Not for policies. */
export let treeOf: (value: unknown) => Mapping | undefined;

/**
 * A SkyPilot configuration, read and changed by paths of keys: `['kubernetes', 'provision_timeout']`. Its
 * top-level keys can be used as in a `Map`: `config.get('kubernetes')`, `for (const [key, value] of config)`.
 * Values are copied on the way in and out: changing a result of `get` changes nothing.
 */
export class Config implements Iterable<[string, unknown]> {
  /** Never changed in place, and never returned without a copy: several configurations may share it. */
  #tree: Mapping;

  static {
    configOver = (tree) => new Config(tree);
    treeOf = (value) =>
      typeof value === 'object' && value !== null && #tree in value ? value.#tree : undefined;
  }

  private constructor(tree: Mapping) {
    this.#tree = tree;
  }

  /**
   * A copy of a mapping or of another configuration. `null` and `undefined` mean an empty configuration.
   *
   * @throws TypeError if `dict` is not a mapping of plain data
   */
  static fromDict(dict: Mapping | Config | null | undefined): Config {
    return new Config(dict === null || dict === undefined ? {} : copyOf(dict));
  }

  /** From pairs such as those of a `Map`, another configuration, or `Object.entries`. A later key wins. */
  static fromEntries(entries: Iterable<readonly [string, unknown]>): Config {
    const config = new Config({});
    for (const [key, value] of entries) {
      config.set(key, value);
    }
    return config;
  }

  /** The configuration as plain data. */
  toDict(): Mapping {
    return plainCopy(this.#tree);
  }

  /** For `JSON.stringify`. Includes all values, also secrets. */
  toJSON(): Mapping {
    return this.toDict();
  }

  /** The number of top-level keys. */
  get size(): number {
    return Object.keys(this.#tree).length;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** Whether a top-level key exists, even with `null`. */
  has(key: string): boolean {
    return Object.hasOwn(this.#tree, key);
  }

  /** The value of a top-level key, or `defaultValue` if there is none. */
  get(key: string, defaultValue?: unknown): unknown {
    return this.getNested([key], defaultValue);
  }

  /** Replaces the value of a top-level key. */
  set(key: string, value: unknown): this {
    this.assign([key], value);
    return this;
  }

  /** Removes a top-level key and returns whether it existed. */
  delete(key: string): boolean {
    return this.unset([key]);
  }

  clear(): void {
    this.#tree = {};
  }

  /** A snapshot of the top-level keys, in their order. */
  keys(): IterableIterator<string> {
    return Object.keys(this.#tree).values();
  }

  values(): IterableIterator<unknown> {
    return Object.values(this.toDict()).values();
  }

  entries(): IterableIterator<[string, unknown]> {
    return Object.entries(this.toDict()).values();
  }

  [Symbol.iterator](): IterableIterator<[string, unknown]> {
    return this.entries();
  }

  /**
   * The value at a path, or `defaultValue` if a key is missing or a step is not a mapping. An existing `null`
   * is returned. `overrides` are merged over the configuration first, by the rules of `setNested`. An empty
   * path returns everything.
   *
   * @throws OverrideKeyError if `overrides` set a key that the last argument does not allow
   */
  getNested(
    keys: readonly string[],
    defaultValue?: unknown,
    overrides?: Mapping | Config | null,
    { allowedOverrideKeys, disallowedOverrideKeys }: OverrideKeys = {},
  ): unknown {
    requirePath(keys);
    let value: unknown = this.#tree;
    if (overrides !== undefined && overrides !== null) {
      const over = copyOf(overrides);
      checkOverrideKeys(this.#tree, over, { allowedOverrideKeys, disallowedOverrideKeys });
      value = merge(this.#tree, over, skypilotRules);
    }
    for (const key of keys) {
      if (!isMapping(value) || !Object.hasOwn(value, key)) {
        return defaultValue;
      }
      value = member(value, key);
    }
    return plainCopy(value);
  }

  /**
   * Merges `value` into the configuration, like SkyPilot's `set_nested`: a mapping merges with the mapping at
   * the path, and a list under `kubernetes.pod_config` is appended to the list there. Use `assign` to replace
   * a value. Steps that are not mappings become mappings.
   *
   * @throws MergeError when a list replaces something else in `kubernetes.pod_config` or `custom_metadata`
   */
  setNested(keys: readonly string[], value: unknown): void {
    requirePath(keys);
    this.#tree = merge(this.#tree, wholeOf(nested(keys, plainCopy(value))), skypilotRules);
  }

  /**
   * Removes the key at the end of a path and returns its value, or `defaultValue` if there is none. The
   * mappings around it stay, even if empty. An empty path removes nothing and returns everything.
   */
  popNested(keys: readonly string[], defaultValue?: unknown): unknown {
    const value = this.getNested(keys, defaultValue);
    this.unset(keys);
    return value;
  }

  /** Replaces the value at a path. An empty path replaces the whole configuration. */
  assign(keys: readonly string[], value: unknown): void {
    requirePath(keys);
    this.#tree = wholeOf(assigned(this.#tree, keys, plainCopy(value)));
  }

  /** Removes the key at the end of a path. Returns whether it existed. Its mapping stays, even if empty. */
  unset(keys: readonly string[]): boolean {
    requirePath(keys);
    const parent = keys.slice(0, -1);
    const key = keys.at(-1);
    const holder = parent.reduce<unknown>(
      (value, name) => isMapping(value) && member(value, name),
      this.#tree,
    );
    if (key === undefined || !isMapping(holder) || !Object.hasOwn(holder, key)) {
      return false;
    }
    const { [key]: _, ...rest } = holder;
    this.#tree = assigned(this.#tree, parent, rest) as Mapping;
    return true;
  }
}

/** A string would be read as a path of its characters, and find nothing. */
function requirePath(keys: readonly string[]): void {
  if (!Array.isArray(keys) || keys.some((key) => typeof key !== 'string')) {
    throw new TypeError("expected a list of names, such as ['kubernetes', 'pod_config']");
  }
}

/** Accepts a configuration from another copy of this package, too. */
function copyOf(dict: Mapping | Config): Mapping {
  const { toDict } = dict;
  return wholeOf(plainCopy(typeof toDict === 'function' ? toDict.call(dict) : dict));
}

function wholeOf(value: unknown): Mapping {
  if (!isMapping(value)) {
    throw new TypeError('expected the whole configuration to be a mapping');
  }
  return value;
}

function assigned(tree: unknown, [key, ...below]: readonly string[], value: unknown): unknown {
  if (key === undefined) {
    return value;
  }
  const copy: Record<string, unknown> = isMapping(tree) ? { ...tree } : {};
  setMember(copy, key, assigned(member(copy, key), below, value));
  return copy;
}
