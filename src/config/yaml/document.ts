/**
 * A YAML text that is read, changed and written back. Where nothing is changed the nodes stay as they were read, so that
 * what nobody touched means what it meant: `0o14`, dates, numbers of forty digits, block texts, the order of keys.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  Composer,
  type Document,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  type ParsedNode,
  Parser,
  Scalar,
  type YAMLMap,
} from 'yaml';
import { type Path, setMember } from '../tree.ts';
import { withoutAliases } from './aliases.ts';
import { dialect, layout, Special } from './dialect.ts';
import { refuseAmbiguous, refuseUnreadable } from './differences.ts';
import { asNode, edited, nameOf } from './edit.ts';
import { YamlError } from './error.ts';

/** A configuration or a task has some hundreds. A million lines would keep everybody else waiting for seconds. */
const MAX_TOKENS = 250_000;
const MAX_DEPTH = 100;
/** Of the parser, which has the document and the scalar on it too. */
const MAX_STACK = MAX_DEPTH + 10;
const TOO_DEEP = `it is nested deeper than ${MAX_DEPTH} levels`;

/** How scalars are seen: as what they are to PyYAML, or all as the texts that they are written as. */
type View = 'values' | 'texts';

export class YamlDocument {
  readonly #text: string;
  readonly #root: Node | null;
  readonly #document: Document;
  readonly #lines: LineCounter;

  private constructor(text: string, document: Document, root: Node | null, lines: LineCounter) {
    this.#text = text;
    this.#document = document;
    this.#root = root;
    this.#lines = lines;
  }

  /**
   * Reads the first document of a text, as PyYAML's `safe_load` does; what follows is not looked at.
   *
   * @throws YamlError for what is no YAML, too much of it, or too deep.
   */
  static parse(text: string): YamlDocument {
    const lines = new LineCounter();
    refuseUnreadable(text);
    const document = firstDocument(text, lines);
    const [error] = document.errors;
    if (error !== undefined) {
      // Its message may hold a piece of the text.
      const reason =
        error.code === 'TAG_RESOLVE_FAILED'
          ? 'a number without digits or with thousands of them, or a lone "="'
          : error.code.toLowerCase().replaceAll('_', ' ');
      throw new YamlError(reason, lines.linePos(error.pos[0]).line);
    }
    const { contents } = document;
    if (contents !== null) {
      refuseAmbiguous(contents, (offset) => lines.linePos(offset).line);
    }
    const root = contents === null ? null : withoutAliases(contents);
    // Everything below walks down the same levels.
    view(root, 'values');
    const end = document.range[2];
    // The end of a line can stand behind the end of the document.
    const own = text.slice(end).trim() === '' ? text : text.slice(0, end);
    return new YamlDocument(own, document, root, lines);
  }

  /** A new one, from plain data. */
  static from(value: unknown): YamlDocument {
    return YamlDocument.parse('null').with(value);
  }

  /**
   * What it means, as plain data that nobody else has: a whole number that is not safe is a `bigint`, a date the text that
   * it is written as. Of a name that stands twice the last one counts.
   */
  get value(): unknown {
    return view(this.#root, 'values');
  }

  /** The same with all scalars as the texts that they are written as; nothing is the empty text. */
  get texts(): unknown {
    return view(this.#root, 'texts');
  }

  /** The line of what stands at a path, from 1; of what is nearest to it where nothing does. */
  lineOf(path: Path): number {
    let node = this.#root;
    let start = node?.range?.[0] ?? 0;
    for (const step of path) {
      const pair = isMap(node) ? lastPair(node, String(step)) : undefined;
      node = isSeq(node) && typeof step === 'number' ? asNode(node.items[step]) : asNode(pair?.value);
      start = asNode(pair?.key)?.range?.[0] ?? node?.range?.[0] ?? start;
    }
    return this.#lines.linePos(start).line;
  }

  /** The document with another value: what is equal stays as it is written. Plain data is expected: see `plainCopy`. */
  with(value: unknown): YamlDocument {
    if (isDeepStrictEqual(this.value, value)) {
      return this;
    }
    const root = edited(asNode(this.#root?.clone()), this.value, value);
    return YamlDocument.parse(printed(this.#document, root));
  }

  /** As PyYAML reads it with the same meaning. */
  toString(): string {
    return this.#text;
  }

  /** Written anew, as it would be if something was changed: for comparing the two. */
  format(): string {
    return printed(this.#document, this.#root);
  }
}

function printed(document: Document, root: Node | null): string {
  const copy = document.clone();
  copy.contents = root as ParsedNode;
  if (isScalar(root) && (root.type === Scalar.BLOCK_LITERAL || root.type === Scalar.BLOCK_FOLDED)) {
    // As the whole of a document its lines would not be indented, which PyYAML expects.
    copy.contents = Object.assign(root.clone(), { type: Scalar.QUOTE_DOUBLE }) as ParsedNode;
  }
  return copy.toString(layout);
}

/** Token by token, so that the rest of what is too much is never read. */
function firstDocument(text: string, lineCounter: LineCounter): Document.Parsed {
  const parser = new Parser(lineCounter.addNewLine);
  const composer = new Composer({ ...dialect, lineCounter });
  lineCounter.addNewLine(0);
  let tokens = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > MAX_TOKENS) {
      throw new YamlError(`it has more than ${MAX_TOKENS} tokens`);
    }
    for (const token of parser.next(lexeme)) {
      for (const document of composer.next(token)) {
        return document as Document.Parsed;
      }
    }
    // Before the composer meets it: where it runs out of stack, a regular expression that is compiled ends the process.
    if (parser.stack.length > MAX_STACK) {
      throw new YamlError(TOO_DEEP);
    }
  }
  for (const token of parser.end()) {
    for (const document of composer.next(token)) {
      return document as Document.Parsed;
    }
  }
  for (const document of composer.end(true, text.length)) {
    return document as Document.Parsed;
  }
  throw new YamlError('it holds no document');
}

function view(node: Node | null, as: View, depth = 0): unknown {
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
  return value instanceof Special ? value.text : value;
}

function lastPair(map: YAMLMap, name: string): Pair | undefined {
  return map.items.findLast(({ key }) => nameOf(key) === name);
}
