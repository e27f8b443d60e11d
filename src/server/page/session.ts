/**
 * Who has logged in: a cookie that says until when, signed. Nothing is kept here, so that every replica with the same
 * tokens knows it; and with its token a session ends.
 */
import Keygrip from 'keygrip';
import type { Context } from 'koa';
import type { AcceptedTokens } from '../credentials.ts';

const COOKIE = 'blazar-enforcement-session';
const HOURS = 8;
const MILLISECONDS = HOURS * 3_600_000;

/** Lets the browser in that sent this token. Returns whether the token is accepted. */
export function openSession(ctx: Context, tokens: AcceptedTokens, token: string): boolean {
  const key = tokens.sessionKeyOf(token);
  if (key === undefined) {
    return false;
  }
  const until = String(Date.now() + MILLISECONDS);
  setCookie(ctx, `${until}.${signatures([key]).sign(until)}`);
  return true;
}

/** Whether the request comes from a browser that was let in, not too long ago, by a token that is still accepted. */
export function hasSession(ctx: Context, tokens: AcceptedTokens): boolean {
  const keys = tokens.sessionKeys();
  const [, until = '', signature = ''] = /^(\d{1,15})\.([\w-]+)$/.exec(ctx.cookies.get(COOKIE) ?? '') ?? [];
  return keys.length > 0 && Number(until) > Date.now() && signatures(keys).verify(until, signature);
}

/** The browser forgets its cookie. */
export function endSession(ctx: Context): void {
  setCookie(ctx, null);
}

function setCookie(ctx: Context, value: string | null): void {
  // A load balancer may speak TLS for us. Who says so without one only keeps the own browser from sending the cookie.
  ctx.cookies.secure = ctx.secure || ctx.get('X-Forwarded-Proto') === 'https';
  ctx.cookies.set(COOKIE, value, { httpOnly: true, sameSite: 'strict', path: '/', maxAge: MILLISECONDS });
}

/** Not Koa's signed cookies: they are signed anew with the first of several keys, and would outlive their own. */
function signatures(keys: readonly string[]): Keygrip {
  return new Keygrip(keys, 'sha256');
}
