/** A changed value in the nodes of the one before: what is equal stays as it is written. */
import { isDeepStrictEqual } from 'node:util';
import { diffArrays } from 'diff';
import { isAlias, isMap, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { YamlError } from './error.ts';
import { isMapping, type Mapping, member } from './tree.ts';

/** Finding which items of a list are still there costs the square of this; beyond it they are told by their position. */
const MAX_EDITS = 200;

export function asNode(value: unknown): Node | null {
  return isMap(value) || isSeq(value) || isScalar(value) || isAlias(value) ? value : null;
}

/** `8080:` and `'8080':` have one name here; in the document they stay two. */
export function nameOf(key: unknown): string {
  if (!isScalar(key)) {
    throw new YamlError('the key of a mapping is no scalar');
  }
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
}

/** A node for `after`, in which is kept what stands in `node` for an equal part of `before`. No node is changed. */
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
      // What is removed comes first: an item that has changed is both.
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

/** A collection in the form of another. The other one stays as it was, and shares what is equal. */
function likeIt<Collection extends YAMLMap | YAMLSeq>(
  { items: { length }, flow, tag, comment, commentBefore, spaceBefore }: YAMLMap | YAMLSeq,
  collection: Collection,
  items: Collection['items'],
): Collection {
  // `{}` and `[]` were written so because there was nothing to write in lines.
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

/** Plain where nobody could take it for something else; PyYAML's rules for what may stand there differ from version to version. */
function textNode(text: string): Scalar {
  const node = new Scalar(text);
  if (/^[A-Za-z_/][\w./@%+-]*(?: [\w./@%+-]+)*$/.test(text)) {
    node.type = Scalar.PLAIN;
  } else {
    node.type = text.includes('\n') ? Scalar.BLOCK_LITERAL : Scalar.QUOTE_DOUBLE;
  }
  return node;
}
