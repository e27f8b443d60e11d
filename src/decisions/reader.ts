import { type FileHandle, open, stat } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
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

const CHUNK_BYTES = 256 * 1024;
/** Interval of looking for appended bytes. */
const POLL_MS = 250;

export type FollowedChunk =
  | Buffer
  /** Everything so far has been read. */
  | 'caught up'
  /** The next bytes are from a new file, or from the start of this one. */
  | 'begins anew';

/**
 * Reads a file from its start, then appended bytes, until the signal fires. A truncated file is read from its
 * start again. After a file was moved away, the next file with its name is read once it is not empty, so that
 * lines still written to the old file are not lost. A truncation is missed if the file grows beyond its old
 * length within a quarter of a second.
 */
export async function* followChunks(
  path: string,
  signal: AbortSignal,
  pollMs = POLL_MS,
): AsyncGenerator<FollowedChunk> {
  let file = await openRegular(path);
  let position = 0;
  let replaced = false;
  try {
    while (!signal.aborted) {
      const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES) });
      position += bytesRead;
      if (bytesRead > 0) {
        yield buffer.subarray(0, bytesRead);
        continue;
      }
      // Leave the old file only after reading it to its end.
      const next = replaced ? await openRegular(path).catch(() => undefined) : undefined;
      replaced = false;
      if (next !== undefined) {
        await file.close();
        file = next;
        position = 0;
        yield 'begins anew';
        continue;
      }
      yield 'caught up';
      await pause(pollMs, undefined, { signal }).catch(() => {});
      replaced = await isReplaced(path, file, position);
    }
  } finally {
    await file.close();
  }
}

async function openRegular(path: string): Promise<FileHandle> {
  // Opening a pipe would wait for a writer.
  if (!(await stat(path)).isFile()) {
    throw new Error('only a file can be followed, or standard input');
  }
  return open(path);
}

async function isReplaced(path: string, file: FileHandle, position: number): Promise<boolean> {
  const [there, here] = await Promise.all([
    stat(path, { bigint: true }).catch(() => undefined),
    file.stat({ bigint: true }),
  ]);
  if (there === undefined) {
    return false;
  }
  return there.dev === here.dev && there.ino === here.ino ? here.size < position : there.size > 0;
}
