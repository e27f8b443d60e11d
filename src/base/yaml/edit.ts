/** Applies a changed value to the nodes of the value before: equal parts keep their nodes. */
import { isDeepStrictEqual } from 'node:util';
import { diffArrays } from 'diff';
import { isMap, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { asNode, nameOf } from './nodes.ts';
import { isMapping, type Mapping, member } from './tree.ts';

/** Comparing lists costs the square of this. With more changes, items are compared by position. */
const MAX_EDITS = 200;

/** A node for `after` that shares the nodes of the parts that are equal in `before`. No node is changed. */
export function edited(node: Node | null, before: unknown, after: unknown): Node | null {
  if (isDeepStrictEqual(before, after)) {
    return node;
  }
  if (isMap(node) && isMapping(before) && isMapping(after)) {
    return editedMap(node, before, after);
  }
  if (isSeq(node) && Array.isArray(before) && Array.isArray(after)) {
    return editedSeq(node, before, after);
  }
  return nodeOf(after);
}

function editedMap(map: YAMLMap, before: Mapping, after: Mapping): Node {
  const last = new Map(map.items.map((pair) => [nameOf(pair.key), pair]));
  const kept = map.items.flatMap((pair) => {
    const name = nameOf(pair.key);
    if (!Object.hasOwn(after, name)) {
      return [];
    }
    const node = asNode(pair.value);
    const value = last.get(name) === pair ? edited(node, member(before, name), member(after, name)) : node;
    return value === node ? pair : new Pair(pair.key, value);
  });
  const added = Object.entries(after)
    .filter(([name]) => !last.has(name))
    .map(([name, value]) => new Pair<unknown, unknown>(textNode(name), nodeOf(value)));
  return likeIt(map, new YAMLMap(), [...kept, ...added]);
}

function editedSeq(seq: YAMLSeq, before: readonly unknown[], after: readonly unknown[]): Node {
  const parts = diffArrays([...before], [...after], {
    comparator: isDeepStrictEqual,
    maxEditLength: MAX_EDITS,
  });
  const { items } = seq;
  if (parts === undefined) {
    const byPosition = after.map((item, index) => edited(asNode(items[index]), before[index], item));
    return likeIt(seq, new YAMLSeq(), byPosition);
  }
  let index = 0;
  let replaced = 0;
  const found = parts.flatMap(({ added, removed, value }) => {
    if (added) {
      // A changed item is removed, then added.
      return value.map((item) => {
        const from = replaced < index ? replaced++ : items.length;
        return edited(asNode(items[from]), before[from], item);
      });
    }
    const start = index;
    index += value.length;
    replaced = removed ? start : index;
    return removed ? [] : items.slice(start, index);
  });
  return likeIt(seq, new YAMLSeq(), found);
}

/** Gives a new collection the form of another, which is not changed. */
function likeIt<Collection extends YAMLMap | YAMLSeq>(
  original: YAMLMap | YAMLSeq,
  collection: Collection,
  items: Collection['items'],
): Collection {
  const {
    items: { length },
    flow,
    tag,
    comment,
    commentBefore,
    spaceBefore,
  } = original;
  // An empty `{}` or `[]` says nothing about the form.
  const form = { flow: length > 0 && flow, tag, comment, commentBefore, spaceBefore, items };
  return Object.assign(collection, form);
}

function nodeOf(value: unknown): Node {
  if (isMapping(value)) {
    const map = new YAMLMap();
    map.items = Object.entries(value).map(([name, item]) => new Pair(textNode(name), nodeOf(item)));
    map.flow = map.items.length === 0;
    return map;
  }
  if (Array.isArray(value)) {
    const seq = new YAMLSeq();
    seq.items = value.map(nodeOf);
    seq.flow = seq.items.length === 0;
    return seq;
  }
  return typeof value === 'string' ? textNode(value) : new Scalar(value);
}

/** Plain only where it is certain to be read as a text: PyYAML's rules for plain texts differ between versions. */
function textNode(text: string): Scalar {
  const node = new Scalar(text);
  if (/^[A-Za-z_/][\w./@%+-]*(?: [\w./@%+-]+)*$/.test(text)) {
    node.type = Scalar.PLAIN;
  } else {
    node.type = text.includes('\n') ? Scalar.BLOCK_LITERAL : Scalar.QUOTE_DOUBLE;
  }
  return node;
}
