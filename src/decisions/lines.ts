const LINE_FEED = 0x0a;

/** No decision is this long, but a file that is not a log may be one line of gigabytes. */
export const MAX_LINE_BYTES = 1024 * 1024;

/** Splits bytes into lines, in bounded memory. */
export class LineSplitter {
  #begun: Buffer[] = [];
  #length = 0;
  #tooLong = 0;

  /** How many lines were skipped because they are longer than 1 MiB. */
  get tooLong(): number {
    return this.#tooLong;
  }

  /** The lines that end in this chunk. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      this.#take(chunk.subarray(start, end));
      lines.push(...this.end());
      start = end + 1;
    }
    // A copy, since the caller may reuse its buffer.
    this.#take(Buffer.from(chunk.subarray(start)));
    return lines;
  }

  /** The last line, if it has no line feed. */
  end(): string[] {
    const [only = Buffer.alloc(0)] = this.#begun;
    const line = this.#begun.length > 1 ? Buffer.concat(this.#begun) : only;
    const tooLong = this.#length > MAX_LINE_BYTES;
    this.#begun = [];
    this.#length = 0;
    if (tooLong) {
      this.#tooLong += 1;
    }
    return tooLong || line.length === 0 ? [] : [line.toString()];
  }

  #take(part: Buffer): void {
    this.#length += part.length;
    if (this.#length > MAX_LINE_BYTES) {
      this.#begun = [];
    } else if (part.length > 0) {
      this.#begun.push(part);
    }
  }
}
