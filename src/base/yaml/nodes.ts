/** Reads the nodes of a document: their plain data, and repeated names. */
import { isAlias, isMap, isScalar, isSeq, type Node } from 'yaml';
import { Special } from './dialect.ts';
import { MAX_DEPTH, setMember, TOO_DEEP, YamlError } from './tree.ts';

export function asNode(value: unknown): Node | null {
  return isMap(value) || isSeq(value) || isScalar(value) || isAlias(value) ? value : null;
}

/** `8080:` and `'8080':` have the same name here, although they are different keys of the document. */
export function nameOf(key: unknown): string {
  if (!isScalar(key)) {
    throw new YamlError('a key of a mapping is not a scalar');
  }
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
}

/**
 * Scalars as the values that PyYAML reads, or as their source texts. A date is a text in `values`; in `typed`
 * it is a symbol with that text as its description, since it has no JSON type.
 */
type View = 'values' | 'typed' | 'texts';

/** A fresh copy. `lineAt` = the line of an offset. @throws YamlError for nodes that are nested too deep. */
export function view(node: Node | null, as: View, lineAt?: (offset: number) => number, depth = 0): unknown {
  if (depth > MAX_DEPTH) {
    throw new YamlError(TOO_DEEP, lineAt?.(node?.range?.[0] ?? 0));
  }
  if (isMap(node)) {
    const mapping: Record<string, unknown> = {};
    for (const { key, value } of node.items) {
      setMember(mapping, nameOf(key), view(asNode(value), as, lineAt, depth + 1));
    }
    return mapping;
  }
  if (isSeq(node)) {
    return node.items.map((item) => view(asNode(item), as, lineAt, depth + 1));
  }
  if (!isScalar(node)) {
    return as === 'texts' ? '' : null;
  }
  const { value, source } = node;
  if (as === 'texts') {
    return value === null ? '' : typeof value === 'string' ? value : (source ?? String(value));
  }
  return value instanceof Special ? (as === 'typed' ? Symbol(value.text) : value.text) : value;
}

export interface RepeatedKey {
  readonly name: string;
  readonly key: Node | null;
}

/**
 * Names that a mapping repeats. Only the last value would count, so readers of limits refuse them. Keys may
 * be aliases: `{&a cpu: 1, *a : 2}` repeats `cpu`.
 */
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
