/** Tracks where each value of a merged configuration comes from, and which sources it overrides. */
import { isMapping, type Mapping, type Path } from '../yaml/tree.ts';

/** A value that is not a mapping, or an empty mapping, with the sources that set it. */
export interface Leaf<Source> {
  readonly path: Path;
  readonly value: unknown;
  readonly source: Source;
  /** The sources whose values it overrides, the last one first. */
  readonly beats: readonly Source[];
}

interface Node<Source> {
  readonly children: Map<string | number, Node<Source>>;
  /** Only of a leaf. */
  source?: Source;
  beats: readonly Source[];
}

/**
 * `merge` reports to it what each overlay sets. A list from one source is one leaf; in a list that was joined, each item is a leaf
 * of its own.
 */
export class Provenance<Source> {
  readonly #root: Node<Source> = { children: new Map(), beats: [] };

  /** The value at the path now comes from an overlay. `sourceOf` = the source of a path within the value. */
  placed(path: Path, value: unknown, sourceOf: (below: Path) => Source): void {
    let node = this.#root;
    for (const step of path) {
      let next = node.children.get(step);
      if (next === undefined) {
        next = { children: new Map(), beats: [] };
        node.children.set(step, next);
      }
      node = next;
    }
    const beaten = sourcesOf(node);
    node.children.clear();
    fill(node, value, beaten, [], sourceOf);
  }

  /** The leaves of a merged configuration, in its order. */
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

/** Each source of a node once, with those that it overrides. */
function sourcesOf<Source>(node: Node<Source>): Source[] {
  const sources = new Set<Source>();
  const visit = ({ source, beats, children }: Node<Source>): void => {
    if (source !== undefined) {
      sources.add(source);
    }
    for (const child of children.values()) {
      visit(child);
    }
    for (const beaten of beats) {
      sources.add(beaten);
    }
  };
  visit(node);
  return [...sources];
}

function onlySource<Source>(node: Node<Source> | undefined): Leaf<Source> | undefined {
  const leaves: Node<Source>[] = [];
  const visit = (one: Node<Source>): void => {
    if (one.source !== undefined) {
      leaves.push(one);
    }
    for (const child of one.children.values()) {
      visit(child);
    }
  };
  if (node !== undefined) {
    visit(node);
  }
  const [first] = leaves;
  return first?.source !== undefined && leaves.every(({ source }) => source === first.source)
    ? { path: [], value: undefined, source: first.source, beats: first.beats }
    : undefined;
}
