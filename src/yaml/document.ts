/**
 * A YAML text that is read, changed and written back. Where nothing is changed the nodes stay as they were read, so that
 * what nobody touched means what it meant: `0o14`, dates, numbers of forty digits, block texts, the order of keys.
 */
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
import { withoutAliases } from './aliases.ts';
import { dialect, layout } from './dialect.ts';
import { refuseAmbiguous, refuseUnreadable } from './differences.ts';
import { asNode, edited, nameOf } from './edit.ts';
import { YamlError } from './error.ts';
import type { Path } from './tree.ts';
import { MAX_DEPTH, TOO_DEEP, view } from './view.ts';

/** A configuration or a task has some hundreds. A million lines would keep everybody else waiting for seconds. */
const MAX_TOKENS = 250_000;
/** Of the parser, which has the document and the scalar on it too. */
const MAX_STACK = MAX_DEPTH + 10;

/** A text that has been read. */
interface Content {
  readonly document: Document;
  readonly root: Node | null;
  readonly lines: LineCounter;
}

export class YamlDocument {
  readonly #text: string;
  #content: Content | undefined;

  /** What is written here is read again only if somebody asks what it means. */
  private constructor(text: string, content?: Content) {
    this.#text = text;
    this.#content = content;
  }

  /**
   * Reads a text of one document, as PyYAML's `safe_load` does: whoever sees only the first of several has not seen it all.
   *
   * @throws YamlError for what is no YAML, several documents, too much, or too deep. `maxTokens`: fewer where it comes from a stranger.
   */
  static parse(written: string, maxTokens = MAX_TOKENS): YamlDocument {
    return new YamlDocument(written, read(withoutMark(written), maxTokens));
  }

  /**
   * Reads all documents of a text, such as a file of Kubernetes; those that hold nothing are left out. Lines are those of the
   * text. Each may be as large as the only one of `parse`.
   *
   * @throws YamlError as `parse`.
   */
  static parseAll(written: string): YamlDocument[] {
    return streamOf(written, ({ contents, errors }) => errors.length > 0 || !isNothing(contents)).map(
      (part) => new YamlDocument(...part),
    );
  }

