import type { IncomingMessage } from 'node:http';

/** The body is longer than it may be. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
  readonly status = 413;
}

/**
 * The bytes of a body that is not compressed, of at most `limit`. Rejects with a `BodyTooLargeError` as soon as it is known
 * to be longer, and with what broke the connection. What co-body puts around the same events, for the sake of compressed
 * bodies, costs twice as much as the decision.
 */
export function wholeBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length']) > limit) {
      reject(new BodyTooLargeError());
      return;
    }
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) {
        request.pause();
        reject(new BodyTooLargeError());
      } else {
        chunks.push(chunk);
      }
    });
    request.on('end', () => {
      const [only] = chunks;
      resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks));
    });
    request.on('error', reject);
    request.on('close', () => {
      // Every request is closed some time, and an error that nobody reads costs as much as parsing the body.
      if (!request.complete) {
        reject(new Error('the connection was closed'));
      }
    });
  });
}
