/** The pipe that the decisions of a worker come through. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

const LINE_FEED = 0x0a;
/** In bytes: a pipe holds less, so one read takes all that it has. */
const BUFFER_SIZE = 256 * 1024;
/** A line is far shorter. */
const MAX_LINE = 16 * 1024 * 1024;
/** How long to let lines gather in the system between two reads, at most: a read for each would cost more than writing it. */
const GATHER_MS = 40;
const MIN_GATHER_MS = 5;
/** So many bytes may gather. A pipe that is full holds up its worker, and short lines fill it with a third of its 208 KiB. */
const GATHERED = 64 * 1024;

/** Where lines go. Returns a promise if there is no room yet. */
export type TakeLines = (lines: Buffer, count: number) => Promise<void> | undefined;

export class LogPipe {
  /** The end that a worker is started with. To be destroyed here when it has its copy: the pipe ends when nobody has that end. */
  readonly far: Socket;
  readonly #near: Socket;
  readonly #buffer: Buffer;
  #take: TakeLines = () => undefined;
  /** A line that has no end yet. */
  #begun: Buffer = Buffer.alloc(0);

  /**
   * `path`: a name for a socket that nobody else uses, in a folder that only this user can read. The pipes that `child_process` makes read ahead,
   * so that each line wakes the primary, which costs both of them more than the line.
   */
  static async open(path: string): Promise<LogPipe> {
    const server = createServer({ pauseOnConnect: true });
    try {
      server.listen(path);
      await once(server, 'listening');
      const buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE);
      let pipe: LogPipe | undefined;
      const callback = (length: number) => pipe === undefined || pipe.#heard(length);
      const near = connect({ path, onread: { buffer, callback } });
      const both = Promise.all([once(server, 'connection') as Promise<[Socket]>, once(near, 'connect')]);
      // With too few descriptors for the other end, the system connects, and closes at once.
      const closed = once(near, 'close').then(() => {
        throw new Error('a pipe was closed before it was open: too many files may be open');
      });
      const [[far]] = await Promise.race([both, closed]);
      // It is closed some day.
      closed.catch(() => {});
      pipe = new LogPipe(near, far, buffer);
      return pipe;
    } finally {
      // Removes its file, too.
      server.close();
    }
  }

  private constructor(near: Socket, far: Socket, buffer: Buffer) {
    this.#near = near;
    this.far = far;
    this.#buffer = buffer;
  }

  /**
   * Passes on complete lines; one that was cut off is nobody's answer. Resolves at the end of the pipe, when all lines are taken: it is not seen
   * while there is no room for those before.
   */
  read(take: TakeLines): Promise<void> {
    this.#take = take;
    return new Promise((ended) => {
      this.#near.once('close', () => ended());
      // `close` follows.
      this.#near.on('error', () => {});
    });
  }

  /** For a worker that is not started. */
  close(): void {
    this.far.destroy();
    this.#near.destroy();
  }

  /** Called with the bytes at the beginning of the buffer. Whether to read on at once. */
  #heard(length: number): boolean {
    const read = this.#buffer.subarray(0, length);
    const end = read.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) {
      this.#begun = this.#begun.length < MAX_LINE ? Buffer.concat([this.#begun, read]) : Buffer.alloc(0);
      return true;
    }
    // A copy, since the buffer is used again.
    const lines = Buffer.concat([this.#begun, read.subarray(0, end)]);
    this.#begun = Buffer.from(read.subarray(end));
    const room = this.#take(lines, countOf(lines));
    const readOn = () => this.#near.resume();
    if (room === undefined) {
      readTogether(length, readOn);
    } else {
      void room.then(readOn);
    }
    return false;
  }
}

/** How long to let lines gather, after so many bytes have gathered in `milliseconds`. */
export function gatherMs(milliseconds: number, bytes: number): number {
  const untilEnough = Math.floor((milliseconds * GATHERED) / bytes);
  return Math.max(MIN_GATHER_MS, Math.min(untilEnough, GATHER_MS));
}

const waiting: (() => void)[] = [];
let milliseconds = GATHER_MS;
/** The most bytes that a pipe has had since they were last read together. */
let most = 1;

/** Pipes are read together, whoever is first: the primary wakes once for all workers, and writes their lines at once. */
function readTogether(bytes: number, read: () => void): void {
  most = Math.max(most, bytes);
  waiting.push(read);
  if (waiting.length === 1) {
    milliseconds = gatherMs(milliseconds, most);
    most = 1;
    setTimeout(() => {
      for (const one of waiting.splice(0)) {
        one();
      }
    }, milliseconds);
  }
}

function countOf(lines: Buffer): number {
  let count = 0;
  for (let at = lines.indexOf(LINE_FEED); at >= 0; at = lines.indexOf(LINE_FEED, at + 1)) {
    count += 1;
  }
  return count;
}
