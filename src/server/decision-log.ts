/** The decision log: a JSON line for each decision, written in batches behind the answers, from a buffer that does not grow. */
import { close, closeSync, open, openSync, write } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemErrorText } from '../config/read-file.ts';
import type { Wait } from '../deadline.ts';
import type { Logger } from '../logger.ts';
import type { DecisionRecord } from './decision-record.ts';
import { WaitingLine } from './waiting-line.ts';

/** So many decisions may wait to be written: a disk that is busy for a moment costs none. */
const MAX_WAITING = 10_000;
/** So many are written at once: turning them into text takes about a millisecond. */
const BATCH = 500;
/** For so long they are gathered: a write of its own for each decision would cost more than the decision. */
const GATHER_MS = 20;
/** How long it is waited after an error until the same lines are tried again. */
const RETRY_MS = 500;
const FULL_PIPE_MS = 20;
const STANDARD_OUTPUT = 1;

const openFile = promisify(open);
const closeFile = promisify(close);
const writeBytes = promisify(write);

export interface DecisionLogOptions {
  /** A path, or `-` for standard output. */
  readonly destination: string;
  /** What becomes of a decision when the buffer is full. */
  readonly whenFull: 'drop' | 'block';
}

/** What is counted of a log. */
export interface DecisionLogObserver {
  /** Decisions that will never stand in the log. */
  dropped(count: number): void;
  /** A write failed, and is tried again. */
  failed(): void;
}

/** Where decisions are written. Standard output goes through the thread pool too: a slow reader must not stop the service. */
export class DecisionLog {
  readonly #options: DecisionLogOptions;
  readonly #logger: Logger;
  readonly #observer: DecisionLogObserver;
  #waiting: DecisionRecord[] = [];
  readonly #blocked = new WaitingLine();
  #writing: Promise<void> | undefined;
  #file: number | undefined;
  /** The file is to be opened anew, since it may have been moved away. */
  #stale = false;
  #failing = false;
  #dropping = false;
  #givenUp = false;

  /** @throws Error whose message completes "cannot be written: …" */
  constructor(options: DecisionLogOptions, logger: Logger, observer: DecisionLogObserver) {
    this.#options = options;
    this.#logger = logger;
    this.#observer = observer;
    if (options.destination !== '-') {
      checkWritable(options.destination);
    }
  }

  /**
   * A promise only with `whenFull: 'block'`, when the buffer is full: it resolves when there is room again, and rejects
   * with an `OverloadedError` when the wait is over before.
   */
  write(record: DecisionRecord, wait: Wait): Promise<void> | undefined {
    if (this.#waiting.length < MAX_WAITING) {
      this.#append(record);
      return undefined;
    }
    if (this.#options.whenFull === 'drop') {
      this.#drop();
      return undefined;
    }
    return this.#blocked
      .join(wait, 'The decision could not be logged in time. Please try again.')
      .then(() => this.#append(record));
  }

  /** Opens the file anew before the next line, as it must be after the old one was moved away. */
  reopen(): void {
    this.#stale = true;
  }

  /** Writes what waits. What can't be written within the time, in milliseconds, is dropped. */
  async close(withinMs: number): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#writing, pause(withinMs, undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
    this.#givenUp = true;
    if (this.#waiting.length > 0) {
      this.#observer.dropped(this.#waiting.length);
      this.#logger.error({ decisions: this.#waiting.length }, 'the end of the decision log was not written');
    }
    await this.#closeFile();
  }

  #append(record: DecisionRecord): void {
    this.#waiting.push(record);
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  #drop(): void {
    this.#observer.dropped(1);
    if (!this.#dropping) {
      this.#dropping = true;
      this.#logger.error('the decision log is too slow: decisions are dropped from it');
    }
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#givenUp) {
      if (this.#waiting.length < BATCH) {
        await pause(GATHER_MS);
      }
      const batch = this.#waiting.slice(0, BATCH);
      await this.#writeBatch(Buffer.from(batch.map((record) => `${JSON.stringify(record)}\n`).join('')));
      this.#waiting = this.#waiting.slice(batch.length);
      this.#dropping = false;
      for (let room = batch.length; room > 0 && this.#blocked.letIn(); room -= 1) {}
    }
  }

  /** Goes on until all of it is written: where it stopped, since what was written can't be taken back. */
  async #writeBatch(bytes: Buffer): Promise<void> {
    let written = 0;
    while (written < bytes.length && !this.#givenUp) {
      try {
        const file = await this.#opened();
        written += (await writeBytes(file, bytes, written)).bytesWritten;
        if (this.#failing) {
          this.#failing = false;
          this.#logger.info('the decision log is written again');
        }
      } catch (thrown) {
        if (thrown instanceof Error && 'code' in thrown && thrown.code === 'EAGAIN') {
          // A pipe that is full, and was made non-blocking by whoever shares it.
          await pause(FULL_PIPE_MS);
          continue;
        }
        this.#observer.failed();
        if (!this.#failing) {
          this.#failing = true;
          this.#logger.error({ error: systemErrorText(thrown) }, 'the decision log could not be written');
        }
        await pause(RETRY_MS);
      }
    }
  }

  async #opened(): Promise<number> {
    const { destination } = this.#options;
    if (destination === '-') {
      return STANDARD_OUTPUT;
    }
    if (this.#file === undefined || this.#stale) {
      const file = await openFile(destination, 'a');
      await this.#closeFile();
      this.#file = file;
      this.#stale = false;
    }
    return this.#file;
  }

  async #closeFile(): Promise<void> {
    if (this.#file !== undefined) {
      await closeFile(this.#file).catch(() => {});
      this.#file = undefined;
    }
  }
}

function checkWritable(path: string): void {
  try {
    closeSync(openSync(path, 'a'));
  } catch (thrown) {
    throw new Error(systemErrorText(thrown));
  }
}
