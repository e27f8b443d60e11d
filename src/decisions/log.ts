/**
 * The decision log: a JSON line per decision, written in batches after the responses, from a bounded buffer.
 */
import { close, constants, fstat, open, openSync, statSync, write } from 'node:fs';
import { open as openForReading } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { WaitQueue } from '../base/concurrency-limiter.ts';
import { createFile } from '../base/create-file.ts';
import type { Wait } from '../base/deadline.ts';
import { codeOf } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { visibleJson } from '../base/visible-text.ts';
import { systemErrorText } from '../config/read-file.ts';
import { type DecisionRecord, recordJson } from './record.ts';

/** Limit of queued decisions, so that a briefly busy disk loses none. */
const MAX_WAITING = 10_000;
/** Decisions serialized together: long-lived objects cost the garbage collector more than bytes. */
const PIECE = 64;
/** Pieces written at once. A write frees space for as many. */
const PIECES = 16;
/** Delay to gather decisions: one write per decision would cost more than the decision. */
const GATHER_MS = 20;
/** Delay before the same lines are retried after an error. */
const RETRY_MS = 500;
const FULL_PIPE_MS = 20;
/** Limit of the total characters of queued requests: beyond it, decisions are logged without requests. */
const MAX_REQUESTS_LENGTH = 64 * 1024 * 1024;
const NO_ROOM = '"request_left_out":"no-room"';
const STANDARD_OUTPUT = 1;
const LINE_FEED = 0x0a;

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants;
/** Never wait for the reader of a pipe: a blocked thread delays other file access and the process's exit. */
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;
/** For a file that is moved away after `createFile` has found it. */
const MODE = 0o660;

const writeBytes = promisify(write);
const openFile = promisify(open);
const closeFile = promisify(close);
const statFile = promisify(fstat);

interface DecisionLogOptions {
  /** A path, or `-` for standard output. */
  readonly destination: string;
  /** What to do with a decision if the buffer is full. */
  readonly whenFull: 'drop' | 'block';
}

export interface DecisionLogObserver {
  /** Decisions that will never be in the log. */
  dropped(count: number): void;
  /** A write failed and will be retried. */
  failed(): void;
}

interface Piece {
  readonly bytes: Buffer;
  readonly count: number;
  /** Characters of its requests. */
  readonly requestsLength: number;
}

/** A decision, and its request as a member of JSON. */
interface Waiting {
  readonly record: DecisionRecord;
  readonly request: string | undefined;
}

/** Writes decisions. Standard output also uses the thread pool: a slow reader must not stop the service. */
export class DecisionLog {
  readonly #options: DecisionLogOptions;
  readonly #logger: Logger;
  readonly #observer: DecisionLogObserver;
  /** The latest decisions; earlier ones are queued as bytes. */
  #records: Waiting[] = [];
  #pieces: Piece[] = [];
  /** Number of unwritten decisions. */
  #waiting = 0;
  /** Characters of all unwritten requests, and of those in `#records`. */
  #requestsLength = 0;
  #recordsLength = 0;
  readonly #blocked = new WaitQueue();
  #writing: Promise<void> | undefined;
  #file: number | undefined;
  /** Reopen the file before the next write: it may have been moved away, or end in the middle of a line. */
  #stale = true;
  #failing = false;
  /** Decisions dropped since the log became too slow. */
  #dropped = 0;
  readonly #givenUp = new AbortController();

  /** @throws Error whose message completes "cannot be written: …" */
  constructor(options: DecisionLogOptions, logger: Logger, observer: DecisionLogObserver) {
    this.#options = options;
    this.#logger = logger;
    this.#observer = observer;
    if (options.destination !== '-') {
      this.#file = openAtOnce(options.destination);
    }
  }

  /**
   * Returns a promise only if the buffer is full and `whenFull` is `block`. It resolves when there is room
   * again, and rejects with an `OverloadedError` if the wait ends first. Ask before a decision that records
   * something elsewhere.
   */
  room(wait: Wait): Promise<void> | undefined {
    return this.#options.whenFull === 'drop' || this.#hasRoom
      ? undefined
      : this.#blocked.join(wait, 'The decision could not be logged in time. Please try again.');
  }

