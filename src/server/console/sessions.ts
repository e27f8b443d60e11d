/**
 * Sessions of the page, kept only in this process. A session ends at logout, even for a stolen cookie, when its token is removed, when
 * it expires, and with the process. A signed cookie would be valid at every replica, and after the logout.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import type { AcceptedTokens } from '../credentials.ts';
import { stateOf } from '../request-state.ts';

const COOKIE = 'blazar-enforcement-session';
/** Maximum number of sessions. One more ends the oldest. */
const MAX_SESSIONS = 1000;

interface Session {
  /** Identifies the token that opened it. */
  readonly key: string;
  /** In milliseconds. */
  readonly since: number;
}

export class Sessions {
  readonly #tokens: AcceptedTokens;
  /** By the hash of their cookie, oldest first. */
  readonly #open = new Map<string, Session>();

  constructor(tokens: AcceptedTokens) {
    this.#tokens = tokens;
  }

  /** Opens a session if the token is accepted. Returns whether it is. */
  open(ctx: Context, token: string): boolean {
    const key = this.#tokens.sessionKeyOf(token);
    if (key === undefined) {
      return false;
    }
    this.end(ctx);
    const oldest = this.#open.size < MAX_SESSIONS ? undefined : this.#open.keys().next().value;
    if (oldest !== undefined) {
      this.#open.delete(oldest);
    }
    const id = randomBytes(32).toString('base64url');
    this.#open.set(digest(id), { key, since: Date.now() });
    setCookie(ctx, id);
    return true;
  }

  /** Whether the request has a session that is not expired and whose token is still accepted. */
  has(ctx: Context): boolean {
    const name = nameOf(ctx);
    const session = name === undefined ? undefined : this.#open.get(name);
    if (name === undefined || session === undefined) {
      return false;
    }
    const isOver = Date.now() >= session.since + lifetimeOf(ctx) || Date.now() < session.since;
    if (isOver || !this.#tokens.sessionKeys().includes(session.key)) {
      this.#open.delete(name);
      return false;
    }
    return true;
  }

  /** Ends the session of the request, and deletes its cookie. */
  end(ctx: Context): void {
    const name = nameOf(ctx);
    if (name !== undefined) {
      this.#open.delete(name);
    }
    setCookie(ctx, null);
  }
}

function nameOf(ctx: Context): string | undefined {
  const id = ctx.cookies.get(COOKIE);
  return id === undefined ? undefined : digest(id);
}

/** In milliseconds, from the current configuration: a shorter lifetime applies at once. */
function lifetimeOf(ctx: Context): number {
  return stateOf(ctx).generation.options.session_lifetime * 1000;
}

function setCookie(ctx: Context, value: string | null): void {
  // A load balancer may terminate TLS. A client that forges the header only keeps its own browser from sending the cookie.
  ctx.cookies.secure = ctx.secure || ctx.get('X-Forwarded-Proto') === 'https';
  ctx.cookies.set(COOKIE, value, {
    httpOnly: true,
    sameSite: 'strict',
    path: '/',
    maxAge: lifetimeOf(ctx),
    overwrite: true,
  });
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('base64');
}
