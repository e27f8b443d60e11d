/** Reads the forms of the console. */
import type { Context } from 'koa';
import { readText } from '../protocols/read-body.ts';

/** More than any form of the console has. Each field costs memory, and a form could have millions. */
const MAX_FIELDS = 100;

/**
 * The fields of a form of at most `limit` bytes. Throws an HTTP error that may be shown: 403 for a cross-site
 * form, 413, 415, or 400 for an incomplete one.
 */
export async function readForm(ctx: Context, limit: number): Promise<URLSearchParams> {
  if (isFromElsewhere(ctx)) {
    ctx.throw(403, 'expected a form of this page, not of another site');
  }
  const text = await readText(ctx.req, limit, ['application/x-www-form-urlencoded']);
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) {
    ctx.throw(413, `expected a form of at most ${MAX_FIELDS} fields`);
  }
  return new URLSearchParams(text);
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