  /**
   * Returns a promise as `room` does. `wait`: `undefined` = `room` was waited for; what was decided since then is kept beyond the bound.
   * `request`: a member of JSON, from `requestMember`.
   */
  write(record: DecisionRecord, wait: Wait | undefined, request?: string): Promise<void> | undefined {
    const room = wait && this.room(wait);
    if (room !== undefined) {
      return room.then(() => this.#append(record, request));
    }
    if (this.#hasRoom || (this.#options.whenFull === 'block' && !this.#givenUp.signal.aborted)) {
      this.#append(record, request);
    } else {
      this.#drop();
    }
    return undefined;
  }

  get #hasRoom(): boolean {
    return this.#waiting < MAX_WAITING && !this.#givenUp.signal.aborted;
  }

  /** Reopens the file before the next line. For log rotation. */
  reopen(): void {
    this.#stale = true;
  }

  /** Writes the rest. Decisions that cannot be written within `withinMs` are dropped. */
  async close(withinMs: number): Promise<void> {
    const late = setTimeout(() => this.#givenUp.abort(), withinMs);
    await this.#writing;
    clearTimeout(late);
    this.#givenUp.abort();
    if (this.#waiting > 0) {
      this.#observer.dropped(this.#waiting);
      this.#logger.error({ decisions: this.#waiting }, 'the end of the decision log was not written');
    }
    await this.#closeFile();
  }

  #append(record: DecisionRecord, request: string | undefined): void {
    const length = request?.length ?? 0;
    const hasRoom = this.#requestsLength + length <= MAX_REQUESTS_LENGTH;
    this.#records.push({ record, request: hasRoom ? request : NO_ROOM });
    if (hasRoom) {
      this.#requestsLength += length;
      this.#recordsLength += length;
    }
    this.#waiting += 1;
    if (this.#records.length >= PIECE) {
      this.#endPiece();
    }
    this.#writing ??= this.#writeAll();
  }

