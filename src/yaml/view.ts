/** The nodes of a document as plain data. */
import { isMap, isScalar, isSeq, type Node } from 'yaml';
import { Special } from './dialect.ts';
import { asNode, nameOf } from './edit.ts';
import { YamlError } from './error.ts';
import { setMember } from './tree.ts';

export const MAX_DEPTH = 100;
export const TOO_DEEP = `it is nested deeper than ${MAX_DEPTH} levels`;

/**
 * Scalars as the values that PyYAML reads, or as the texts that they are written as. Of `values`, a date is a text; of `typed`, it is a
 * symbol with that text as its description, since it is of no type of JSON.
 */
export type View = 'values' | 'typed' | 'texts';

/** A fresh copy. @throws YamlError for nodes that are nested too deep. */
export function view(node: Node | null, as: View, depth = 0): unknown {
  if (depth > MAX_DEPTH) {
    throw new YamlError(TOO_DEEP);
  }
  if (isMap(node)) {
    const mapping: Record<string, unknown> = {};
    for (const { key, value } of node.items) {
      setMember(mapping, nameOf(key), view(asNode(value), as, depth + 1));
    }
    return mapping;
  }
  if (isSeq(node)) {
    return node.items.map((item) => view(asNode(item), as, depth + 1));
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
