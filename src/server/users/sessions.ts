/**
 * Sessions of the console, kept only in this process. A session ends at logout, even for a stolen cookie, when what has opened it is no
 * longer valid, when it expires, and with the process. A signed cookie would be valid at every replica, and after the logout.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { stateOf } from '../request-state.ts';
import type { Caller } from './caller.ts';
import { Shares } from './shares.ts';

const COOKIE = 'blazar-enforcement-session';
/** Of all. One more ends a session of whoever has most, and is refused if everybody has one. */
const MAX_SESSIONS = 10_000;
/** Of one user of Keystone or of the identity provider. One more ends the oldest. */
const MAX_OF_USER = 20;
/** Of one token of the configuration. One more ends the newest: strangers who share it cannot end those of the others. */
const MAX_OF_TOKEN = 200;
export const TOO_MANY_SESSIONS = 'There are too many sessions. Please try again later.';

/** What has opened a session, and keeps it open. */
export interface Proof {
  /** Whose it is, as in `Caller`. */
  readonly identity: string;
  /** Whether many may have it, such as a token of the configuration. */
  readonly isShared: boolean;
  /** Whom it proves now; `undefined` = nobody any more. Throws an HTTP error if nobody can tell. */
  owner(ctx: Context): Promise<Caller | undefined>;
}

interface Session {
  readonly proof: Proof;
  readonly csrf: string;
  /** In milliseconds of the epoch. */
  readonly since: number;
}

export class Sessions {
  /** By the hash of their cookie, oldest first. */
  readonly #open = new Map<string, Session>();
  readonly #shares: Shares<string>;

  /** `max`: of all. */
  constructor(max = MAX_SESSIONS) {
    this.#shares = new Shares(max);
  }

  /** Opens a session under a new cookie, and ends the one of the request. Returns whether there was room. */
  open(ctx: Context, proof: Proof): boolean {
    this.end(ctx);
    this.#deleteExpired(ctx);
    const { identity, isShared } = proof;
    const isAtBound = this.#shares.of(identity).length >= (isShared ? MAX_OF_TOKEN : MAX_OF_USER);
    const giving = isAtBound ? identity : this.#shares.givesWay(identity);
    if (giving !== undefined && !this.#giveWay(giving)) {
      return false;
    }
    const id = random();
    const name = digest(id);
    this.#open.set(name, { proof, csrf: random(), since: Date.now() });
    this.#shares.add(identity, name);
    setCookie(ctx, id);
    return true;
  }

  /** The caller of the session of a request. Ends one that has expired, or whose proof is gone. */
  async callerOf(ctx: Context): Promise<Caller | undefined> {
    const [name, session] = this.#find(ctx);
    if (session === undefined) {
      return undefined;
    }
    const caller = await session.proof.owner(ctx);
    if (caller === undefined) {
      this.#delete(name);
    }
    // Somebody may have logged out meanwhile.
    return this.#open.get(name) === session ? caller : undefined;
  }

  proofOf(ctx: Context): Proof | undefined {
    return this.#find(ctx)[1]?.proof;
  }

  /** What forms of the session must send back; empty without a session. */
  csrfOf(ctx: Context): string {
    return this.#find(ctx)[1]?.csrf ?? '';
  }

  /** Ends the session of the request, and deletes its cookie. */
  end(ctx: Context): void {
    for (const id of readCookies(ctx, COOKIE)) {
      this.#delete(digest(id));
    }
    setCookie(ctx, null);
  }

  /** Ends those whose proofs fit. Returns how many. */
  endThose(isMeant: (proof: Proof) => boolean): number {
    const meant = [...this.#open].filter(([, { proof }]) => isMeant(proof));
    for (const [name] of meant) {
      this.#delete(name);
    }
    return meant.length;
  }

  /** Ends one session of an identity; `false` = it has none. */
  #giveWay(identity: string): boolean {
    const names = this.#shares.of(identity);
    const [oldest] = names;
    const isShared = oldest !== undefined && this.#open.get(oldest)?.proof.isShared === true;
    const name = isShared ? names.at(-1) : oldest;
    if (name === undefined) {
      return false;
    }
    this.#delete(name);
    return true;
  }

  /** Others must not give way to what has ended. */
  #deleteExpired(ctx: Context): void {
    for (const [name, session] of this.#open) {
      if (!hasExpired(ctx, session)) {
        return;
      }
      this.#delete(name);
    }
  }

  #delete(name: string): void {
    const session = this.#open.get(name);
    if (session !== undefined) {
      this.#open.delete(name);
      this.#shares.delete(session.proof.identity, name);
    }
  }

  #find(ctx: Context): readonly [string, Session | undefined] {
    const id = readCookie(ctx, COOKIE);
    const name = id === undefined ? '' : digest(id);
    const session = this.#open.get(name);
    if (session !== undefined && hasExpired(ctx, session)) {
      this.#delete(name);
      return [name, undefined];
    }
    return [name, session];
  }
}

/** Whether a form has sent back what it must. Never without a session. */
export function isCsrf(expected: string, sent: string | null): boolean {
  const [ours, theirs] = [digest(expected), digest(sent ?? '')].map((text) => Buffer.from(text));
  return expected !== '' && ours !== undefined && theirs !== undefined && timingSafeEqual(ours, theirs);
}

/** A clock that was set back lets none live longer. */
function hasExpired(ctx: Context, { since }: Session): boolean {
  const now = Date.now();
  return now >= since + lifetimeOf(ctx) || now < since;
}

/** In milliseconds, from the current configuration: a shorter lifetime applies at once. */
function lifetimeOf(ctx: Context): number {
  return stateOf(ctx).generation.options.session_lifetime * 1000;
}

function setCookie(ctx: Context, value: string | null): void {
  writeCookie(ctx, COOKIE, value, { maxAge: lifetimeOf(ctx), sameSite: 'strict' });
}

function random(): string {
  return randomBytes(32).toString('base64url');
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('base64');
}

interface CookieSettings {
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
function readCookies(ctx: Context, name: string): string[] {
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
