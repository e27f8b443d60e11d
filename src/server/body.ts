import type { IncomingMessage } from 'node:http';
import parse, { type Options } from 'co-body';
import { type Context, HttpError } from 'koa';
import { type JsonBounds, PIECE_BYTES, parseInPieces, TooMuchJsonError } from './json-pieces.ts';
import { stateOf } from './request-state.ts';
import { wholeBody } from './whole-body.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A lease of ten thousand hosts has 200,000 values, and is five levels deep. */
const BOUNDS: JsonBounds = { maxValues: 300_000, maxNames: 10_000, maxDepth: 100 };

/**
 * The JSON that a request carries, of at most `body_limit` bytes, unpacked if it is compressed. Throws an HTTP error that
 * may be shown: 413, 415, or 400 for what is no JSON, or more of it than anybody needs.
 */
export async function jsonBody(ctx: Context): Promise<unknown> {
  // Nearly everyone writes exactly this, and taking it apart costs more than all else that is done with headers.
  if (ctx.req.headers['content-type'] !== 'application/json') {
    checkContentType(ctx);
  }
  const limit = stateOf(ctx).generation.options.body_limit;
  try {
    return await parsedJson(await bodyBytes(ctx.req, limit));
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
    return ctx.throw(
      400,
      `expected ${thrown instanceof TooMuchJsonError ? thrown.message : 'a body in JSON'}`,
    );
  }
}

/** What JSON means that came from outside: at once, or where it is long, with turns for others in between. */
export function parsedJson(bytes: Uint8Array): unknown {
  return bytes.length > PIECE_BYTES ? parseInPieces(bytes, BOUNDS) : JSON.parse(utf8.decode(bytes));
}

/** What a request carries, unpacked if it is compressed. Rejects with an error of status 413 or 415, or of none. */
export function bodyBytes(request: IncomingMessage, limit: number): Promise<Uint8Array> {
  return request.headers['content-encoding'] === undefined
    ? wholeBody(request, limit)
    : Promise.race([unpacked(request, limit), whenGone(request)]);
}

/** `encoding: null` = the bytes; the types of co-body know texts only. */
function unpacked(request: IncomingMessage, limit: number): Promise<Uint8Array> {
  return parse.text(request, { limit, encoding: null } as unknown as Options);
}

/** Rejects when the client goes away in the middle: what unpacks is not told so, and would wait for the rest for ever. */
function whenGone(request: IncomingMessage): Promise<never> {
  return new Promise((_, reject) => {
    request.once('close', () => {
      if (!request.complete) {
        reject(new Error('the connection was closed'));
      }
    });
  });
}

function checkContentType(ctx: Context): void {
  if (!ctx.is('application/json')) {
    ctx.throw(415, 'expected a body of type application/json');
  }
  if (!/^(utf-?8)?$/i.test(ctx.request.charset)) {
    ctx.throw(415, 'expected a body in UTF-8');
  }
}