  /** The same with those that hold nothing, as PyYAML's `safe_load_all` has them. */
  static parseStream(written: string): YamlDocument[] {
    return streamOf(written, () => true).map((part) => new YamlDocument(...part));
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
    return view(this.#read().root, 'values');
  }

  /** The same with all scalars as the texts that they are written as; nothing is the empty text. */
  get texts(): unknown {
    return view(this.#read().root, 'texts');
  }

  /** Where a name stands in a mapping that has it already: of these the value has only the last one. */
  repetitions(): { readonly name: string; readonly line: number }[] {
    const { root, lines } = this.#read();
    return [...repeatedKeys(root)].map((key) => ({
      name: nameOf(key),
      line: lines.linePos(asNode(key)?.range?.[0] ?? 0).line,
    }));
  }

  /** The line of what stands at a path, from 1; of what is nearest to it where nothing does. */
  lineOf(path: Path): number {
    const { root, lines } = this.#read();
    let node = root;
    let start = node?.range?.[0] ?? 0;
    for (const step of path) {
      const pair = isMap(node) ? lastPair(node, String(step)) : undefined;
      node = isSeq(node) && typeof step === 'number' ? asNode(node.items[step]) : asNode(pair?.value);
      start = asNode(pair?.key)?.range?.[0] ?? node?.range?.[0] ?? start;
    }
    return lines.linePos(start).line;
  }

  /** The document with another value: what is equal stays as it is written. Plain data is expected: see `plainCopy`. */
  with(value: unknown): YamlDocument {
    const { document, root } = this.#read();
    const changed = edited(root, this.value, value);
    return changed === root ? this : new YamlDocument(printed(document, changed));
  }

  /** As PyYAML reads it with the same meaning. */
  toString(): string {
    return this.#text;
  }

  /** Written anew, as it would be if something was changed: for comparing the two. */
  format(): string {
    const { document, root } = this.#read();
    return printed(document, root);
  }

  #read(): Content {
    this.#content ??= read(this.#text);
    return this.#content;
  }
}

/**
 * A byte order mark at the start says nothing, and the package takes it for a column where a list begins. A second one would
 * be a letter to PyYAML.
 */
function withoutMark(text: string): string {
  refuseUnreadable(text);
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function read(text: string, maxTokens = MAX_TOKENS): Content {
  const lines = new LineCounter();
  let content: Content | undefined;
  for (const document of documentsOf(text, lines, maxTokens)) {
    if (content !== undefined) {
      throw new YamlError('another document begins here', lines.linePos(document.range[0]).line);
    }
    content = contentOf(document, text, lines);
  }
  if (content === undefined) {
    throw new YamlError('it holds no document');
  }
  return content;
}

/** The documents of a text that are wanted, each with its own piece of it. */
function streamOf(
  written: string,
  isWanted: (document: Document.Parsed) => boolean,
): [text: string, content: Content][] {
  const text = withoutMark(written);
  const lines = new LineCounter();
  return [...documentsOf(text, lines)].filter(isWanted).map((document) => {
    const [start, , end] = document.range;
    return [text.slice(start, end), contentOf(document, text, lines)];
  });
}

function contentOf(document: Document.Parsed, text: string, lines: LineCounter): Content {
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
    refuseUnindented(contents, text, lines);
  }
  const own = text.slice(document.range[0], document.range[2]);
  const mayHaveAliases = own.includes('*') || own.includes('<<');
  const root = contents !== null && mayHaveAliases ? withoutAliases(contents) : contents;
  // Everything below walks down the same levels.
  view(root, 'values');
  return { document, root, lines };
}

/** As a whole document a block text may begin at the margin here; to PyYAML it is over there, and `#` begins a comment. */
function refuseUnindented(root: Node, text: string, lines: LineCounter): void {
  if (isBlock(root)) {
    const [start = 0, end = 0] = root.range ?? [];
    const [, ...written] = text.slice(start, end).split(/\r\n|\r|\n/);
    if (written.some((line) => /^\S/.test(line))) {
      throw new YamlError('a block text that is not indented', lines.linePos(start).line);
    }
  }
}

function isBlock(node: Node | null): node is Scalar {
  return isScalar(node) && (node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED);
}

/** The contents are put back: a copy of the document would cost more than all that is written. */
function printed(document: Document, root: Node | null): string {
  const { contents } = document;
  // As the whole of a document the lines of such a text would not be indented, which PyYAML expects.
  const shown = isBlock(root) ? Object.assign(root.clone(), { type: Scalar.QUOTE_DOUBLE }) : root;
  try {
    document.contents = shown as ParsedNode;
    return document.toString(layout);
  } finally {
    document.contents = contents;
  }
}

/** Between two `---`, say, or in a file of comments. */
function isNothing(contents: ParsedNode | null): boolean {
  return contents === null || (isScalar(contents) && contents.value === null && contents.source === '');
}

/** Token by token, so that the rest of what is too much, or of no interest, is never read. */
function* documentsOf(
  text: string,
  lineCounter: LineCounter,
  maxTokens = MAX_TOKENS,
): Generator<Document.Parsed> {
  const parser = new Parser(lineCounter.addNewLine);
  const composer = new Composer({ ...dialect, lineCounter });
  lineCounter.addNewLine(0);
  let tokens = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > maxTokens) {
      throw new YamlError(`it has more than ${maxTokens} tokens`);
    }
    for (const token of parser.next(lexeme)) {
      // The composer gives a document away only when it has met the end of the next one.
      if (token.type === 'document') {
        tokens = 0;
      }
      for (const document of composer.next(token)) {
        yield document as Document.Parsed;
      }
    }
    // Before the composer meets it: where it runs out of stack, a regular expression that is compiled ends the process.
    if (parser.stack.length > MAX_STACK) {
      throw new YamlError(TOO_DEEP);
    }
  }
  for (const token of parser.end()) {
    for (const document of composer.next(token)) {
      yield document as Document.Parsed;
    }
  }
  for (const document of composer.end(true, text.length)) {
    yield document as Document.Parsed;
  }
}

function* repeatedKeys(node: Node | null): Generator<unknown> {
  if (isSeq(node)) {
    for (const item of node.items) {
      yield* repeatedKeys(asNode(item));
    }
  } else if (isMap(node)) {
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      const name = nameOf(key);
      if (seen.has(name)) {
        yield key;
      }
      seen.add(name);
      yield* repeatedKeys(asNode(value));
    }
  }
}

function lastPair(map: YAMLMap, name: string): Pair | undefined {
  return map.items.findLast(({ key }) => nameOf(key) === name);
}
