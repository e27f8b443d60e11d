import { type DecisionRecord, parsedRecord } from './record.ts';

interface SkippedLines {
  /** Not a decision, such as an incomplete line. */
  readonly broken: number;
  /** Longer than 1 MiB. */
  readonly tooLong: number;
}

/** Reads decisions from the bytes of a log. Skips and counts other lines. */
export class DecisionReader {
  readonly #lines = new NumberedLines();
  #broken = 0;
  #tooLong = 0;

  get skipped(): SkippedLines {
    return { broken: this.#broken, tooLong: this.#tooLong };
  }

  /** The decisions whose lines end in this chunk. */
  push(chunk: Buffer): DecisionRecord[] {
    return this.#parsed(this.#lines.push(chunk));
  }

  /** The last decision, if its line has no line feed. To be called at the end of a file. */
  end(): DecisionRecord[] {
    return this.#parsed(this.#lines.end());
  }

  #parsed(lines: Iterable<NumberedLine>): DecisionRecord[] {
    const records: DecisionRecord[] = [];
    for (const { text } of lines) {
      const record = text === undefined ? undefined : parsedRecord(text);
      if (record !== undefined) {
        records.push(record);
      } else if (text === undefined) {
        this.#tooLong += 1;
      } else {
        this.#broken += 1;
      }
    }
    return records;
  }
}

const LINE_FEED = 0x0a;
/** No decision is this long, but a file that is not a log may be a single line of gigabytes. */
const MAX_LINE_BYTES = 1024 * 1024;
const BLANK = /^\s*$/;

/** A line of a log with its number, from 1. `text`: `undefined` = longer than 1 MiB. */
interface NumberedLine {
  readonly number: number;
  readonly text: string | undefined;
}

/** Splits bytes into lines, without blank ones, in bounded memory. */
export class NumberedLines {
  #begun: Buffer[] = [];
  #length = 0;
  #number = 0;

  *push(chunk: Buffer): Generator<NumberedLine> {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      yield* this.#line(chunk, start, end);
      start = end + 1;
    }
    if (start < chunk.length) {
      // Copied, since the chunk may be large and its memory reused.
      this.#take(Buffer.from(chunk.subarray(start)));
    }
  }

  /** The last line, if it has no line feed. */
  *end(): Generator<NumberedLine> {
    if (this.#length > 0) {
      yield* this.#line(Buffer.alloc(0), 0, 0);
    }
  }

  *#line(chunk: Buffer, start: number, end: number): Generator<NumberedLine> {
    this.#number += 1;
    const number = this.#number;
    if (this.#length + end - start > MAX_LINE_BYTES) {
      this.#begun = [];
      this.#length = 0;
      yield { number, text: undefined };
      return;
    }
    let text: string;
    if (this.#length === 0) {
      text = chunk.toString('utf8', start, end);
    } else {
      text = Buffer.concat([...this.#begun, chunk.subarray(start, end)]).toString();
      this.#begun = [];
      this.#length = 0;
    }
    if (!BLANK.test(text)) {
      yield { number, text };
    }
  }

  #take(part: Buffer): void {
    this.#length += part.length;
    if (this.#length > MAX_LINE_BYTES) {
      this.#begun = [];
    } else {
      this.#begun.push(part);
    }
  }
}
