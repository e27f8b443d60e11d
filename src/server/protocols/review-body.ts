/** Reads the review in a request of an API server, or as much of it as a response needs. */

import type { IncomingMessage } from 'node:http';
import { type Context, HttpError } from 'koa';
import { InvalidRequestError } from '../../base/errors.ts';
import { GrowingBuffer } from '../../base/growing-buffer.ts';
import {
  parseAdmissionReview,
  START_BYTES,
  type UnreadReview,
  unreadReview,
  unreadReviewAt,
} from '../../kubernetes/admission/admission-review.ts';
import { bodyLimit } from '../request-state.ts';
import { readJson } from './read-body.ts';

interface ReadBody {
  readonly request: ReturnType<typeof parseAdmissionReview>;
  readonly unread?: undefined;
}

export interface UnreadBody {
  readonly unread: UnreadReview;
  /** A message for the user. */
  readonly why: string;
}

/** Throws the error of `readJson` or `parseAdmissionReview` if no response is possible. */
export async function readReview(ctx: Context): Promise<ReadBody | UnreadBody> {
  let start: Uint8Array | undefined;
  let body: unknown;
  try {
    body = await readJson(ctx.req, bodyLimit(ctx), (bytes) => {
      start = bytes;
    });
  } catch (thrown) {
    const unread =
      thrown instanceof HttpError && (thrown.status === 400 || thrown.status === 413)
        ? unreadReviewAt(start ?? (await startOf(ctx.req)))
        : undefined;
    if (unread === undefined) {
      throw thrown;
    }
    return { unread, why: thrown instanceof Error ? thrown.message : '' };
  }
  try {
    return { request: parseAdmissionReview(body) };
  } catch (thrown) {
    const unread = thrown instanceof InvalidRequestError ? unreadReview(body) : undefined;
    if (unread === undefined || !(thrown instanceof InvalidRequestError)) {
      throw thrown;
    }
    return { unread, why: thrown.message };
  }
}

/** The largest body of an API server: the largest object it accepts, twice, with every character escaped. */
const MAX_DRAINED_BYTES = 64 * 1024 * 1024;
const DRAIN_MS = 1000;

/**
 * The start of a body that was not read because its `Content-Length` is too large. Drains the rest, for a
 * while: a client that is still sending may not see a response.
 */
function startOf(request: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve) => {
    const start = new GrowingBuffer();
    let length = 0;
    const done = () => {
      clearTimeout(timer);
      request.off('data', hear);
      request.pause();
      resolve(start.bytes);
    };
    const hear = (chunk: Buffer) => {
      length += chunk.length;
      if (start.length < START_BYTES) {
        start.push(chunk.subarray(0, START_BYTES - start.length));
      }
      if (length > MAX_DRAINED_BYTES) {
        done();
      }
    };
    const timer = setTimeout(done, DRAIN_MS);
    const isCollected = request.complete && request.readableLength === 0;
    if (isCollected || request.readableEnded || request.destroyed || request.readableFlowing !== null) {
      // Already read.
      done();
      return;
    }
    request.on('data', hear);
    request.once('end', done);
    request.once('close', done);
  });
}
