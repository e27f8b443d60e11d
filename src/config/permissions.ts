/** Who may set what: keys that a source may not set, and the only ones that it may. */
import { isMapping, type Mapping, member, type Path, setMember } from '../yaml/tree.ts';

/** `['jobs', 'controller']` stands for that key and all below it. */
export type Key = readonly string[];

/** A configuration without the keys that its source may not set, and which of them it had set. */
export interface Permitted {
  readonly tree: Mapping;
  readonly taken: readonly Key[];
}

/** Takes keys out of a configuration, with the mappings that are empty without them. */
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
 * The paths of a configuration that stand at none of the keys and below none of them, each as short as it can be named.
 * Looked for down to the leaf, whatever another configuration has there: a text in place of a mapping is refused too.
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
