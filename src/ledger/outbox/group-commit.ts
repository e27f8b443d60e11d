/** Writes concurrent rows in one transaction, so that the file is synced once for all of them. */
import { inTime, type Wait } from '../../base/deadline.ts';

/** Limits of rows and bytes in one transaction; a single row may exceed the bytes. */
const MOST = 64;
const HEAVIEST = 4 * 1024 * 1024;

interface Waiting<Row, Result> {
  readonly row: Row;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
}

export class GroupCommit<Row, Result> {
  readonly #write: (rows: readonly Row[]) => Promise<readonly Result[]>;
  readonly #weigh: (row: Row) => number;
  #waiting: Waiting<Row, Result>[] = [];
  #writing = 0;
  #running: Promise<void> | undefined;

  /**
   * `write` resolves when all rows are durable, with one result per row. `weigh`: approximate size in bytes.
   */
  constructor(write: (rows: readonly Row[]) => Promise<readonly Result[]>, weigh: (row: Row) => number) {
    this.#write = write;
    this.#weigh = weigh;
  }

  get pending(): number {
    return this.#waiting.length + this.#writing;
  }

  /** Resolves when the row is durable. If the wait ends first, the row may still be written. */
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
    // Groups requests that arrive at the same time.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#next());
      this.#writing = group.length;
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
      this.#writing = 0;
    }
    this.#running = undefined;
  }

  /** Number of rows in the next transaction. */
  #next(): number {
    let weight = 0;
    const end = this.#waiting.slice(0, MOST).findIndex(({ row }) => {
      weight += this.#weigh(row);
      return weight > HEAVIEST;
    });
    return end === -1 ? MOST : Math.max(1, end);
  }
}
