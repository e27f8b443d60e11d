/**
 * Merges two configurations: mappings member by member; everything else, lists included, replaces the earlier
 * value. A schema can select lists that are joined instead.
 *
 * The inputs are not changed. The result shares their unchanged parts.
 */
import { formatPath, isMapping, type Mapping, member, type Path, setMember } from '../base/yaml/tree.ts';

/** How a list of the overlay is combined with a list of the base. */
export type ListRule =
  /** The overlay replaces the base. */
  | { readonly kind: 'replace' }
  /** The items of the overlay follow those of the base. */
  | { readonly kind: 'append' }
  /**
   * An item is merged into the item with the same value of `key`, else appended. `unnamed`: the rule for
   * items whose key is missing or null.
   */
  | { readonly kind: 'match'; readonly key: string; readonly unnamed: 'append' | 'first' };

/** The rules of one level of a configuration, which refer to the rules of the levels below. */
export interface MergeSchema {
  /** For a member that is a list on both sides. */
  readonly list: (name: string) => ListRule;
  /** For the content of a member. */
  readonly member: (name: string) => MergeSchema;
  /**
   * Whether only a value of the same kind (mapping, list, or neither) or null may override a member. Lists
   * that are always replaced are exempt. Default: anything overrides anything.
   */
  readonly strictKinds?: boolean;
}

/** Called for each value taken whole from the overlay: its path in the result, and in the overlay. */
export type Placed = (path: Path, from: Path, value: unknown) => void;

/** The value of the overlay at this path cannot be merged. */
export class MergeError extends Error {
  override readonly name = 'MergeError';
  readonly path: Path;
  readonly expectation: string;

  constructor(path: Path, expectation: string) {
    super(`${formatPath(path)}: ${expectation}`);
    this.path = path;
    this.expectation = expectation;
  }

  /** Ends at the first list: positions in a joined list differ from those in the overlay. */
  get pathInOverlay(): Path {
    const list = this.path.findIndex((step) => typeof step === 'number');
    return list === -1 ? this.path : this.path.slice(0, list);
  }
}

const REPLACE: ListRule = { kind: 'replace' };

/** At every level, mappings are merged and lists replaced. */
export const generalRules: MergeSchema = { list: () => REPLACE, member: () => generalRules };

/**
 * Merges a mapping over another. Calls `placed` for every value of the overlay that is in the result.
 *
 * @throws MergeError for a value of the overlay that the schema does not allow.
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
    const at = [...path, name];
    const origin = [...from, name];
    if (isMapping(before) && isMapping(value)) {
      setMember(merged, name, mergeMappings(before, value, schema.member(name), at, origin, placed));
    } else if (Array.isArray(before) && Array.isArray(value)) {
      setMember(merged, name, mergeLists(before, value, schema, at, origin, placed));
    } else {
      if (schema.strictKinds === true && Object.hasOwn(base, name)) {
        requireKind(before, value, schema.list(name), at);
      }
      setMember(merged, name, value);
      placed?.(at, origin, value);
    }
  }
  return merged;
}

function requireKind(before: unknown, value: unknown, rule: ListRule, path: Path): void {
  const own = kindOf(value);
  const other = kindOf(before);
  if (own !== other && value !== null && !(own === 'list' && rule.kind === 'replace')) {
    const overridden = before === null ? 'null' : `a ${other}`;
    throw new MergeError(path, `expected no ${own}, because the value that it overrides is ${overridden}`);
  }
}

function kindOf(value: unknown): 'list' | 'mapping' | 'single value' {
  return Array.isArray(value) ? 'list' : isMapping(value) ? 'mapping' : 'single value';
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

/** The position of the item to merge into; -1 or a position that does not exist = none. */
function targetOf(rule: ListRule, items: readonly unknown[], item: unknown): number {
  if (rule.kind === 'match' && isMapping(item)) {
    const value = member(item, rule.key);
    if (value === undefined || value === null) {
      return rule.unnamed === 'first' ? 0 : -1;
    }
    return items.findIndex((other) => isMapping(other) && member(other, rule.key) === value);
  }
  return -1;
}

/** A value that is not a mapping, or an empty mapping, with the sources that set it. */
export interface Leaf<Source> {
  readonly path: Path;
  readonly value: unknown;
  readonly source: Source;
  /** The sources whose values it overrides, the last first. */
  readonly beats: readonly Source[];
}

interface Node<Source> {
  readonly children: Map<string | number, Node<Source>>;
  /** Only for a leaf. */
  source?: Source;
  beats: readonly Source[];
}

/**
 * Records what each overlay of a `merge` sets. A list from one source is one leaf; in a joined list, each
 * item is a leaf.
 */
export class Provenance<Source> {
  readonly #root: Node<Source> = { children: new Map(), beats: [] };

  /** The value at the path now comes from an overlay. `sourceOf` = the source of a path within the value. */
  placed(path: Path, value: unknown, sourceOf: (below: Path) => Source): void {
    let node = this.#root;
    for (const step of path) {
      const next = node.children.get(step) ?? { children: new Map(), beats: [] };
      node.children.set(step, next);
      node = next;
    }
    const beaten = sourcesOf(node);
    node.children.clear();
    fill(node, value, beaten, [], sourceOf);
  }

  /** The leaves of a merged configuration, in order. */
  leaves(tree: Mapping): Leaf<Source>[] {
    const leaves: Leaf<Source>[] = [];
    const visit = (value: unknown, node: Node<Source> | undefined, path: Path): void => {
      const parts = partsOf(value);
      const whole = Array.isArray(value) ? onlySource(node) : undefined;
      if (parts.length > 0 && whole === undefined) {
        for (const [step, part] of parts) {
          visit(part, node?.children.get(step), [...path, step]);
        }
        return;
      }
      const source = whole?.source ?? node?.source;
      if (source !== undefined) {
        leaves.push({ path, value, source, beats: whole?.beats ?? node?.beats ?? [] });
      }
    };
    visit(tree, this.#root, []);
    return leaves;
  }
}

function fill<Source>(
  node: Node<Source>,
  value: unknown,
  beats: readonly Source[],
  below: Path,
  sourceOf: (below: Path) => Source,
): void {
  const parts = partsOf(value);
  delete node.source;
  node.beats = beats;
  if (parts.length === 0) {
    node.source = sourceOf(below);
    return;
  }
  for (const [step, part] of parts) {
    const child: Node<Source> = { children: new Map(), beats };
    node.children.set(step, child);
    fill(child, part, beats, [...below, step], sourceOf);
  }
}

function partsOf(value: unknown): [string | number, unknown][] {
  if (Array.isArray(value)) {
    return [...value.entries()];
  }
  return isMapping(value) ? Object.entries(value) : [];
}

function* nodesOf<Source>(node: Node<Source>): Generator<Node<Source>> {
  yield node;
  for (const child of node.children.values()) {
    yield* nodesOf(child);
  }
}

/** Each source of a node once, before the sources that it overrides. */
function sourcesOf<Source>(node: Node<Source>): Source[] {
  const all = [...nodesOf(node)].flatMap(({ source, beats }) =>
    source === undefined ? [] : [source, ...beats],
  );
  return [...new Set(all)];
}

/** The leaf for a whole list, if it comes from one source. */
function onlySource<Source>(node: Node<Source> | undefined): Leaf<Source> | undefined {
  const leaves = node === undefined ? [] : [...nodesOf(node)].filter(({ source }) => source !== undefined);
  const [first] = leaves;
  return first?.source !== undefined && leaves.every(({ source }) => source === first.source)
    ? { path: [], value: undefined, source: first.source, beats: first.beats }
    : undefined;
}
