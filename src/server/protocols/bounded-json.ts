/**
 * JSON of any length, bounded in what it costs: for 8 MiB of brackets, `JSON.parse` takes a second and 50 times their size. What is in a long
 * text is counted before it is parsed, while other requests get their turn. Within the bounds, `JSON.parse` takes less than 100 ms.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

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

/** Bytes that are counted in one go, within a millisecond. */
const TURN_BYTES = 65_536;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Rejects with a `TooMuchJsonError` if a text exceeds the bounds. Whether it is JSON at all, `JSON.parse` tells. */
export async function checkBounds(
  bytes: Uint8Array,
  { maxValues, maxNames, maxDepth }: JsonBounds,
): Promise<void> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const names = new Set<string>();
  let values = 0;
  let depth = 0;
  /** The position of the last string, which is a name if a colon follows. */
  let quoted = { from: 0, to: 0 };
  let nextTurnAt = TURN_BYTES;
  for (let at = 0; at < text.length; at += 1) {
    if (at >= nextTurnAt) {
      await nextTurn();
      nextTurnAt = at + TURN_BYTES;
    }
    switch (text[at]) {
      case QUOTE:
        quoted = { from: at + 1, to: endOfString(text, at) };
        at = quoted.to;
        break;
      case COLON:
        names.add(text.toString('latin1', quoted.from, quoted.to));
        if (names.size > maxNames) {
          throw new TooMuchJsonError(`at most ${maxNames} different names in the body`);
        }
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth += 1;
        if (depth > maxDepth) {
          throw new TooMuchJsonError(`a body that is nested no deeper than ${maxDepth} levels`);
        }
        values += 1;
        break;
      case COMMA:
        values += 1;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
    }
    if (values > maxValues) {
      throw new TooMuchJsonError(`at most ${maxValues} values in the body`);
    }
  }
}

/** The position of the closing quote of a string, or the length of the text if there is none. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start + 1;
  for (; at < text.length && text[at] !== QUOTE; at += 1) {
    if (text[at] === BACKSLASH) {
      at += 1;
    }
  }
  return at;
}
