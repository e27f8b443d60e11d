/**
 * Parses JSON that is too long to parse at once: for 8 MiB of brackets, `JSON.parse` takes a second and 50
 * times their size. The text is cut at commas, `JSON.parse` parses each piece, and other requests run between
 * pieces.
 */

import { randomInt } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setMember } from '../../base/yaml/tree.ts';

/** The body is JSON, but exceeds the bounds. The message completes "expected …". */
export class TooMuchJsonError extends Error {
  override readonly name = 'TooMuchJsonError';
}

export interface JsonBounds {
  /** Members of objects and items of lists, at any depth. Lists and objects among them count twice. */
  readonly maxValues: number;
  /** Different names of members. Each costs as much as ten values. */
  readonly maxNames: number;
  readonly maxDepth: number;
}

/** Any text of this length is parsed within a few milliseconds; longer ones are parsed in pieces. */
export const PIECE_BYTES = 65_536;
/** Maximum time before other requests may run. */
const TURN_MS = 10;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * The same value as `JSON.parse`. Rejects with its `SyntaxError` or `TypeError`, or with a
 * `TooMuchJsonError`. `pieceBytes`: for tests.
 */
export async function parseInPieces(
  bytes: Uint8Array,
  bounds: JsonBounds,
  pieceBytes = PIECE_BYTES,
): Promise<unknown> {
  const reader = new Reader(bytes, bounds, pieceBytes);
  // Yield before and after, too.
  await nextTurn();
  let began = performance.now();
  while (!reader.read()) {
    if (performance.now() - began >= TURN_MS) {
      await nextTurn();
      began = performance.now();
    }
  }
  await nextTurn();
  return reader.value;
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #bounds: JsonBounds;
  readonly #pieceBytes: number;
  /** Innermost last. The first one is the whole text, as if it were a list with one item. */
  readonly #open: Container[];
  #at: number;
  /** Everything before this position has been parsed, except for names of members. */
  #parsedTo: number;
  /** Whether the whole text is scanned. A string may be as long as the body: it is parsed after a yield. */
  #isAtEnd = false;
  #values = 0;
  /** Whether the next string in an object is the name of a member. */
  #isName = false;
  readonly #names = new NameCount();
  value: unknown;

  constructor(bytes: Uint8Array, bounds: JsonBounds, pieceBytes: number) {
    this.#bytes = bytes;
    this.#bounds = bounds;
    this.#pieceBytes = pieceBytes;
    // Skip a byte order mark.
    this.#at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    this.#parsedTo = this.#at;
    this.#open = [container(true, this.#at - 1)];
  }

  /** Reads the next piece. Returns whether it was the last one. */
  read(): boolean {
    if (this.#isAtEnd) {
      this.#finish();
      return true;
    }
    const bytes = this.#bytes;
    const { length } = bytes;
    for (let at = this.#at; at < length; at += 1) {
      switch (bytes[at]) {
        case QUOTE: {
          const end = endOfText(bytes, at);
          if (!this.#innermost.isList && this.#isName) {
            this.#countName(at + 1, end);
            this.#isName = false;
          }
          at = end;
          break;
        }
        case OPEN_LIST:
        case OPEN_OBJECT:
          this.#enter(bytes[at] === OPEN_LIST, at);
          break;
        case CLOSE_LIST:
        case CLOSE_OBJECT:
          this.#leave(bytes[at] === CLOSE_LIST, at);
          break;
        case COMMA: {
          this.#count();
          this.#isName = true;
          const container = this.#innermost;
          if (this.#open.length === 1) {
            throw new SyntaxError('a comma behind the value');
          }
          if (at - this.#parsedTo >= this.#pieceBytes || container.isAdded) {
            this.#flush(container, at);
            container.from = at + 1;
            container.member = at + 1;
            this.#parsedTo = at;
            this.#at = at + 1;
            return false;
          }
          container.member = at + 1;
          break;
        }
      }
    }
    this.#at = length;
    this.#isAtEnd = true;
    return false;
  }

  get #innermost(): Container {
    const innermost = this.#open.at(-1);
    if (innermost === undefined) {
      throw new SyntaxError('closed more often than opened');
    }
    return innermost;
  }

  #count(): void {
    this.#values += 1;
    if (this.#values > this.#bounds.maxValues) {
      throw new TooMuchJsonError(`at most ${this.#bounds.maxValues} values in the body`);
    }
  }

  #countName(from: number, to: number): void {
    if (this.#names.add(this.#bytes, from, to) > this.#bounds.maxNames) {
      throw new TooMuchJsonError(`at most ${this.#bounds.maxNames} different names in the body`);
    }
  }

  #enter(isList: boolean, at: number): void {
    this.#count();
    this.#isName = !isList;
    if (this.#open.length > this.#bounds.maxDepth) {
      throw new TooMuchJsonError(`a body that is nested no deeper than ${this.#bounds.maxDepth} levels`);
    }
    this.#open.push(container(isList, at));
  }

  #leave(isList: boolean, at: number): void {
    const closed = this.#open.pop();
    const outer = this.#open.at(-1);
    if (closed === undefined || outer === undefined || closed.isList !== isList) {
      throw new SyntaxError('closed otherwise than opened');
    }
    if (closed.parsed === undefined) {
      return;
    }
    this.#flush(closed, at);
    add(outer, outer.name, closed.parsed);
    outer.from = at + 1;
    outer.isAdded = true;
    this.#parsedTo = at;
  }

  /** Parses the rest of a container up to `end`: one of its commas, or its closing bracket. */
  #flush(container: Container, end: number): void {
    const parsed = this.#begin(container);
    const text = this.#text(container.from, end);
    if (container.isAdded) {
      expectBlank(text);
      container.isAdded = false;
      return;
    }
    if (Array.isArray(parsed)) {
      const items = JSON.parse(`[${text}]`) as unknown[];
      if (items.length === 0) {
        throw new SyntaxError('a comma without an item');
      }
      for (const item of items) {
        parsed.push(item);
      }
      return;
    }
    const members = Object.entries(JSON.parse(`{${text}}`) as object);
    if (members.length === 0) {
      throw new SyntaxError('a comma without a member');
    }
    for (const [name, value] of members) {
      setMember(parsed, name, value);
    }
  }

  /** Parses what is before a container, so that it can be parsed separately. */
  #begin(inner: Container): NonNullable<Container['parsed']> {
    if (inner.parsed !== undefined) {
      return inner.parsed;
    }
    const outer = this.#open[this.#open.indexOf(inner) - 1];
    if (outer !== undefined) {
      this.#begin(outer);
      if (outer.isAdded) {
        throw new SyntaxError('two values without a comma');
      }
      if (outer.from < outer.member) {
        this.#flush(outer, outer.member - 1);
      }
      outer.name = memberName(outer, this.#text(outer.member, inner.start));
    }
    inner.parsed = inner.isList ? [] : {};
    return inner.parsed;
  }

  #finish(): void {
    const [whole, ...unclosed] = this.#open;
    if (whole === undefined || unclosed.length > 0) {
      throw new SyntaxError('not closed');
    }
    if (whole.parsed === undefined) {
      this.value = JSON.parse(this.#text(whole.from, this.#bytes.length));
      return;
    }
    expectBlank(this.#text(whole.from, this.#bytes.length));
    this.value = Array.isArray(whole.parsed) ? whole.parsed[0] : undefined;
  }

  #text(from: number, to: number): string {
    return utf8.decode(this.#bytes.subarray(from, to));
  }
}

