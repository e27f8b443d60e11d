/** Writes what comes at the same time in one transaction: a file is synchronized once for all of it. */
import { inTime, type Wait } from '../../deadline.ts';

/** Rows of one transaction. */
const MOST = 64;

interface Waiting<Row, Result> {
  readonly row: Row;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
}

export class GroupCommit<Row, Result> {
  readonly #write: (rows: readonly Row[]) => Promise<readonly Result[]>;
  #waiting: Waiting<Row, Result>[] = [];
  #running: Promise<void> | undefined;

  /** `write` resolves when all rows are durable, with a result for each. */
  constructor(write: (rows: readonly Row[]) => Promise<readonly Result[]>) {
    this.#write = write;
  }

  /** Resolves when the row is durable. When the wait ends first, it may still be written. */
  add(row: Row, wait: Wait): Promise<Result> {
    const written = new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject });
    });
    this.#running ??= this.#run();
    return inTime(written, wait);
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Requests that arrive in the same moment are in the same transaction.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, MOST);
      try {
        const results = await this.#write(group.map(({ row }) => row));
        group.forEach(({ resolve }, index) => {
          resolve(results[index] as Result);
        });
      } catch (thrown) {
        for (const { reject } of group) {
          reject(thrown);
        }
      }
    }
    this.#running = undefined;
  }
}
