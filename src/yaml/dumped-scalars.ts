/** The scalars of a text that `dumped-text.ts` reads. */
import { CST, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { plainValue } from './dialect.ts';

export type Parsed = Scalar | YAMLMap | YAMLSeq;

export class SomethingElse extends Error {
  override readonly name = 'SomethingElse';
}

/** Of no use to anybody, so it needs no place. */
export const SOMETHING_ELSE = new SomethingElse();

export const NEWLINE = 10;
export const SPACE = 32;
const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const BACKSLASH = 92;

/** What no plain scalar begins with here: indicators, and what has a type of its own in PyYAML. A dash is not alone. */
const INDICATOR = /^(?:[\s?:,[\]{}#&*!|>'"%@`<=]|-(?![\w.])|$)/;
/** What ends a plain scalar, or a line in which something else follows. */
const AFTER_PLAIN = /: | #|[: ]$/;

/** A place in a text, and what stands there in one line or, if it is long, in several. */
export class ScalarReader {
  /** With an end of its last line. */
  protected readonly text: string;
  protected readonly lineStarts = [0];
  /** Where the next scalar or indicator begins. */
  protected at = 0;
  /** As the parser of the package counts them. */
  protected tokens: number;

  constructor(text: string) {
    this.text = text.endsWith('\n') ? text : `${text}\n`;
    this.tokens = text === this.text ? 1 : 0;
  }

  /** A scalar, or an empty collection, behind a key or a dash of the collection at this column. */
  protected scalar(column: number): Parsed {
    const code = this.text.charCodeAt(this.at);
    return code === SINGLE_QUOTE || code === DOUBLE_QUOTE
      ? this.#quoted(code, column)
      : (this.#empty() ?? this.#plain(column));
  }

  #empty(): YAMLMap | YAMLSeq | undefined {
    const start = this.at;
    const collection = this.text.startsWith('{}', start)
      ? new YAMLMap()
      : this.text.startsWith('[]', start)
        ? new YAMLSeq()
        : undefined;
    if (collection !== undefined) {
      this.at += 2;
      this.tokens += 2;
      collection.flow = true;
      collection.range = [start, this.at, this.at];
    }
    return collection;
  }

  #plain(column: number): Scalar {
    const start = this.at;
    let source = this.#restOfLine();
    if (INDICATOR.test(source) || AFTER_PLAIN.test(source)) {
      throw SOMETHING_ELSE;
    }
    while (this.#isIndentedBelow(column)) {
      this.lineStarts.push(this.at + 1);
      this.at = this.#afterBlanks(this.at + 1);
      const line = this.#restOfLine();
      // Nor a line without anything, which would be a line break.
      if (line === '' || line.startsWith('#') || AFTER_PLAIN.test(line)) {
        throw SOMETHING_ELSE;
      }
      source += ` ${line}`;
    }
    this.tokens += 2;
    const value = plainValue(source);
    if (value === undefined) {
      throw SOMETHING_ELSE;
    }
    return scalarOf(value, source, Scalar.PLAIN, start, this.at);
  }

  /** Moves to the end of the line and returns what it skips. */
  #restOfLine(): string {
    const start = this.at;
    this.at = this.text.indexOf('\n', start);
    return this.text.slice(start, this.at);
  }

  /** Whether the next line has more blanks before it than the column, at the end of a line. */
  #isIndentedBelow(column: number): boolean {
    const start = this.at + 1;
    return this.#afterBlanks(start) - start > column;
  }

  #afterBlanks(from: number): number {
    let at = from;
    while (this.text.charCodeAt(at) === SPACE) {
      at += 1;
    }
    return at;
  }

  #quoted(quote: number, column: number): Scalar {
    const start = this.at;
    const end = quote === SINGLE_QUOTE ? this.#endOfSingle(start + 1) : this.#endOfDouble(start + 1);
    const written = this.text.slice(start, end);
    this.at = end;
    this.tokens += 1;
    const type = quote === SINGLE_QUOTE ? Scalar.QUOTE_SINGLE : Scalar.QUOTE_DOUBLE;
    if (!/[\n\\]|''/.test(written.slice(1, -1))) {
      const value = written.slice(1, -1);
      return scalarOf(value, value, type, start, end);
    }
    this.#checkLines(start, end, column);
    const source = valueOfQuoted(written, type);
    return scalarOf(source, source, type, start, end);
  }

  /** Behind the closing quote. */
  #endOfSingle(from: number): number {
    let at = from;
    for (;;) {
      at = this.text.indexOf("'", at);
      if (at === -1) {
        throw SOMETHING_ELSE;
      }
      if (this.text.charCodeAt(at + 1) !== SINGLE_QUOTE) {
        return at + 1;
      }
      at += 2;
    }
  }

  #endOfDouble(from: number): number {
    let at = from;
    for (;;) {
      const quote = this.text.indexOf('"', at);
      if (quote === -1) {
        throw SOMETHING_ELSE;
      }
      let escapes = 0;
      while (quote - escapes > from && this.text.charCodeAt(quote - escapes - 1) === BACKSLASH) {
        escapes += 1;
      }
      if (escapes % 2 === 0) {
        return quote + 1;
      }
      at = quote + 1;
    }
  }

  /** All lines of a quoted text must be indented, or empty. */
  #checkLines(start: number, end: number, column: number): void {
    const text = this.text;
    for (let at = text.indexOf('\n', start); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) {
      this.lineStarts.push(at + 1);
      const first = this.#afterBlanks(at + 1);
      const isEmpty = text.charCodeAt(first) === NEWLINE;
      // The package takes an empty line after an escaped line break for a blank, PyYAML for a line break.
      const isAmbiguous = isEmpty && text.charCodeAt(at - 1) === BACKSLASH;
      if (isAmbiguous || (isEmpty ? first > at + 1 : first - at - 1 <= column)) {
        throw SOMETHING_ELSE;
      }
    }
  }
}

export function scalarOf(
  value: unknown,
  source: string,
  type: Scalar.Type,
  start: number,
  end: number,
): Scalar {
  const scalar = new Scalar(value);
  scalar.source = source;
  scalar.type = type;
  scalar.range = [start, end, end];
  return scalar;
}

/** As the package reads escapes and line breaks. */
function valueOfQuoted(source: string, type: 'QUOTE_SINGLE' | 'QUOTE_DOUBLE'): string {
  const kind = type === Scalar.QUOTE_SINGLE ? 'single-quoted-scalar' : 'double-quoted-scalar';
  const { value } = CST.resolveAsScalar({ type: kind, offset: 0, indent: 0, source }, true, () => {
    throw SOMETHING_ELSE;
  });
  return value;
}
