/** Parses the text of a document into nodes. */
import {
  Composer,
  type Document,
  isAlias,
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
  visit,
} from 'yaml';
import { dialect, layout, Special } from './dialect.ts';
import { refuseAmbiguous, refuseUnreadable } from './differences.ts';
import { type RepeatedKey, repeatedKeys, view } from './nodes.ts';
import { MAX_DEPTH, TOO_DEEP, YamlError } from './tree.ts';

/** Configurations and tasks have some hundreds. A million lines would block the process for seconds. */
const MAX_TOKENS = 250_000;
/** Limit of the parser's stack, which also holds the document and the scalar. */
const MAX_STACK = MAX_DEPTH + 10;

export interface Content {
  /** The text that node ranges and line numbers refer to. */
  readonly source: string;
  readonly root: Node | null;
  readonly lines: LineCounter;
  /** The text with another root. Parts shared with this root are written as they were read. */
  readonly written: (root: Node | null) => string;
  /** Repeated keys of a document with aliases or merge keys: resolving these removes the repetitions. */
  readonly repeated: readonly RepeatedKey[] | undefined;
}

/**
 * Removes a byte order mark, which the package counts as a column of the first line. To PyYAML a second one
 * is a letter.
 */
export function withoutMark(text: string): string {
  refuseUnreadable(text);
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** The text's only document. @throws YamlError */
export function read(text: string, maxTokens = MAX_TOKENS): Content {
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

/** The requested documents of a text, each with its own part of the text. */
export function streamOf(
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
    // The package's message may quote the text.
    const reason =
      error.code === 'TAG_RESOLVE_FAILED'
        ? 'a number without digits or with thousands of them, a date that does not exist, or a lone "="'
        : error.code.toLowerCase().replaceAll('_', ' ');
    throw new YamlError(reason, lines.linePos(error.pos[0]).line);
  }
  const { contents } = document;
  const lineAt = (offset: number) => lines.linePos(offset).line;
  if (contents !== null) {
    refuseAmbiguous(contents, lineAt);
    refuseUnindented(contents, text, lines);
  }
  const own = text.slice(document.range[0], document.range[2]);
  const mayHaveAliases = own.includes('*') || own.includes('<<');
  const repeated = mayHaveAliases ? [...repeatedKeys(contents)] : undefined;
  const root = contents !== null && mayHaveAliases ? withoutAliases(contents) : contents;
  // Refuses what is too deep: everything else descends the same levels.
  view(root, 'values', lineAt);
  return { source: text, root, lines, written: (changed) => printed(document, changed), repeated };
}

/**
 * The package accepts a top-level block text that is not indented. For PyYAML it ends there, and `#` starts a
 * comment.
 */
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

/** Replaces the contents and restores them: copying the document would cost more than writing it. */
function printed(document: Document, root: Node | null): string {
  const { contents } = document;
  // A top-level block text would not be indented, as PyYAML requires.
  const shown = isBlock(root) ? Object.assign(root.clone(), { type: Scalar.QUOTE_DOUBLE }) : root;
  try {
    document.contents = shown as ParsedNode;
    return document.toString(layout);
  } finally {
    document.contents = contents;
  }
}

/** Whether a document is empty, such as between two `---`, or has only comments. */
export function isNothing(contents: ParsedNode | null): boolean {
  return contents === null || (isScalar(contents) && contents.value === null && contents.source === '');
}

/** Reads token by token; stops at too many tokens, or when the caller needs no more. */
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
    // Before the composer recurses: if V8 compiles a regular expression with no stack left, the process
    // crashes.
    if (parser.stack.length > MAX_STACK) {
      throw new YamlError(TOO_DEEP, lineCounter.linePos(parser.offset).line);
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

/** A few lines of aliases to aliases can expand to billions of nodes. */
const MAX_NODES = 20_000;

/** The same tree without aliases and anchors. Throws `YamlError` for an alias without an anchor, to itself, or to too much. */
function withoutAliases(root: Node): Node {
  if (!hasAliases(root)) {
    return root;
  }
  const anchors = new Map<string, Node>();
  const open = new Set<Node>();
  const sizes = new Map<Node, number>();
  let added = 0;

  const resolved = (node: Node | null): Node | null => {
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target === undefined) {
        throw new YamlError('an alias has no anchor before it');
      }
      if (open.has(target)) {
        throw new YamlError('an alias refers to a node that contains it');
      }
      added += sizeOf(target, sizes);
      if (added > MAX_NODES) {
        throw new YamlError(`its aliases expand to more than ${MAX_NODES} nodes`);
      }
      return target.clone() as Node;
    }
    if ((isScalar(node) || isMap(node) || isSeq(node)) && node.anchor !== undefined) {
      anchors.set(node.anchor, node);
      delete node.anchor;
    }
    if (isMap(node)) {
      open.add(node);
      for (const pair of node.items as Pair<Node | null, Node | null>[]) {
        pair.key = resolved(pair.key);
        pair.value = resolved(pair.value);
      }
      mergeKeys(node);
      open.delete(node);
    } else if (isSeq(node)) {
      open.add(node);
      node.items = (node.items as Node[]).map(resolved);
      open.delete(node);
    }
    return node;
  };
  const mergeKeys = (map: { items: Pair[] }): void => {
    const isMerge = ({ key }: Pair) =>
      isScalar(key) && key.value instanceof Special && key.value.kind === 'merge';
    const merges = map.items.filter(isMerge);
    if (merges.length === 0) {
      return;
    }
    const own = map.items.filter((pair) => !isMerge(pair));
    // The first mapping of a list wins, the last of several "<<", and the mapping's own names over both.
    const sources = merges.flatMap(({ value }) => (isSeq(value) ? value.items.toReversed() : [value]));
    const merged = sources.flatMap((source) => {
      if (!isMap(source)) {
        throw new YamlError('"<<" refers to something that is not a mapping');
      }
      return source.items;
    });
    map.items = [...new Map([...merged, ...own].map((pair) => [nameOf(pair), pair])).values()];
  };
  return resolved(root) ?? root;
}

function hasAliases(root: Node): boolean {
  let found = false;
  visit(root, {
    Alias() {
      found = true;
      return visit.BREAK;
    },
    Scalar(_, { value }) {
      found ||= value instanceof Special && value.kind === 'merge';
      return found ? visit.BREAK : undefined;
    },
  });
  return found;
}

/** The identity of a key in a mapping: `8080` is not `'8080'`. */
function nameOf({ key }: Pair): unknown {
  return isScalar(key) ? key.value : key;
}

function sizeOf(node: Node, sizes: Map<Node, number>): number {
  const known = sizes.get(node);
  if (known !== undefined) {
    return known;
  }
  let size = 0;
  visit(node, {
    Node() {
      size += 1;
    },
  });
  sizes.set(node, size);
  return size;
}
