import { merge } from '../config/merge.ts';
import { isMapping, type Mapping, member, plainCopy, setMember } from '../yaml/tree.ts';
import { skypilotRules } from './config-schema.ts';

/**
 * A SkyPilot configuration, read and changed by paths of keys: `['kubernetes', 'provision_timeout']`. What it hands out are
 * copies, and what it takes it copies.
 */
export class Config {
  #tree: Mapping;

  private constructor(tree: Mapping) {
    this.#tree = tree;
  }

  /**
   * `null` and `undefined` = an empty configuration.
   *
   * @throws TypeError for what is no plain data.
   */
  static fromDict(dict: Mapping | null | undefined): Config {
    return new Config(dict === null || dict === undefined ? {} : plainCopy(dict));
  }

  /** The configuration as plain data. */
  toDict(): Mapping {
    return plainCopy(this.#tree);
  }

  /**
   * The value at a path; `defaultValue` when a key is missing or a step is no mapping. A `null` that is there is returned as
   * `null`. With `overrides` they are laid over the configuration first, by the rules of `setNested`; an empty path returns
   * the whole.
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
   * As SkyPilot's `set_nested`: lays `value` over what is there, which is no assignment. A mapping merges with the mapping at
   * the path, and a list under `kubernetes.pod_config` joins the list there. For a value that is to be exactly this one see
   * `assign`. What is on the way and no mapping becomes one.
   *
   * @throws MergeError for a list over what is none in `kubernetes.pod_config` or `custom_metadata`.
   */
  setNested(keys: readonly string[], value: unknown): void {
    this.#tree = merge(this.#tree, branch(keys, plainCopy(value)), skypilotRules);
  }

  /** Makes the value at a path this one, whatever was there. An empty path takes a whole configuration. */
  assign(keys: readonly string[], value: unknown): void {
    const copy = plainCopy(value);
    if (keys.length === 0 && !isMapping(copy)) {
      throw new TypeError('expected a mapping as the whole configuration');
    }
    this.#tree = assigned(this.#tree, keys, copy) as Mapping;
  }

  /** Removes the key at the end of a path, and returns whether it was there. What held it stays, if need be empty. */
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
    throw new TypeError('expected a mapping as the whole configuration');
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
