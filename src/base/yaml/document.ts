/**
 * A YAML text that is read, changed and written back. Unchanged nodes are written as they were read: `0o14`,
 * dates, numbers of forty digits, block texts and key order are preserved.
 */

import { isDeepStrictEqual } from 'node:util';
import { diffArrays } from 'diff';
import { isMap, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { type Content, isNothing, read, streamOf, withoutMark } from './content.ts';
import { asNode, nameOf, repeatedKeys, view } from './nodes.ts';
import { isMapping, type Mapping, member, type Path } from './tree.ts';

export class YamlDocument {
  readonly #text: string;
  #content: Content | undefined;

  /** Text written by this class is parsed again only when needed. */
  private constructor(text: string, content?: Content) {
    this.#text = text;
    this.#content = content;
  }

  /**
   * Reads a text with one document, as PyYAML's `safe_load` does. Several documents are an error: only the
   * first would be used.
   *
   * @throws YamlError for invalid YAML, several documents, too many tokens, or too deep nesting. Pass a lower
   * `maxTokens` for untrusted texts.
   */
  static parse(written: string, maxTokens?: number): YamlDocument {
    return new YamlDocument(written, read(withoutMark(written), maxTokens));
  }

  /**
   * Reads all documents of a text, such as a Kubernetes manifest, without the empty ones. Line numbers count
   * from the start of the text. `maxTokens` of `parse` applies to each document.
   *
   * @throws YamlError as `parse` does.
   */
  static parseAll(written: string): YamlDocument[] {
    return streamOf(written, ({ contents, errors }) => errors.length > 0 || !isNothing(contents)).map(
      (part) => new YamlDocument(...part),
    );
  }

  /** As `parseAll`, including empty documents, as PyYAML's `safe_load_all` does. */
  static parseStream(written: string): YamlDocument[] {
    return streamOf(written, () => true).map((part) => new YamlDocument(...part));
  }

  static from(value: unknown): YamlDocument {
    return YamlDocument.parse('null').with(value);
  }

  /**
   * The value as a fresh copy of plain data. An unsafe whole number is a `bigint`, a date its source text.
   * The last of repeated names counts.
   */
  get value(): unknown {
    return view(this.#read().root, 'values');
  }

  /** As `value`, but a date is a symbol with its text as description: not a string where types are checked. */
  get typed(): unknown {
    return view(this.#read().root, 'typed');
  }

  /** As `value`, but every scalar is its source text; an empty scalar is `''`. */
  get texts(): unknown {
    return view(this.#read().root, 'texts');
  }

  /** Names repeated in their mapping: `value` has only the last one. */
  repetitions(): { readonly name: string; readonly line: number }[] {
    const { root, lines, repeated = repeatedKeys(root) } = this.#read();
    return [...repeated].map(({ name, key }) => ({
      name,
      line: lines.linePos(key?.range?.[0] ?? 0).line,
    }));
  }

  /** The line of the node at a path, from 1; if there is no such node, of its nearest ancestor. */
  lineOf(path: Path): number {
    return this.#read().lines.linePos(this.#find(path).start).line;
  }

  /** The place of a character of the text at a path, both from 1. `offset`: in the text as parsed, from 0. */
  placeOf(path: Path, offset: number): { readonly line: number; readonly column: number } {
    const { lines, source } = this.#read();
    const { node, start } = this.#find(path);
    const [first = start] = node?.range ?? [];
    const { line, col } = lines.linePos(node === null ? start : writtenOffset(source, first, node, offset));
    return { line, column: col };
  }

  #find(path: Path): { readonly node: Node | null; readonly start: number } {
    let { root: node } = this.#read();
    let start = node?.range?.[0] ?? 0;
    for (const step of path) {
      const pair = isMap(node) ? lastPair(node, String(step)) : undefined;
      node = isSeq(node) && typeof step === 'number' ? asNode(node.items[step]) : asNode(pair?.value);
      start = asNode(pair?.key)?.range?.[0] ?? node?.range?.[0] ?? start;
    }
    return { node, start };
  }

  /** The document with another value; equal parts keep their source text. Expects plain data: see `plainCopy`. */
  with(value: unknown): YamlDocument {
    const { root, written } = this.#read();
    const changed = edited(root, this.value, value);
    return changed === root ? this : new YamlDocument(written(changed));
  }

  /** The text; PyYAML reads it with the same meaning. */
  toString(): string {
    return this.#text;
  }

  /** The text as `with` would write it, to compare with a changed document. */
  format(): string {
    const { root, written } = this.#read();
    return written(root);
  }

  #read(): Content {
    this.#content ??= read(this.#text);
    return this.#content;
  }
}

function lastPair(map: YAMLMap, name: string): Pair | undefined {
  return map.items.findLast(({ key }) => nameOf(key) === name);
}

/** Hex digits of these escapes; other escapes have none. */
const ESCAPE_LENGTHS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * The place of a character in `written`, where the node begins at `start`. Counts non-blank characters:
 * except for quotes and escapes, they are the same in the source and in the parsed text.
 */
function writtenOffset(written: string, start: number, node: Node, offset: number): number {
  if (!isScalar(node) || typeof node.value !== 'string') {
    return start;
  }
  const wanted = node.value.slice(0, offset);
  const before = wanted.replace(/\s/g, '').length;
  const isAfterBlank = wanted === '' || /\s$/.test(wanted);
  const end = node.range?.[1] ?? start;
  let place = contentStart(written, start, end, node);
  let seen = 0;
  while (place < end) {
    const step = unitAt(written, place, node);
    if (!step.isBlank) {
      if (seen === before && (isAfterBlank || before === 0)) {
        return place;
      }
      seen += 1;
    }
    if (seen === before && !isAfterBlank) {
      return place + step.length;
    }
    place += step.length;
  }
  return place;
}

function contentStart(written: string, start: number, end: number, node: Scalar): number {
  switch (node.type) {
    case Scalar.QUOTE_DOUBLE:
    case Scalar.QUOTE_SINGLE:
      return start + 1;
    case Scalar.BLOCK_LITERAL:
    case Scalar.BLOCK_FOLDED: {
      const line = written.indexOf('\n', start);
      return line < 0 ? end : line + 1;
    }
    default:
      return start;
  }
}

/** One character of the parsed text, or a blank. */
function unitAt(written: string, place: number, node: Scalar): { length: number; isBlank: boolean } {
  const character = written.charAt(place);
  if (node.type === Scalar.QUOTE_SINGLE && character === "'") {
    return { length: 2, isBlank: false };
  }
  if (node.type === Scalar.QUOTE_DOUBLE && character === '\\') {
    const code = written.charAt(place + 1);
    return {
      length: 2 + (ESCAPE_LENGTHS[code] ?? 0),
      isBlank: /[\sabtnvfreNLP_0]/.test(code) && !/[abe0]/.test(code),
    };
  }
  return { length: 1, isBlank: /\s/.test(character) };
}

/** Comparing lists costs the square of this. Above it, items are compared by position. */
const MAX_EDITS = 200;

/** A node for `after` that shares nodes with `before` where they are equal. No node is changed. */
function edited(node: Node | null, before: unknown, after: unknown): Node | null {
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

/** Gives a new collection the form of `original`, which is not changed. */
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
  // An empty `{}` or `[]` does not define the form.
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

/** Plain only if certain to be read as a text: PyYAML's rules for plain texts differ between versions. */
function textNode(text: string): Scalar {
  const node = new Scalar(text);
  if (/^[A-Za-z_/][\w./@%+-]*(?: [\w./@%+-]+)*$/.test(text)) {
    node.type = Scalar.PLAIN;
  } else {
    node.type = text.includes('\n') ? Scalar.BLOCK_LITERAL : Scalar.QUOTE_DOUBLE;
  }
  return node;
}