  #endPiece(): void {
    if (this.#records.length > 0) {
      let text = '';
      for (const { record, request } of this.#records) {
        text += logLine(record, request);
      }
      const requestsLength = this.#recordsLength;
      this.#pieces.push({ bytes: Buffer.from(text), count: this.#records.length, requestsLength });
      this.#records = [];
      this.#recordsLength = 0;
    }
  }

  #drop(): void {
    this.#observer.dropped(1);
    if (this.#dropped === 0) {
      this.#logger.error('the decision log is too slow: decisions are dropped from it');
    }
    this.#dropped += 1;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting > 0 && !this.#givenUp.signal.aborted) {
      if (this.#pieces.length < PIECES) {
        await this.#pause(GATHER_MS);
        this.#endPiece();
      }
      // In a separate statement: `#waiting` may change during the await.
      const pieces = this.#pieces.splice(0, PIECES);
      const written = await this.#writePieces(pieces);
      this.#waiting -= written;
      this.#requestsLength -= pieces.reduce((sum, { requestsLength }) => sum + requestsLength, 0);
      for (let room = MAX_WAITING - this.#waiting; room > 0 && this.#blocked.letIn(); room -= 1) {}
    }
    if (this.#dropped > 0 && this.#waiting === 0) {
      this.#logger.warn({ decisions: this.#dropped }, 'the decision log is fast enough again');
      this.#dropped = 0;
    }
    // In the same tick as the check above: the next record must start a new run.
    this.#writing = undefined;
  }

  /**
   * Retries until everything is written or `close` gives up. Returns the number of complete lines written.
   */
  async #writePieces(pieces: readonly Piece[]): Promise<number> {
    const bytes = Buffer.concat(pieces.map((piece) => piece.bytes));
    let file = this.#file;
    let written = 0;
    while (written < bytes.length && !this.#givenUp.signal.aborted) {
      try {
        const before = file;
        file = await this.#opened();
        if (file !== before) {
          // A line that was partly written to the old file is written to the new file as a whole.
          written = bytes.subarray(0, written).lastIndexOf(LINE_FEED) + 1;
        }
        written += (await writeBytes(file, bytes, written)).bytesWritten;
        if (this.#failing) {
          this.#failing = false;
          this.#logger.info('the decision log is written again');
        }
      } catch (thrown) {
        if (codeOf(thrown) === 'EAGAIN') {
          await this.#pause(FULL_PIPE_MS);
        } else {
          this.#reportFailure(thrown);
          await this.#pause(RETRY_MS);
        }
      }
    }
    return written === bytes.length
      ? pieces.reduce((sum, { count }) => sum + count, 0)
      : bytes.subarray(0, written).filter((byte) => byte === LINE_FEED).length;
  }

  #reportFailure(thrown: unknown): void {
    this.#observer.failed();
    if (!this.#failing) {
      this.#failing = true;
      const { destination: file } = this.#options;
      this.#logger.error({ file, error: systemErrorText(thrown) }, 'the decision log could not be written');
    }
  }

  /** Ends early if `close` gives up. */
  #pause(milliseconds: number): Promise<void> {
    return pause(milliseconds, undefined, { signal: this.#givenUp.signal }).catch(() => {});
  }

  async #opened(): Promise<number> {
    const { destination } = this.#options;
    if (destination === '-') {
      return STANDARD_OUTPUT;
    }
    if (this.#file === undefined || this.#stale) {
      // Set before opening, so that a concurrent `reopen` is not lost.
      this.#stale = false;
      const file = await openForAppending(destination).catch((thrown: unknown) => {
        this.#stale = true;
        throw thrown;
      });
      await this.#closeFile();
      this.#file = file;
    }
    return this.#file;
  }

  async #closeFile(): Promise<void> {
    if (this.#file !== undefined) {
      await closeAppended(this.#file);
      this.#file = undefined;
    }
  }
}

/** The line of a decision, with its line feed. `request`: a member of JSON, from `requestMember`. */
function logLine(record: DecisionRecord, request: string | undefined): string {
  const json = recordJson(record);
  return request === undefined ? `${json}\n` : `${json.slice(0, -1)},${visibleJson(request)}}\n`;
}

/**
 * Creates the file if it does not exist. `undefined` = a pipe without a reader. Keep an open pipe open: its
 * reader takes closing as the end.
 *
 * @throws Error whose message completes "cannot be written: …"
 */
function openAtOnce(path: string): number | undefined {
  try {
    createFile(path);
    return openSync(path, FLAGS, MODE);
  } catch (thrown) {
    if (codeOf(thrown) === 'ENXIO' && statSync(path).isFIFO()) {
      return undefined;
    }
    throw new Error(systemErrorText(thrown));
  }
}

/** Opens the file so that the next write starts a new line, even if the last line is incomplete. */
async function openForAppending(path: string): Promise<number> {
  createFile(path);
  const file = await openFile(path, FLAGS, MODE);
  try {
    if (await endsWithinLine(file, path)) {
      await writeBytes(file, Buffer.of(LINE_FEED));
    }
    return file;
  } catch (thrown) {
    await closeAppended(file);
    throw thrown;
  }
}

async function closeAppended(file: number): Promise<void> {
  await closeFile(file).catch(() => {});
}

async function endsWithinLine(opened: number, path: string): Promise<boolean> {
  // Checks the opened file: the path may belong to another one by now.
  const there = await statFile(opened);
  if (!there.isFile() || there.size === 0) {
    return false;
  }
  // Without read permission, this check is skipped.
  const file = await openForReading(path).catch(() => undefined);
  const read = await file?.read({ buffer: Buffer.alloc(1), position: there.size - 1 });
  await file?.close();
  return read?.bytesRead === 1 && read.buffer[0] !== LINE_FEED;
}
