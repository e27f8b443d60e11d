/** The cookies of the console. */
import type { Context } from 'koa';

export interface CookieSettings {
  /** In milliseconds. */
  readonly maxAge: number;
  /** `lax`: it comes with a link from another site, such as back from an identity provider. */
  readonly sameSite: 'strict' | 'lax';
}

/** The value of a cookie; `undefined` = there is none. */
export function readCookie(ctx: Context, name: string): string | undefined {
  return ctx.cookies.get(fullName(ctx, name));
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

/** A load balancer may terminate TLS. A client that forges the header only keeps its own browser from sending the cookie. */
export function isSecure(ctx: Context): boolean {
  return ctx.secure || ctx.get('X-Forwarded-Proto') === 'https';
}
