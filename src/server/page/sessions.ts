/**
 * Who has logged in, kept in this process alone: with a logout a session has ended, whoever has kept its cookie. It ends with its
 * token, with its time and with the process, too. A signed cookie would be known to every replica, and to its thief after the logout.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import type { AcceptedTokens } from '../credentials.ts';
import { stateOf } from '../request-state.ts';

const COOKIE = 'blazar-enforcement-session';
/** More people don't look at one process. With one more the oldest session ends. */
const MAX_SESSIONS = 1000;

interface Session {
  /** That of the token that has opened it. */
  readonly key: string;
  /** In milliseconds. */
  readonly since: number;
}

export class Sessions {
  readonly #tokens: AcceptedTokens;
  /** By what their cookies hash to, oldest first. */
  readonly #open = new Map<string, Session>();

  constructor(tokens: AcceptedTokens) {
    this.#tokens = tokens;
  }

  /** Lets the browser in that sent this token. Returns whether the token is accepted. */
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

  /** Whether the request comes from a browser that was let in, not too long ago, by a token that is still accepted. */
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

  /** Ends that of the request for good, and the browser forgets its cookie. */
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

/** In milliseconds, as the configuration says now: a shorter one counts at once. */
function lifetimeOf(ctx: Context): number {
  return stateOf(ctx).generation.options.session_lifetime * 1000;
}

function setCookie(ctx: Context, value: string | null): void {
  // A load balancer may speak TLS for us. Who says so without one only keeps the own browser from sending the cookie.
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
