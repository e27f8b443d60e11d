/** Which keys a source may not set, or may set alone. */
import { isMapping, type Mapping, member, type Path, setMember } from '../yaml/tree.ts';

/** `['jobs', 'controller']` is that key and everything below it. */
export type Key = readonly string[];

/** A configuration without the keys that its source may not set. */
export interface Permitted {
  readonly tree: Mapping;
  readonly taken: readonly Key[];
}

/** Removes keys from a configuration, and the mappings that become empty. `taken`: the keys that it had set. */
export function withoutKeys(tree: Mapping, keys: readonly Key[]): Permitted {
  const taken = keys.filter((key) => has(tree, key));
  return { tree: taken.reduce<Mapping>((rest, key) => without(rest, key), tree), taken };
}

function has(tree: Mapping, [name = '', ...below]: Key): boolean {
  if (!Object.hasOwn(tree, name)) {
    return false;
  }
  const value = member(tree, name);
  return below.length === 0 || (isMapping(value) && has(value, below));
}

function without(tree: Mapping, [name = '', ...below]: Key): Mapping {
  const value = member(tree, name);
  const rest = below.length > 0 && isMapping(value) ? without(value, below) : undefined;
  const copy: Record<string, unknown> = { ...tree };
  if (rest === undefined || Object.keys(rest).length === 0) {
    delete copy[name];
  } else {
    setMember(copy, name, rest);
  }
  return copy;
}

/**
 * The shortest paths of a configuration that are neither at nor below one of the keys. A text where a key expects a mapping is
 * among them.
 */
export function keysOutside(tree: Mapping, allowed: readonly Key[], path: Path = []): Path[] {
  return Object.entries(tree).flatMap(([name, value]) => {
    const at = [...path, name];
    const below = allowed.filter((key) => key[path.length] === name);
    if (below.some((key) => key.length === at.length)) {
      return [];
    }
    return below.length > 0 && isMapping(value) ? keysOutside(value, below, at) : [at];
  });
}
