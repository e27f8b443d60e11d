/** A changed value in the nodes of the one before: what is equal stays as it is written. */
import { isDeepStrictEqual } from 'node:util';
import { diffArrays } from 'diff';
import { isAlias, isMap, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { isMapping, member } from '../tree.ts';
import { YamlError } from './error.ts';

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

/** A node for `after`, in which is kept what stands in `node` for an equal part of `before`. */
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

function editedMap(
  map: YAMLMap,
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Node {
  if (map.items.length === 0) {
    // `{}` was written so because there was nothing to write in lines.
    map.flow = false;
  }
  const last = new Map(map.items.map((pair) => [nameOf(pair.key), pair]));
  map.items = map.items.filter(({ key }) => Object.hasOwn(after, nameOf(key)));
  for (const [name, value] of Object.entries(after)) {
    const pair = last.get(name);
    if (pair === undefined) {
      map.items.push(new Pair(textNode(name), nodeOf(value)));
    } else {
      pair.value = edited(asNode(pair.value), member(before, name), value);
    }
  }
  return map;
}

function editedSeq(seq: YAMLSeq, before: readonly unknown[], after: readonly unknown[]): Node {
  if (seq.items.length === 0) {
    seq.flow = false;
  }
  const parts = diffArrays([...before], [...after], {
    comparator: isDeepStrictEqual,
    maxEditLength: MAX_EDITS,
  });
  if (parts === undefined) {
    seq.items = after.map((item, index) => edited(asNode(seq.items[index]), before[index], item));
    return seq;
  }
  const { items } = seq;
  let index = 0;
  let replaced = 0;
  seq.items = parts.flatMap(({ added, removed, value }) => {
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
  return seq;
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
  } else if (/^\S[^\t\r]*\n[^\t\r]*$/.test(text) && !/ \n| $/.test(text)) {
    node.type = Scalar.BLOCK_LITERAL;
  } else {
    node.type = Scalar.QUOTE_DOUBLE;
  }
  return node;
}
