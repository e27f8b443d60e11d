import type { IncomingMessage } from 'node:http';
import { GrowingBuffer } from '../growing-buffer.ts';

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
  readonly status = 413;
}

/**
 * The bytes of an uncompressed body, at most `limit`. Rejects with a `BodyTooLargeError` as soon as it is longer, and with the error
 * of the connection.
 */
export function wholeBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length']) > limit) {
      reject(new BodyTooLargeError());
      return;
    }
    if (isGone(request)) {
      reject(goneError());
      return;
    }
    const body = new GrowingBuffer();
    request.on('data', (chunk: Buffer) => {
      if (body.length + chunk.length > limit) {
        request.pause();
        reject(new BodyTooLargeError());
      } else {
        body.push(chunk);
      }
    });
    request.on('end', () => {
      resolve(body.bytes);
    });
    // Tells of errors too: a listener for each event of each request is not free.
    request.on('close', () => {
      // Every request closes in the end, and creating an unused error costs as much as parsing the body.
      if (!request.complete) {
        reject(request.errored ?? goneError());
      }
    });
  });
}

/** Whether the client has gone before anything was read: no event will come any more, not even of a body that has arrived. */
function isGone(request: IncomingMessage): boolean {
  return request.destroyed && !request.readableEnded;
}

export function goneError(): Error {
  return new Error('the connection was closed');
}
