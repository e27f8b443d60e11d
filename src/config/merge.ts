/**
 * How two configurations become one: mappings merge member by member, everything else replaces what stood there, lists
 * included. Where lists are joined instead, a schema says so.
 *
 * Nothing that is merged is changed; what neither side changes is shared with the result, not copied.
 */
import { formatPath, isMapping, type Mapping, member, type Path, setMember } from '../yaml/tree.ts';

/** What becomes of a list that is laid over a list. */
export type ListRule =
  /** It takes its place. */
  | { readonly kind: 'replace' }
  /** Its items come behind the others. */
  | { readonly kind: 'append' }
  /** Its one item is merged into the first of the others. */
  | { readonly kind: 'single' }
  /** An item is merged into the one with the same value of `key`, or comes behind the others. One without that key: `unnamed`. */
  | { readonly kind: 'match'; readonly key: string; readonly unnamed: 'append' | 'first' };

/** The rules of one level of a configuration. They are data: a level names the rules of the levels below it. */
export interface MergeSchema {
  /** Of a member that is a list on both sides. */
  readonly list: (name: string) => ListRule;
  /** Of what stands in a member. */
  readonly member: (name: string) => MergeSchema;
  /** Whether a list may only be laid over a list. Default: it replaces whatever stands there. */
  readonly strictLists?: boolean;
}

/** Is told where a value of the overlay now stands as a whole, and where it stood in the overlay. */
export type Placed = (path: Path, from: Path, value: unknown) => void;

/** The overlay has something that can't be merged at this place. */
export class MergeError extends Error {
  override readonly name = 'MergeError';
  readonly path: Path;

  constructor(path: Path, expectation: string) {
    super(`${formatPath(path)}: ${expectation}`);
    this.path = path;
  }
}

const REPLACE: ListRule = { kind: 'replace' };

/** Mappings merge, lists are replaced, at every level. */
export const generalRules: MergeSchema = { list: () => REPLACE, member: () => generalRules };

/**
 * Lays one mapping over another. `placed` is told of every value of the overlay that is in the result.
 *
 * @throws MergeError where the schema does not allow what the overlay has.
 */
export function merge(
  base: Mapping,
  over: Mapping,
  schema: MergeSchema = generalRules,
  placed?: Placed,
): Mapping {
  return mergeMappings(base, over, schema, [], [], placed);
}

function mergeMappings(
  base: Mapping,
  over: Mapping,
  schema: MergeSchema,
  path: Path,
  from: Path,
  placed: Placed | undefined,
): Mapping {
  const names = Object.keys(over);
  if (names.length === 0) {
    return base;
  }
  const merged: Record<string, unknown> = { ...base };
  for (const name of names) {
    const value = over[name];
    const before = member(base, name);
    const [at, origin] = [
      [...path, name],
      [...from, name],
    ];
    if (isMapping(before) && isMapping(value)) {
      setMember(merged, name, mergeMappings(before, value, schema.member(name), at, origin, placed));
    } else if (Array.isArray(before) && Array.isArray(value)) {
      setMember(merged, name, mergeLists(before, value, schema, at, origin, placed));
    } else {
      if (schema.strictLists && Array.isArray(value) && before !== undefined && before !== null) {
        throw new MergeError(at, 'expected no list, since what it is laid over is none');
      }
      setMember(merged, name, value);
      placed?.(at, origin, value);
    }
  }
  return merged;
}

function mergeLists(
  base: readonly unknown[],
  over: readonly unknown[],
  schema: MergeSchema,
  path: Path,
  from: Path,
  placed: Placed | undefined,
): readonly unknown[] {
  const name = String(path.at(-1));
  const rule = schema.list(name);
  if (rule.kind === 'replace') {
    placed?.(path, from, over);
    return over;
  }
  if (rule.kind === 'single' && over.length !== 1) {
    throw new MergeError(path, `expected a list of one item, got ${over.length}`);
  }
  const merged = [...base];
  for (const [index, item] of over.entries()) {
    const target = targetOf(rule, merged, item);
    const into = merged[target];
    if (isMapping(into) && isMapping(item)) {
      const rules = schema.member(name);
      merged[target] = mergeMappings(into, item, rules, [...path, target], [...from, index], placed);
    } else {
      merged.push(item);
      placed?.([...path, merged.length - 1], [...from, index], item);
    }
  }
  return merged;
}

/** The position of the item that another is merged into; one that does not exist = none. */
function targetOf(rule: ListRule, items: readonly unknown[], item: unknown): number {
  if (rule.kind === 'single') {
    return 0;
  }
  if (rule.kind === 'match' && isMapping(item)) {
    const value = member(item, rule.key);
    if (value === undefined) {
      return rule.unnamed === 'first' ? 0 : -1;
    }
    return items.findIndex((other) => isMapping(other) && member(other, rule.key) === value);
  }
  return -1;
}
