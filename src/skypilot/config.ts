import { merge } from '../config/merge.ts';
import { isMapping, type Mapping, member, plainCopy, setMember } from '../yaml/tree.ts';
import { skypilotRules } from './config-schema.ts';

/**
 * A SkyPilot configuration, read and changed by paths of keys: `['kubernetes', 'provision_timeout']`. Values are
 * copied on the way in and out.
 */
export class Config {
  #tree: Mapping;

  private constructor(tree: Mapping) {
    this.#tree = tree;
  }

  /**
   * `null` and `undefined` mean an empty configuration.
   *
   * @throws TypeError if `dict` is not plain data
   */
  static fromDict(dict: Mapping | null | undefined): Config {
    return new Config(dict === null || dict === undefined ? {} : plainCopy(dict));
  }

  /** The configuration as plain data. */
  toDict(): Mapping {
    return plainCopy(this.#tree);
  }

  /**
   * The value at a path, or `defaultValue` if a key is missing or a step is not a mapping. An existing `null` is
   * returned. `overrides` are merged over the configuration first, by the rules of `setNested`. An empty path returns
   * everything.
   */
  getNested(keys: readonly string[], defaultValue?: unknown, overrides?: Mapping): unknown {
    let value: unknown = overrides === undefined ? this.#tree : merge(this.#tree, overrides, skypilotRules);
    for (const key of keys) {
      if (!isMapping(value) || !Object.hasOwn(value, key)) {
        return defaultValue;
      }
      value = member(value, key);
    }
    return plainCopy(value);
  }

  /**
   * Merges `value` into the configuration, like SkyPilot's `set_nested`: a mapping merges with the mapping at the
   * path, and a list under `kubernetes.pod_config` is appended to the list there. Use `assign` to replace a value.
   * Steps that are not mappings become mappings.
   *
   * @throws MergeError when a list replaces something else in `kubernetes.pod_config` or `custom_metadata`
   */
  setNested(keys: readonly string[], value: unknown): void {
    this.#tree = merge(this.#tree, branch(keys, plainCopy(value)), skypilotRules);
  }

  /** Replaces the value at a path. An empty path replaces the whole configuration. */
  assign(keys: readonly string[], value: unknown): void {
    const copy = plainCopy(value);
    if (keys.length === 0 && !isMapping(copy)) {
      throw new TypeError('expected the whole configuration to be a mapping');
    }
    this.#tree = assigned(this.#tree, keys, copy) as Mapping;
  }

  /**
   * Removes the key at the end of a path and returns whether it existed. The mapping that held it stays, even if
   * empty.
   */
  unset(keys: readonly string[]): boolean {
    const [parent, key] = [keys.slice(0, -1), keys.at(-1)];
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

function branch(keys: readonly string[], value: unknown): Mapping {
  const tree = keys.reduceRight<unknown>((below, key) => {
    const mapping: Record<string, unknown> = {};
    setMember(mapping, key, below);
    return mapping;
  }, value);
  if (!isMapping(tree)) {
    throw new TypeError('expected the whole configuration to be a mapping');
  }
  return tree;
}

function assigned(tree: unknown, [key, ...below]: readonly string[], value: unknown): unknown {
  if (key === undefined) {
    return value;
  }
  const copy: Record<string, unknown> = isMapping(tree) ? { ...tree } : {};
  setMember(copy, key, assigned(member(copy, key), below, value));
  return copy;
}
