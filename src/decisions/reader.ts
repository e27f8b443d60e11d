import { LineSplitter } from './lines.ts';
import { type DecisionRecord, decisionRecordSchema } from './record.ts';

/** How many lines were skipped. */
export interface SkippedLines {
  /** Not a decision, such as a line that was cut off. */
  readonly broken: number;
  /** Longer than 1 MiB. */
  readonly tooLong: number;
}

/** Reads decisions from the bytes of a log. Other lines are skipped and counted. */
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

  /** The last decision, if its line has no line feed. Call it at the end of a file. */
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
