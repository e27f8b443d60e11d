/** The cookies of the console. */
import type { Context } from 'koa';

export interface CookieSettings {
  /** In milliseconds. */
  readonly maxAge: number;
  /** `lax`: it comes with a link from another site, such as back from an identity provider. */
  readonly sameSite: 'strict' | 'lax';
}

/**
 * The value of a cookie; `undefined` = there is none. One of two is as good as none: over http, a neighbour in the domain can add one that browsers send
 * first, and would have people work in another session than their own.
 */
export function readCookie(ctx: Context, name: string): string | undefined {
  const [value, other] = readCookies(ctx, name);
  return other === undefined ? value : undefined;
}

/** All values that were sent under the name. */
export function readCookies(ctx: Context, name: string): string[] {
  const begin = `${fullName(ctx, name)}=`;
  const pairs = ctx.get('Cookie').split(';');
  return pairs.flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(begin) ? [text.slice(begin.length)] : [];
  });
}

/** `null` deletes it. */
export function writeCookie(
  ctx: Context,
  name: string,
  value: string | null,
  settings: CookieSettings,
): void {
  ctx.cookies.secure = isSecure(ctx);
  ctx.cookies.set(fullName(ctx, name), value, { ...settings, httpOnly: true, path: '/', overwrite: true });
}

/** Over TLS browsers take such a name from this host alone: no neighbour in its domain, and nobody on http, can set it. */
function fullName(ctx: Context, name: string): string {
  return isSecure(ctx) ? `__Host-${name}` : name;
}

/**
 * A load balancer may terminate TLS; of several, the first is that of the client. A client that forges the header only keeps its own browser from
 * sending the cookie.
 */
export function isSecure(ctx: Context): boolean {
  const [ofClient = ''] = ctx.get('X-Forwarded-Proto').split(',');
  return ctx.secure || ofClient.trim().toLowerCase() === 'https';
}
