import parse, { type Options } from 'co-body';
import { type Context, HttpError } from 'koa';

const LIMIT_BYTES = 1024 * 1024;

/** `encoding: null` = the bytes; the types of co-body know texts only. */
const READ_OPTIONS = { limit: LIMIT_BYTES, encoding: null } as unknown as Options;

/**
 * The JSON that a request carries, of at most 1 MiB, unpacked if it is compressed. Throws an HTTP error that may be
 * shown: 413, 415, or 400 for what is no JSON.
 */
export async function jsonBody(ctx: Context): Promise<unknown> {
  if (!ctx.is('application/json')) {
    ctx.throw(415, 'expected a body of type application/json');
  }
  if (!/^(utf-?8)?$/i.test(ctx.request.charset)) {
    ctx.throw(415, 'expected a body in UTF-8');
  }
  try {
    const bytes: Uint8Array = await parse.text(ctx.req, READ_OPTIONS);
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (thrown) {
    const status = thrown instanceof Error && 'status' in thrown ? thrown.status : undefined;
    if (status === 413) {
      ctx.throw(413, `expected a body of at most ${LIMIT_BYTES} bytes`);
    }
    if (status === 415) {
      ctx.throw(415, 'expected a body in UTF-8, as it is or compressed by gzip, deflate or br');
    }
    if (thrown instanceof HttpError && thrown.status >= 500) {
      throw thrown;
    }
    return ctx.throw(400, 'expected a body in JSON');
  }
}
