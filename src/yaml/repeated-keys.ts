/** Names that a mapping repeats. Only the last value of each would count, so readers of limits refuse them. */
import { isAlias, isMap, isScalar, isSeq, type Node } from 'yaml';
import { asNode, nameOf } from './edit.ts';

/** A key that repeats another one of its mapping. */
export interface RepeatedKey {
  readonly name: string;
  readonly key: Node | null;
}

/** Keys may be aliases: `{&a cpu: 1, *a : 2}` repeats `cpu`. */
export function* repeatedKeys(node: Node | null, anchors = new Map<string, Node>()): Generator<RepeatedKey> {
  if ((isScalar(node) || isMap(node) || isSeq(node)) && node.anchor !== undefined) {
    anchors.set(node.anchor, node);
  }
  if (isSeq(node)) {
    for (const item of node.items) {
      yield* repeatedKeys(asNode(item), anchors);
    }
  } else if (isMap(node)) {
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      const written = asNode(key);
      yield* repeatedKeys(written, anchors);
      const shown = isAlias(written) ? anchors.get(written.source) : written;
      // Any other key is refused when the value is read.
      const name = isScalar(shown) ? nameOf(shown) : undefined;
      if (name !== undefined && seen.has(name)) {
        yield { name, key: written };
      } else if (name !== undefined) {
        seen.add(name);
      }
      yield* repeatedKeys(asNode(value), anchors);
    }
  }
}
