/**
 * Sessions of the console, kept only in this process. A session ends at logout, even for a stolen cookie, when what has opened it is no
 * longer valid, when it expires, and with the process. A signed cookie would be valid at every replica, and after the logout.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { stateOf } from '../request-state.ts';
import { readCookie, readCookies, writeCookie } from './cookies.ts';
import type { Person } from './person.ts';

const COOKIE = 'blazar-enforcement-session';
/** Maximum number of sessions. One more ends the oldest. */
const MAX_SESSIONS = 1000;
/** Of one user of Keystone or of the identity provider: nobody may end the sessions of all others by logging in. */
const MAX_OF_ONE = 20;

/** What has opened a session, and keeps it open. */
export interface Proof {
  /** Identifies the user; `undefined` = many may share it, such as a token of the configuration. */
  readonly userId?: string | undefined;
  /** Whom it proves now; `undefined` = nobody any more. Throws an HTTP error if nobody can tell. */
  owner(ctx: Context): Promise<Person | undefined>;
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

  /** Opens a session under a new cookie, and ends the one of the request. */
  open(ctx: Context, proof: Proof): void {
    this.end(ctx);
    const same = [...this.#open].filter(
      ([, other]) => proof.userId !== undefined && other.proof.userId === proof.userId,
    );
    const oldest =
      same.length < MAX_OF_ONE
        ? this.#open.size < MAX_SESSIONS
          ? undefined
          : this.#open.keys().next().value
        : same[0]?.[0];
    if (oldest !== undefined) {
      this.#open.delete(oldest);
    }
    const id = random();
    this.#open.set(digest(id), { proof, csrf: random(), since: Date.now() });
    setCookie(ctx, id);
  }

  /** The person of the session of a request. Ends one that has expired, or whose proof is gone. */
  async personOf(ctx: Context): Promise<Person | undefined> {
    const [name, session] = this.#find(ctx);
    if (session === undefined) {
      return undefined;
    }
    const person = await session.proof.owner(ctx);
    if (person === undefined) {
      this.#open.delete(name);
    }
    // Somebody may have logged out meanwhile.
    return this.#open.get(name) === session ? person : undefined;
  }

  /** What has opened the session of a request. */
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
      this.#open.delete(digest(id));
    }
    setCookie(ctx, null);
  }

  #find(ctx: Context): readonly [string, Session | undefined] {
    const id = readCookie(ctx, COOKIE);
    const name = id === undefined ? '' : digest(id);
    const session = this.#open.get(name);
    const now = Date.now();
    if (session !== undefined && (now >= session.since + lifetimeOf(ctx) || now < session.since)) {
      this.#open.delete(name);
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
