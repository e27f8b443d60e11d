import { type NumberedLine, NumberedLines } from './numbered-lines.ts';
import { type DecisionRecord, parsedRecord } from './record.ts';

interface SkippedLines {
  /** Not a decision, such as a line that was cut off. */
  readonly broken: number;
  /** Longer than 1 MiB. */
  readonly tooLong: number;
}

/** Reads decisions from the bytes of a log. Other lines are skipped and counted. */
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

  /** The last decision, if its line has no line feed. Call it at the end of a file. */
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
