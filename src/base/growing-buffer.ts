/** Minimum capacity once a second part is added, in bytes. */
const SMALLEST = 1024;

/**
 * Collects the parts of a body in one buffer, so that memory does not depend on the size of the parts: a
 * million kept buffers of one byte cost a hundred times as much as the bytes. Reserves at most twice the
 * bytes that it holds, three times while it grows. The caller bounds the length.
 */
export class GrowingBuffer {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;
  /** Whether `#bytes` is the caller's only part, not a copy: most bodies have one part. */
  #isOwn = false;

  /** In bytes. */
  get length(): number {
    return this.#length;
  }

  /** All parts. Its memory is shared with this buffer until the next part is added. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The first part is not copied: do not change it later. */
  push(part: Uint8Array): void {
    if (this.#length === 0) {
      this.#bytes = Buffer.from(part.buffer, part.byteOffset, part.length);
      this.#length = part.length;
      this.#isOwn = false;
      return;
    }
    const length = this.#length + part.length;
    if (!this.#isOwn || length > this.#bytes.length) {
      // Not pooled: a slice would keep the whole pool in memory.
      const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#length, length, SMALLEST));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
      this.#isOwn = true;
    }
    this.#bytes.set(part, this.#length);
    this.#length = length;
  }
}

/** All of a stream. Beyond `maxBytes` it throws `tooLong()`, and leaving the loop ends the stream. */
export async function wholeOf(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLong: () => Error,
): Promise<Buffer> {
  const whole = new GrowingBuffer();
  for await (const part of stream) {
    if (whole.length + part.length > maxBytes) {
      throw tooLong();
    }
    whole.push(part);
  }
  return whole.bytes;
}
