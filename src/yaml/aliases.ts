/** Replaces aliases and merge keys by copies of what they refer to, so that a change in one place changes that place only. */
import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, visit } from 'yaml';
import { Special } from './dialect.ts';
import { YamlError } from './error.ts';

/** A few lines of aliases to aliases can expand to billions of nodes. */
const MAX_NODES = 20_000;

/** The same tree without aliases and anchors. Throws `YamlError` for an alias without an anchor, to itself, or to too much. */
export function withoutAliases(root: Node): Node {
  if (!hasAliases(root)) {
    return root;
  }
  const anchors = new Map<string, Node>();
  const open = new Set<Node>();
  const sizes = new Map<Node, number>();
  let added = 0;

  const resolved = (node: Node | null): Node | null => {
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target === undefined) {
        throw new YamlError('an alias has no anchor before it');
      }
      if (open.has(target)) {
        throw new YamlError('an alias refers to a node that contains it');
      }
      added += sizeOf(target, sizes);
      if (added > MAX_NODES) {
        throw new YamlError(`its aliases expand to more than ${MAX_NODES} nodes`);
      }
      return target.clone() as Node;
    }
    if ((isScalar(node) || isMap(node) || isSeq(node)) && node.anchor !== undefined) {
      anchors.set(node.anchor, node);
      delete node.anchor;
    }
    if (isMap(node)) {
      open.add(node);
      for (const pair of node.items as Pair<Node | null, Node | null>[]) {
        pair.key = resolved(pair.key);
        pair.value = resolved(pair.value);
      }
      mergeKeys(node);
      open.delete(node);
    } else if (isSeq(node)) {
      open.add(node);
      node.items = (node.items as Node[]).map(resolved);
      open.delete(node);
    }
    return node;
  };
  const mergeKeys = (map: { items: Pair[] }): void => {
    const isMerge = ({ key }: Pair) =>
      isScalar(key) && key.value instanceof Special && key.value.kind === 'merge';
    const merges = map.items.filter(isMerge);
    if (merges.length === 0) {
      return;
    }
    const own = map.items.filter((pair) => !isMerge(pair));
    // The first mapping of a list wins, the last of several "<<", and the mapping's own names over both.
    const sources = merges.flatMap(({ value }) => (isSeq(value) ? value.items.toReversed() : [value]));
    const merged = sources.flatMap((source) => {
      if (!isMap(source)) {
        throw new YamlError('"<<" refers to something that is not a mapping');
      }
      return source.items;
    });
    map.items = [...new Map([...merged, ...own].map((pair) => [nameOf(pair), pair])).values()];
  };
  return resolved(root) ?? root;
}

function hasAliases(root: Node): boolean {
  let found = false;
  visit(root, {
    Alias() {
      found = true;
      return visit.BREAK;
    },
    Scalar(_, { value }) {
      found ||= value instanceof Special && value.kind === 'merge';
      return found ? visit.BREAK : undefined;
    },
  });
  return found;
}

/** The identity of a key in a mapping: `8080` is not `'8080'`. */
function nameOf({ key }: Pair): unknown {
  return isScalar(key) ? key.value : key;
}

function sizeOf(node: Node, sizes: Map<Node, number>): number {
  const known = sizes.get(node);
  if (known !== undefined) {
    return known;
  }
  let size = 0;
  visit(node, {
    Node() {
      size += 1;
    },
  });
  sizes.set(node, size);
  return size;
}
