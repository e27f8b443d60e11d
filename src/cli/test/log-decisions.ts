/** Reads the decisions of logs, one after the other: what the log of a month holds never is in memory at once. */
import { NumberedLines } from '../../decisions/numbered-lines.ts';
import type { LogFile } from './log-files.ts';
import { isSelected, type LogSelection } from './log-selection.ts';
import { type PastDecision, pastDecision } from './past-decision.ts';

/** Lines that are no decisions, such as one that was cut off. */
export interface DamagedLines {
  readonly count: number;
  /** The first of them, as `file:line`, and why. */
  readonly first: readonly string[];
}

const MAX_SHOWN = 10;

export class LogDecisions {
  readonly #files: readonly LogFile[];
  readonly #selection: LogSelection;
  #damaged = 0;
  readonly #first: string[] = [];
  /** Bytes that were read from the disk. */
  bytes = 0;

  constructor(files: readonly LogFile[], selection: LogSelection) {
    this.#files = files;
    this.#selection = selection;
  }

  get damaged(): DamagedLines {
    return { count: this.#damaged, first: this.#first };
  }

  /**
   * Calls `take` with each selected decision, in order, and `chunkRead` now and then. A promise is waited for.
   *
   * @throws UsageError if a file cannot be read
   */
  async each(
    take: (past: PastDecision) => Promise<void> | undefined,
    chunkRead: () => void = () => {},
  ): Promise<void> {
    for (const file of this.#files) {
      const lines = new NumberedLines();
      for await (const chunk of file.chunks((bytes) => {
        this.bytes += bytes;
      })) {
        await this.#taken(file, lines.push(chunk), take);
        chunkRead();
      }
      await this.#taken(file, lines.end(), take);
    }
  }

  async #taken(
    file: LogFile,
    lines: ReturnType<NumberedLines['push']>,
    take: (past: PastDecision) => Promise<void> | undefined,
  ): Promise<void> {
    for (const { number, text } of lines) {
      const past = text === undefined ? undefined : pastDecision(text);
      if (past === undefined) {
        const why = text === undefined ? 'longer than 1 MiB' : 'not a decision';
        this.#damage(`${file.name}:${number}: ${why}`);
      } else if (isSelected(past, this.#selection)) {
        const taken = take(past);
        if (taken !== undefined) {
          await taken;
        }
      }
    }
  }

  #damage(what: string): void {
    this.#damaged += 1;
    if (this.#first.length < MAX_SHOWN) {
      this.#first.push(what);
    }
  }
}
