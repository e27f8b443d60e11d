/** Reads the forms of the console. */
import type { Context } from 'koa';
import { BodyTooLargeError, readBody, UnknownEncodingError } from '../protocols/read-body.ts';

/**
 * The fields of a form of at most `limit` bytes; `undefined` if it is longer or has too many. Throws an HTTP
 * error that may be shown: 403 for a cross-site form, 415, or 400 for an incomplete one.
 */
export async function readForm(ctx: Context, limit: number): Promise<URLSearchParams | undefined> {
  if (isFromElsewhere(ctx)) {
    ctx.throw(403, 'expected a form of this page, not of another site');
  }
  if (!ctx.is('application/x-www-form-urlencoded')) {
    ctx.throw(415, 'expected a form, of type application/x-www-form-urlencoded');
  }
  try {
    // UTF-8, as browsers decode it: never throws.
    return await readBody(ctx.req, limit, (bytes) =>
      hasTooManyFields(bytes) ? undefined : new URLSearchParams(new TextDecoder().decode(bytes)),
    );
  } catch (thrown) {
    if (thrown instanceof BodyTooLargeError) {
      return undefined;
    }
    if (thrown instanceof UnknownEncodingError) {
      ctx.throw(415, 'expected a form that is not compressed, or compressed by gzip, deflate or br');
    }
    return ctx.throw(400, 'expected a complete form');
  }
}

/** More than any form of the console has. */
const MAX_FIELDS = 100;
const AMPERSAND = 0x26;

/** Each field costs memory, and a form could have millions. */
function hasTooManyFields(bytes: Uint8Array): boolean {
  let at = -1;
  for (let fields = 1; fields <= MAX_FIELDS; fields += 1) {
    at = bytes.indexOf(AMPERSAND, at + 1);
    if (at === -1) {
      return false;
    }
  }
  return true;
}

/**
 * Whether the browser reports a cross-site form. Browsers send no cookie with it, but without tokens there is
 * no cookie. Over http, browsers send `Sec-Fetch-Site` only to the same machine, but `Origin` to all.
 */
function isFromElsewhere(ctx: Context): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  if (site !== '') {
    return site !== 'same-origin' && site !== 'none';
  }
  const origin = ctx.get('Origin');
  return origin !== '' && (!URL.canParse(origin) || new URL(origin).host !== ctx.host);
}
