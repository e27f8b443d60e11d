import { IncomingMessage } from 'node:http';
import { GrowingBuffer } from '../../base/growing-buffer.ts';

/** Who waits for the body. */
interface Collector {
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (reason: Error) => void;
}

/**
 * A request whose body can be collected as the parser reads it, without a stream, whose events cost as much as the decision about a lease.
 * Until `collect` is called it is a stream like any other.
 */
export class CollectedRequest extends IncomingMessage {
  #collector: Collector | undefined;
  #isBegun = false;
  #body: GrowingBuffer | undefined;

  /**
   * The bytes of the body, which the caller has bounded by `Content-Length`. Rejects if the client goes away before the end. `undefined` = some
   * of it is in the stream already, or the client has gone. The stream never ends then: only `complete` tells that everything has come.
   */
  collect(): Promise<Buffer> | undefined {
    if (this.#isBegun || this.destroyed) {
      return undefined;
    }
    return new Promise((resolve, reject) => {
      this.#collector = { resolve, reject };
    });
  }

  /** Called by the parser with each part of the body, and with `null` at its end. */
  override push(part: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.#collector === undefined) {
      this.#isBegun = true;
      return super.push(part, encoding);
    }
    if (part === null) {
      this.#end(this.#collector);
    } else {
      this.#body ??= new GrowingBuffer();
      this.#body.push(part);
    }
    return true;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.complete) {
      this.#collector?.reject(error ?? goneError());
    }
    super._destroy(error, done);
  }

  #end({ resolve }: Collector): void {
    const body = this.#body?.bytes ?? Buffer.alloc(0);
    // The parser keeps a request until the next one of its connection, and nothing large may live so long.
    this.#isBegun = true;
    this.#collector = undefined;
    this.#body = undefined;
    resolve(body);
  }
}

/** The client has gone before the end of its body. */
export function goneError(): Error {
  return new Error('the connection was closed');
}
