/** Cuts the bytes of a log into blocks of whole lines, in a few buffers that are used again and again. */
import { MAX_LINE_BYTES } from '../../decisions/lines.ts';

const LINE_FEED = 0x0a;
/** Large enough that handing a block to a thread costs nothing beside judging it. */
const BLOCK_BYTES = 512 * 1024;
/** A line that is not too long ends within. */
const CAPACITY = BLOCK_BYTES + MAX_LINE_BYTES;

/**
 * Whole lines, the last of which may lack its line feed. `undefined` = one line that is too long to be a decision. Whoever has read the
 * bytes gives their buffer back.
 */
export type LogBlock = Uint8Array<ArrayBuffer> | undefined;

export class BlockBuffers {
  readonly #free: ArrayBuffer[] = [];

  take(): ArrayBuffer {
    return this.#free.pop() ?? new ArrayBuffer(CAPACITY);
  }

  giveBack(buffer: ArrayBufferLike): void {
    // One that a thread has taken has no bytes any more.
    if (buffer instanceof ArrayBuffer && buffer.byteLength === CAPACITY) {
      this.#free.push(buffer);
    }
  }
}

/** The same lines as those of `NumberedLines`, in bounded memory. */
export class LogBlocks {
  readonly #buffers: BlockBuffers;
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;
  #isTooLong = false;

  constructor(buffers: BlockBuffers) {
    this.#buffers = buffers;
    this.#bytes = new Uint8Array(buffers.take());
  }

  /** The blocks that end in this chunk. */
  *push(chunk: Buffer): Generator<LogBlock> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#isTooLong) {
        const end = rest.indexOf(LINE_FEED);
        if (end === -1) {
          return;
        }
        this.#isTooLong = false;
        yield undefined;
        rest = rest.subarray(end + 1);
        continue;
      }
      const taken = rest.subarray(0, CAPACITY - this.#length);
      this.#bytes.set(taken, this.#length);
      this.#length += taken.length;
      rest = rest.subarray(taken.length);
      if (this.#length >= BLOCK_BYTES) {
        const end = this.#bytes.subarray(0, this.#length).lastIndexOf(LINE_FEED) + 1;
        if (end > 0) {
          yield this.#cut(end);
        } else if (this.#length > MAX_LINE_BYTES) {
          this.#isTooLong = true;
          this.#length = 0;
        }
      }
    }
  }

  /** What is left. */
  *end(): Generator<LogBlock> {
    if (this.#isTooLong) {
      yield undefined;
    } else if (this.#length > 0) {
      yield this.#bytes.subarray(0, this.#length);
    } else {
      this.#buffers.giveBack(this.#bytes.buffer);
    }
  }

  #cut(end: number): LogBlock {
    const whole = this.#bytes.subarray(0, end);
    const rest = this.#bytes.subarray(end, this.#length);
    this.#bytes = new Uint8Array(this.#buffers.take());
    this.#bytes.set(rest);
    this.#length = rest.length;
    return whole;
  }
}
