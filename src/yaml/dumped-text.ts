/**
 * Reads the part of YAML in which PyYAML writes, in a tenth of the time that the parser of the package takes: block mappings and
 * lists, and scalars that are plain or quoted. Anything else is left to that parser: comments, tags, anchors, block texts,
 * brackets with something in them, letters other than ASCII, repeated names, and whatever looks unusual.
 *
 * The nodes are those that the parser would make, with the same values, sources and offsets: `dumped-text.proof.test.ts` compares
 * them.
 */
import { Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import {
  NEWLINE,
  type Parsed,
  ScalarReader,
  SOMETHING_ELSE,
  SomethingElse,
  SPACE,
  scalarOf,
} from './dumped-scalars.ts';
import { MAX_DEPTH } from './view.ts';

/** The root of a document, with the offsets at which its lines begin. */
export interface DumpedText {
  readonly root: YAMLMap | YAMLSeq;
  readonly lineStarts: number[];
}

/** The document; `undefined` = the text has something else in it, or is deeper or larger than allowed. */
export function readDumped(text: string, maxTokens: number): DumpedText | undefined {
  if (/[^\n -~]/.test(text)) {
    return undefined;
  }
  try {
    return new Reader(text, maxTokens).read();
  } catch (thrown) {
    if (thrown instanceof SomethingElse) {
      return undefined;
    }
    throw thrown;
  }
}

const DASH = 45;

/** A key with its colon: plain, or quoted without escapes. PyYAML writes no longer ones without `?`. */
const KEY = /(?:([\w/$][\w./$@%+-]{0,120})|'([^'\n]{0,120})'|"([^"\\\n]{0,120})"):(?=[ \n])/y;
/** A name that is a text or a whole number to everybody: those of other types may be equal although they are written differently. */
const NAME = /^(?!(?:null|true|false|yes|no|on|off|nan|inf)$)[A-Za-z_/$][\w./$@%+-]*$|^[1-9]\d{0,14}$|^0$/i;
class Reader extends ScalarReader {
  readonly #maxTokens: number;
  /** The number of characters before the next scalar or indicator in its line; -1 = the text has ended. */
  #column = -1;
  /** Whether a blank line stands before it. */
  #isApart = false;
  #depth = 0;

  constructor(text: string, maxTokens: number) {
    super(text);
    this.#maxTokens = maxTokens;
  }

  read(): DumpedText {
    this.#toNextLine();
    if (this.#isApart) {
      throw SOMETHING_ELSE;
    }
    // Also refuses an empty text.
    const root = this.#block(0);
    if (root.items.length === 0 || this.at < this.text.length || this.tokens > this.#maxTokens) {
      throw SOMETHING_ELSE;
    }
    return { root, lineStarts: this.lineStarts };
  }

  /** Skips what is blank, from the start of a line. */
  #toNextLine(): void {
    const text = this.text;
    let at = this.at;
    let start = at;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE) {
        if (at > start) {
          throw SOMETHING_ELSE;
        }
        this.tokens += 1;
        this.lineStarts.push(at + 1);
        start = at + 1;
      } else if (code !== SPACE) {
        this.#isApart = start > this.at;
        this.at = at;
        this.#column = at - start;
        if (this.#isApart && this.#column > 0) {
          throw SOMETHING_ELSE;
        }
        this.tokens += at > start ? 1 : 0;
        return;
      }
      at += 1;
    }
    if (at > start) {
      throw SOMETHING_ELSE;
    }
    this.at = at;
    this.#column = -1;
  }

  /** From the end of a line to the next scalar or indicator. */
  #endLine(): void {
    if (this.text.charCodeAt(this.at) !== NEWLINE) {
      throw SOMETHING_ELSE;
    }
    this.at += 1;
    this.tokens += 1;
    this.lineStarts.push(this.at);
    this.#toNextLine();
  }

  #block(column: number): YAMLMap | YAMLSeq {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH || this.tokens > this.#maxTokens) {
      throw SOMETHING_ELSE;
    }
    const block = this.#isItem() ? this.#seq(column) : this.#map(column);
    this.#depth -= 1;
    return block;
  }

  #isItem(): boolean {
    return this.text.charCodeAt(this.at) === DASH && this.text.charCodeAt(this.at + 1) === SPACE;
  }

  #seq(column: number): YAMLSeq {
    const seq = new YAMLSeq();
    const start = this.at;
    let last: Parsed | undefined;
    while (this.#column === column && this.#isItem()) {
      const isApart = this.#isApart && column === 0;
      this.at += 2;
      this.#column += 2;
      this.tokens += 2;
      last = this.#isItem() || this.#isKey() ? this.#block(this.#column) : this.#scalarOfLine(column);
      setApart(last, isApart);
      seq.items.push(last);
    }
    if (this.#column > column) {
      throw SOMETHING_ELSE;
    }
    seq.range = rangeTo(start, last);
    return seq;
  }

  #isKey(): boolean {
    KEY.lastIndex = this.at;
    return KEY.test(this.text);
  }

  #map(column: number): YAMLMap {
    const map = new YAMLMap();
    const names = new Set<string>();
    const start = this.at;
    let last: Parsed | undefined;
    while (this.#column === column) {
      const isApart = this.#isApart && column === 0;
      const key = this.#key();
      setApart(key, isApart);
      const name = key.source ?? '';
      if (names.has(name)) {
        throw SOMETHING_ELSE;
      }
      names.add(name);
      last = this.#valueIn(column);
      map.items.push(new Pair(key, last));
    }
    if (this.#column > column) {
      throw SOMETHING_ELSE;
    }
    map.range = rangeTo(start, last);
    return map;
  }

  #key(): Scalar {
    KEY.lastIndex = this.at;
    const [whole, plain, single, double = ''] = KEY.exec(this.text) ?? [];
    if (whole === undefined || (plain !== undefined && !NAME.test(plain))) {
      throw SOMETHING_ELSE;
    }
    const start = this.at;
    this.at += whole.length;
    this.tokens += plain === undefined ? 2 : 3;
    const end = this.at - 1;
    if (plain !== undefined) {
      return scalarOf(/^\d/.test(plain) ? Number(plain) : plain, plain, Scalar.PLAIN, start, end);
    }
    return single === undefined
      ? scalarOf(double, double, Scalar.QUOTE_DOUBLE, start, end)
      : scalarOf(single, single, Scalar.QUOTE_SINGLE, start, end);
  }

  #scalarOfLine(column: number): Parsed {
    const scalar = this.scalar(column);
    this.#endLine();
    return scalar;
  }

  /** The value of a key of the mapping at this column: in the same line, or below. */
  #valueIn(column: number): Parsed {
    if (this.text.charCodeAt(this.at) === SPACE) {
      this.at += 1;
      this.tokens += 1;
      return this.#scalarOfLine(column);
    }
    this.#endLine();
    // A list may stand below its key without being indented more.
    if (this.#isApart) {
      throw SOMETHING_ELSE;
    }
    if (this.#column > column || (this.#column === column && this.#isItem())) {
      return this.#block(this.#column);
    }
    throw SOMETHING_ELSE;
  }
}

/** As the package keeps blank lines. */
function setApart(node: Parsed, isApart: boolean): void {
  if (isApart) {
    node.spaceBefore = true;
  }
}

function rangeTo(start: number, last: Parsed | undefined): [number, number, number] {
  const end = last?.range?.[1] ?? start;
  return [start, end, end];
}
