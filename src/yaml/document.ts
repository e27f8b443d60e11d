/**
 * A YAML text that is read, changed and written back. Unchanged nodes are written as they were read: `0o14`, dates, numbers of forty
 * digits, block texts and the order of keys are preserved.
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
import { type RepeatedKey, repeatedKeys } from './repeated-keys.ts';
import type { Path } from './tree.ts';
import { MAX_DEPTH, TOO_DEEP, view } from './view.ts';

/** A configuration or a task has some hundreds. A million lines would block the process for seconds. */
const MAX_TOKENS = 250_000;
/** For the stack of the parser, which holds the document and the scalar too. */
const MAX_STACK = MAX_DEPTH + 10;

/** A text that has been read. */
interface Content {
  readonly document: Document;
  readonly root: Node | null;
  readonly lines: LineCounter;
  /** The repeated keys of a document with aliases or merge keys: once these are resolved, the repetitions are gone. */
  readonly repeated?: readonly RepeatedKey[] | undefined;
}

export class YamlDocument {
  readonly #text: string;
  #content: Content | undefined;

  /** A text that was written by this class is read again only when needed. */
  private constructor(text: string, content?: Content) {
    this.#text = text;
    this.#content = content;
  }

  /**
   * Reads a text with one document, as PyYAML's `safe_load` does. Several are an error, because only the first would be seen.
   *
   * @throws YamlError for a text that is not YAML, several documents, too many tokens, or too deep nesting. Pass a lower
   * `maxTokens` for texts from outside.
   */
  static parse(written: string, maxTokens = MAX_TOKENS): YamlDocument {
    return new YamlDocument(written, read(withoutMark(written), maxTokens));
  }

  /**
   * Reads all documents of a text, such as a Kubernetes manifest, without the empty ones. Line numbers count from the start of the
   * text. `maxTokens` of `parse` applies to each document.
   *
   * @throws YamlError as `parse` does.
   */
  static parseAll(written: string): YamlDocument[] {
    return streamOf(written, ({ contents, errors }) => errors.length > 0 || !isNothing(contents)).map(
      (part) => new YamlDocument(...part),
    );
  }

  /** As `parseAll`, with the empty documents, as PyYAML's `safe_load_all` does. */
  static parseStream(written: string): YamlDocument[] {
    return streamOf(written, () => true).map((part) => new YamlDocument(...part));
  }

  /** A new document from plain data. */
  static from(value: unknown): YamlDocument {
    return YamlDocument.parse('null').with(value);
  }

  /**
   * The value as a fresh copy of plain data. A whole number that is not safe is a `bigint`, a date is the text that it is written
   * as. Of repeated names the last one counts.
   */
  get value(): unknown {
    return view(this.#read().root, 'values');
  }

  /** As `value`, but every scalar is the text that it is written as; an empty one is the empty text. */
  get texts(): unknown {
    return view(this.#read().root, 'texts');
  }

  /** Names that repeat another one of their mapping: `value` has only the last one. */
  repetitions(): { readonly name: string; readonly line: number }[] {
    const { root, lines, repeated = repeatedKeys(root) } = this.#read();
    return [...repeated].map(({ name, key }) => ({
      name,
      line: lines.linePos(key?.range?.[0] ?? 0).line,
    }));
  }

  /** The line of the node at a path, from 1; if there is none, of the nearest node above. */
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

  /** The document with another value, in which equal parts stay as they are written. Expects plain data: see `plainCopy`. */
  with(value: unknown): YamlDocument {
    const { document, root } = this.#read();
    const changed = edited(root, this.value, value);
    return changed === root ? this : new YamlDocument(printed(document, changed));
  }

  /** The text, which PyYAML reads with the same meaning. */
  toString(): string {
    return this.#text;
  }

  /** The text as `with` would write it, for comparison with a changed document. */
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
 * Removes a byte order mark, which the package would count as a column of the first line. A second one would be a letter to
 * PyYAML.
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
    throw new YamlError('it contains no document');
  }
  return content;
}

/** The wanted documents of a text, each with its own part of the text. */
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
    // Its message may contain a part of the text.
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
  const repeated = mayHaveAliases ? [...repeatedKeys(contents)] : undefined;
  const root = contents !== null && mayHaveAliases ? withoutAliases(contents) : contents;
  // Refuses what is too deep: everything else descends the same levels.
  view(root, 'values');
  return { document, root, lines, repeated };
}

/** For the package a block text that is a whole document need not be indented. For PyYAML it ends there, and `#` starts a comment. */
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

/** Replaces the contents and restores them: a copy of the document would cost more than writing it. */
function printed(document: Document, root: Node | null): string {
  const { contents } = document;
  // A block text that is a whole document would not be indented, as PyYAML requires.
  const shown = isBlock(root) ? Object.assign(root.clone(), { type: Scalar.QUOTE_DOUBLE }) : root;
  try {
    document.contents = shown as ParsedNode;
    return document.toString(layout);
  } finally {
    document.contents = contents;
  }
}

/** Whether a document is empty, such as one between two `---`, or one of comments. */
function isNothing(contents: ParsedNode | null): boolean {
  return contents === null || (isScalar(contents) && contents.value === null && contents.source === '');
}

/** Reads token by token, and stops when there are too many or the caller needs no more. */
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
      // The composer yields a document only at the end of the next one.
      if (token.type === 'document') {
        tokens = 0;
      }
      for (const document of composer.next(token)) {
        yield document as Document.Parsed;
      }
    }
    // Before the composer recurses: when V8 compiles a regular expression without stack left, the process crashes.
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

function lastPair(map: YAMLMap, name: string): Pair | undefined {
  return map.items.findLast(({ key }) => nameOf(key) === name);
}
