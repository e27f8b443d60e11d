import { LineSplitter } from './lines.ts';
import { type DecisionRecord, decisionRecordSchema } from './record.ts';

/** Lines that could not be read as decisions. */
export interface SkippedLines {
  /** Cut off, or something else. */
  readonly broken: number;
  /** Longer than 1 MiB. */
  readonly tooLong: number;
}

/** Bytes of a decision log → decisions. What is none is left out and counted. */
export class DecisionReader {
  readonly #splitter = new LineSplitter();
  #broken = 0;

  get skipped(): SkippedLines {
    return { broken: this.#broken, tooLong: this.#splitter.tooLong };
  }

  /** The decisions whose lines end in this chunk. */
  push(chunk: Buffer): DecisionRecord[] {
    return this.#parsed(this.#splitter.push(chunk));
  }

  /** The last one, when its line has no end: the file ends, and another may begin. */
  end(): DecisionRecord[] {
    return this.#parsed(this.#splitter.end());
  }

  #parsed(lines: readonly string[]): DecisionRecord[] {
    return lines.flatMap((line) => {
      if (line.trim() === '') {
        return [];
      }
      const record = parsedRecord(line);
      if (record === undefined) {
        this.#broken += 1;
        return [];
      }
      return record;
    });
  }
}

function parsedRecord(line: string): DecisionRecord | undefined {
  try {
    return decisionRecordSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
