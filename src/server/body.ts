import { isAscii } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, unzip } from 'node:zlib';
import { type Context, HttpError } from 'koa';
import { type JsonBounds, PIECE_BYTES, parseInPieces, TooMuchJsonError } from './json-pieces.ts';
import { stateOf } from './request-state.ts';
import { BodyTooLargeError, wholeBody } from './whole-body.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A lease of ten thousand hosts has 200,000 values and five levels. */
const BOUNDS: JsonBounds = { maxValues: 300_000, maxNames: 10_000, maxDepth: 100 };

/**
 * The JSON body of a request, decompressed, of at most `body_limit` bytes. Throws an HTTP error that may be shown to the client: 413,
 * 415, or 400 for a body that is not JSON or exceeds `BOUNDS`. `received`: hears the bytes of a body that is not longer.
 */
export async function jsonBody(ctx: Context, received?: (bytes: Uint8Array) => void): Promise<unknown> {
  // Nearly every client sends exactly this, and parsing it would cost more than everything else about headers.
  if (ctx.req.headers['content-type'] !== 'application/json') {
    checkContentType(ctx, ['application/json']);
  }
  return bounded(ctx, 'a body in JSON', (bytes) => {
    received?.(bytes);
    return parsedJson(bytes);
  });
}

/** The body of a request as a text, in the same bounds. `types`: those that it may have. A byte order mark is left out. */
export function textBody(ctx: Context, types: readonly string[]): Promise<string> {
  checkContentType(ctx, types);
  return bounded(ctx, 'a body in UTF-8', (bytes) => utf8.decode(bytes));
}

async function bounded<Body>(
  ctx: Context,
  expected: string,
  parse: (bytes: Uint8Array) => Body | Promise<Body>,
): Promise<Body> {
  const { generation, body } = stateOf(ctx);
  const limit = generation.options.body_limit;
  try {
    return await parse(await (body ?? bodyBytes(ctx.req, limit)));
  } catch (thrown) {
    const status = thrown instanceof Error && 'status' in thrown ? thrown.status : undefined;
    if (status === 413) {
      ctx.throw(413, `expected a body of at most ${limit} bytes`);
    }
    if (status === 415) {
      ctx.throw(415, 'expected a body in UTF-8, as it is or compressed by gzip, deflate or br');
    }
    if (thrown instanceof HttpError && thrown.status >= 500) {
      throw thrown;
    }
    return ctx.throw(400, `expected ${thrown instanceof TooMuchJsonError ? thrown.message : expected}`);
  }
}

/** Parses JSON from outside: at once, or in pieces if it is long, so that others get their turn. */
export function parsedJson(bytes: Uint8Array): unknown {
  return bytes.length > PIECE_BYTES ? parseInPieces(bytes, BOUNDS) : JSON.parse(textOf(bytes));
}

/** Nearly every body is ASCII, which is found and copied in a tenth of the time that decoding takes. */
function textOf(bytes: Uint8Array): string {
  return Buffer.isBuffer(bytes) && isAscii(bytes) ? bytes.toString('latin1') : utf8.decode(bytes);
}

/** The body of a request, decompressed. Rejects with an error that has the status 413 or 415, or none. */
export function bodyBytes(request: IncomingMessage, limit: number): Promise<Uint8Array> {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  return encoding === 'identity' ? wholeBody(request, limit) : unpacked(request, encoding, limit);
}

/** By `Content-Encoding`. */
const UNPACK = new Map([
  ['gzip', promisify(unzip)],
  ['deflate', promisify(unzip)],
  ['br', promisify(brotliDecompress)],
]);

class UnknownEncodingError extends Error {
  override readonly name = 'UnknownEncodingError';
  readonly status = 415;
}

/** Packed and unpacked, it is at most so long: what is packed can hold any number of blocks of nothing. */
async function unpacked(request: IncomingMessage, encoding: string, limit: number): Promise<Uint8Array> {
  const unpack = UNPACK.get(encoding);
  if (unpack === undefined) {
    throw new UnknownEncodingError();
  }
  const bytes = await wholeBody(request, limit);
  try {
    return await unpack(bytes, { maxOutputLength: limit });
  } catch (thrown) {
    const isTooLong = thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_BUFFER_TOO_LARGE';
    throw isTooLong ? new BodyTooLargeError() : thrown;
  }
}

function checkContentType(ctx: Context, types: readonly string[]): void {
  if (!ctx.is([...types])) {
    ctx.throw(415, `expected a body of type ${types.join(' or ')}`);
  }
  if (!/^(utf-?8)?$/i.test(ctx.request.charset)) {
    ctx.throw(415, 'expected a body in UTF-8');
  }
}
