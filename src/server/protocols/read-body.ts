/** Request bodies, limited in size and in parsing cost. */
import { isAscii } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { MIMEType, promisify } from 'node:util';
import { brotliDecompress, unzip } from 'node:zlib';
import createError, { HttpError } from 'http-errors';
import { Semaphore } from '../../base/concurrency-limiter.ts';
import { waitFor } from '../../base/deadline.ts';
import { codeOf } from '../../base/errors.ts';
import { GrowingBuffer } from '../../base/growing-buffer.ts';
import { MAX_DEPTH, tooDeepAt } from '../../base/yaml/tree.ts';
import { CollectedRequest, goneError } from '../listener/connections.ts';
import { type JsonBounds, PIECE_BYTES, parseInPieces, TooMuchJsonError } from './json-pieces.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A lease of ten thousand hosts has 200,000 values and five levels. */
const BOUNDS: JsonBounds = { maxValues: 300_000, maxNames: 10_000, maxDepth: MAX_DEPTH };

/**
 * The JSON body of a request, decompressed, of at most `limit` bytes. Rejects with an HTTP error that may be
 * shown to the client: 413, 415, or 400 for a body that is not JSON or exceeds `BOUNDS`. `received`: called
 * with the bytes of a body within the limit.
 */
export function readJson(
  request: IncomingMessage,
  limit: number,
  received?: (bytes: Uint8Array) => void,
): Promise<unknown> {
  // Nearly every client sends exactly this type; parsing it would cost more than all other headers.
  const types = request.headers['content-type'] === 'application/json' ? undefined : ['application/json'];
  return read(request, { limit, types, expected: 'a body in JSON' }, (bytes) => {
    received?.(bytes);
    return parsedJson(bytes);
  });
}

/** The body as text, with the same limits. `types`: accepted content types. Drops a byte order mark. */
export function readText(request: IncomingMessage, limit: number, types: readonly string[]): Promise<string> {
  return read(request, { limit, types, expected: 'a body in UTF-8' }, (bytes) => utf8.decode(bytes));
}

interface ReadOptions {
  readonly limit: number;
  /** Accepted content types; `undefined` = already checked. */
  readonly types: readonly string[] | undefined;
  /** The expected body, for the message of a 400. */
  readonly expected: string;
}

async function read<Body>(
  request: IncomingMessage,
  { limit, types, expected }: ReadOptions,
  parse: (bytes: Uint8Array) => Body | Promise<Body>,
): Promise<Body> {
  if (types !== undefined) {
    checkContentType(request, types);
  }
  try {
    return await readBody(request, limit, parse);
  } catch (thrown) {
    throw thrown instanceof HttpError
      ? thrown
      : createError(400, `expected ${thrown instanceof TooMuchJsonError ? thrown.message : expected}`);
  }
}

function checkContentType({ headers }: IncomingMessage, types: readonly string[]): void {
  const type = mediaType(headers);
  if (type === undefined || !types.includes(type.essence)) {
    throw createError(415, `expected a body of type ${types.join(' or ')}`);
  }
  if (!/^(utf-?8)?$/i.test(type.params.get('charset') ?? '')) {
    throw createError(415, 'expected a body in UTF-8');
  }
}

/** `undefined` if the request has no body, or its type cannot be parsed. */
function mediaType(headers: IncomingMessage['headers']): MIMEType | undefined {
  const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  try {
    return hasBody ? new MIMEType(headers['content-type'] ?? '') : undefined;
  } catch {
    return undefined;
  }
}

/** Parses untrusted JSON: at once, or in pieces if it is long, so that other requests can run. */
export function parsedJson(bytes: Uint8Array): unknown {
  if (bytes.length > PIECE_BYTES) {
    return parseInPieces(bytes, BOUNDS);
  }
  const value: unknown = JSON.parse(textOf(bytes));
  if (tooDeepAt(value) !== undefined) {
    throw new TooMuchJsonError(`a body that is nested no deeper than ${MAX_DEPTH} levels`);
  }
  return value;
}

/** Nearly every body is ASCII, which is detected and copied in a tenth of the time of decoding. */
function textOf(bytes: Uint8Array): string {
  return Buffer.isBuffer(bytes) && isAscii(bytes) ? bytes.toString('latin1') : utf8.decode(bytes);
}

const tooLarge = (limit: number) => createError(413, `expected a body of at most ${limit} bytes`);

/** By `Content-Encoding`. */
const UNPACK = new Map([
  ['gzip', promisify(unzip)],
  ['deflate', promisify(unzip)],
  ['br', promisify(brotliDecompress)],
]);

/** Compressed bodies in memory at a time: a few bytes become `body_limit`. Others wait, as they were sent. */
const unpacking = new Semaphore(4);

/**
 * What `parse` makes of the body of a request, decompressed. The limit applies before and after: compressed
 * data can hold any number of empty blocks. Rejects with an HTTP error 413 or 415, or the error of the
 * connection, the decompression or `parse`.
 */
async function readBody<Body>(
  request: IncomingMessage,
  limit: number,
  parse: (bytes: Uint8Array) => Body | Promise<Body>,
): Promise<Body> {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') {
    return parse(await receivedBytes(request, limit));
  }
  const unpack = UNPACK.get(encoding);
  if (unpack === undefined) {
    throw createError(415, 'expected a body in UTF-8, as it is or compressed by gzip, deflate or br');
  }
  const bytes = await receivedBytes(request, limit);
  const leave = await unpacking.enter(waitFor(undefined));
  try {
    return await parse(await unpack(bytes, { maxOutputLength: limit }));
  } catch (thrown) {
    throw codeOf(thrown) === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(limit) : thrown;
  } finally {
    leave();
  }
}

/** The bytes as sent. Rejects with an HTTP error 413 as soon as there are more than `limit`. */
function receivedBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const length = Number(request.headers['content-length']);
  if (length > limit) {
    return Promise.reject(tooLarge(limit));
  }
  const collected = length <= limit && request instanceof CollectedRequest ? request.collect() : undefined;
  return collected ?? streamedBytes(request, limit);
}

function streamedBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (request.destroyed && !request.readableEnded) {
      // The client disconnected before the first read: no further events, not even for a body that has
      // arrived.
      reject(goneError());
      return;
    }
    const body = new GrowingBuffer();
    request.on('data', (chunk: Buffer) => {
      if (body.length + chunk.length > limit) {
        request.pause();
        reject(tooLarge(limit));
      } else {
        body.push(chunk);
      }
    });
    request.on('end', () => resolve(body.bytes));
    // Also emitted after errors: a listener for each event of each request has a cost.
    request.on('close', () => {
      // Every request closes in the end, and creating an unused error costs as much as parsing the body.
      if (!request.complete) {
        reject(request.errored ?? goneError());
      }
    });
  });
}