/** The position of the closing quote of a string, or the length of the text if there is none. */
function endOfText(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (; at < bytes.length && bytes[at] !== QUOTE; at += 1) {
    if (bytes[at] === BACKSLASH) {
      at += 1;
    }
  }
  return at;
}

/** A list or an object that is not closed yet. */
interface Container {
  readonly isList: boolean;
  /** The position of its opening bracket. */
  readonly start: number;
  /** The parsed part. `undefined` = nothing; if it closes first, it is parsed with the piece around it. */
  parsed: unknown[] | Record<string, unknown> | undefined;
  /** The text from this position on has not been parsed. */
  from: number;
  /** The position after its last comma, where the current member begins. */
  member: number;
  /** The name of that member if its value is parsed separately; empty for an item of a list. */
  name: string;
  /** Whether this value was added: only a comma or the end may follow. */
  isAdded: boolean;
}

function container(isList: boolean, start: number): Container {
  const from = start + 1;
  return { isList, start, parsed: undefined, from, member: from, name: '', isAdded: false };
}

/** `text`: the text between the last comma and the value of a member. */
function memberName({ isList }: Container, text: string): string {
  if (isList) {
    expectBlank(text);
    return '';
  }
  const [name, ...others] = Object.keys(JSON.parse(`{${text}null}`) as object);
  if (name === undefined || others.length > 0) {
    throw new SyntaxError('a member without a name');
  }
  return name;
}

function add({ parsed }: Container, name: string, value: unknown): void {
  if (Array.isArray(parsed)) {
    parsed.push(value);
  } else if (parsed !== undefined) {
    setMember(parsed, name, value);
  }
}

function expectBlank(text: string): void {
  if (/[^ \t\r\n]/.test(text)) {
    throw new SyntaxError('something where nothing may stand');
  }
}

/** Many more marks than names are allowed, so that few names share a mark. */
const MARKS = 2 ** 17;
/** Random per process, so that clients cannot construct names that share a mark. */
const SEED = randomInt(2 ** 32) | 1;

/** Counts different names without storing them. A few are mistaken for others. */
class NameCount {
  readonly #marks = new Uint8Array(MARKS);
  #count = 0;

  /** `from` and `to`: the position of the name. Returns the number of different names so far. */
  add(bytes: Uint8Array, from: number, to: number): number {
    let hash = SEED;
    for (let at = from; at < to; at += 1) {
      hash = Math.imul(hash ^ (bytes[at] ?? 0), 16_777_619);
    }
    const place = (hash ^ (hash >>> 15)) & (MARKS - 1);
    if (this.#marks[place] === 0) {
      this.#marks[place] = 1;
      this.#count += 1;
    }
    return this.#count;
  }
}
