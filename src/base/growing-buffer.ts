/** The least that is reserved once a second part comes. In bytes. */
const SMALLEST = 1024;

/**
 * Collects the parts of a body in one buffer, so that a body costs the same memory whatever its parts are: a buffer kept for each of a
 * million parts of one byte costs a hundred times as much as the bytes. Reserves at most twice the bytes that it holds, and three times while
 * it grows. The caller bounds the length.
 */
export class GrowingBuffer {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;
  /** Whether the bytes are still those of the only part, which is not copied: most bodies come in one. */
  #isOwn = false;

  /** In bytes. */
  get length(): number {
    return this.#length;
  }

  /** All parts. Its memory is shared with this buffer until the next part is added. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** A part that is alone must not change afterwards. */
  push(part: Uint8Array): void {
    if (this.#length === 0) {
      this.#bytes = Buffer.from(part.buffer, part.byteOffset, part.length);
      this.#length = part.length;
      this.#isOwn = false;
      return;
    }
    const length = this.#length + part.length;
    if (!this.#isOwn || length > this.#bytes.length) {
      // Not from the pool of small buffers, which would be kept whole.
      const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#length, length, SMALLEST));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
      this.#isOwn = true;
    }
    this.#bytes.set(part, this.#length);
    this.#length = length;
  }
}
