/**
 * Sessions of the console. A session ends at logout, also for a stolen cookie, when its proof is no longer
 * valid, and when it expires. The configuration selects the store: see `session-store.ts`. The cookie is
 * random; it is needed to find and to decrypt the stored session.
 */
import { timingSafeEqual } from 'node:crypto';
import createError from 'http-errors';
import type { Context } from 'koa';
import { OverloadedError } from '../../../base/concurrency-limiter.ts';
import { type Wait, withinDeadline } from '../../../base/deadline.ts';
import { errorText } from '../../../base/errors.ts';
import { FairLimiter } from '../../../base/fair-limiter.ts';
import type { Logger } from '../../../base/logger.ts';
import { stateOf } from '../../request-state.ts';
import type { Caller } from '../caller.ts';
import {
  type FoundSession,
  hasExpired,
  MemorySessions,
  type ProviderMarks,
  type SessionStore,
} from './session-store.ts';
import type { SessionTable } from './session-table.ts';
import {
  bindingOf,
  digest,
  randomText,
  type StoredProof,
  type StoredSession,
  seal,
  sealingKey,
  storedSession,
  unseal,
} from './stored-session.ts';

const COOKIE = 'blazar-enforcement-session';
const COOKIE_FORM = /^[\w-]{43}$/;
/** Concurrent and queued lookups in a database: strangers may invent cookies. */
const MAX_ASKED = 16;
const MAX_WAITING = 1000;
export const TOO_MANY_SESSIONS = 'There are too many sessions. Please try again later.';
export const NO_SESSION_NOW = 'No session can be opened now. Please try again in a moment.';
const AWAY = 'sessions cannot be looked up now; please try again in a moment';
/** In seconds. */
const RETRY_AFTER = '5';
/** In milliseconds: after longer validations the session is looked up again, since it may have ended. */
const LONG = 20;

export interface HeldSession {
  readonly kept: StoredProof;
  /** In milliseconds of the epoch, by the common clock of all replicas. */
  readonly since: number;
  readonly now: number;
  /** Replaces the stored proof. `undefined` = another request has replaced it, or the session has ended. */
  keep(kept: StoredProof): Promise<HeldSession | undefined>;
  /** Reads it again; `undefined` = it has ended. */
  again(): Promise<HeldSession | undefined>;
  end(): Promise<void>;
}

interface SessionParts {
  /** The user of the session; `undefined` = no longer valid. Throws an HTTP error if that is unknown. */
  readonly ownerOf: (ctx: Context, held: HeldSession) => Promise<Caller | undefined>;
  readonly logger: Logger;
  /** The store if the ledger cannot hold sessions. */
  readonly memory?: SessionStore;
}

interface Found {
  readonly name: string;
  readonly csrf: string;
  readonly held: HeldSession;
}

/** Methods reject with an HTTP error 503 while the store cannot be reached; the cause is logged. */
export class Sessions {
  readonly #parts: SessionParts;
  readonly #memory: SessionStore;
  readonly #line = new FairLimiter(MAX_ASKED, MAX_WAITING);
  /** The session last found for each request. */
  readonly #found = new WeakMap<Context, Found>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#memory = parts.memory ?? new MemorySessions();
  }

  /** Opens a session with a new cookie, and ends the request's. Returns a message if it cannot be opened. */
  async open(ctx: Context, proof: StoredProof): Promise<string | undefined> {
    const id = randomText();
    const { identity, ...binding } = bindingOf(proof);
    const content: StoredSession = { csrf: randomText(), proof };
    const session = {
      name: digest(id),
      owner: digest(identity),
      ...binding,
      sealed: seal(content, keyOfCookie(id)),
    };
    const opening = { lifetime: lifetimeOf(ctx), instead: idsOf(ctx).map(digest) };
    const isOpen = await this.#ask(ctx, (store, wait) => store.open(session, opening, wait)).catch(
      () => undefined,
    );
    if (isOpen === undefined) {
      return NO_SESSION_NOW;
    }
    this.#found.delete(ctx);
    setCookie(ctx, isOpen ? id : null);
    return isOpen ? undefined : TOO_MANY_SESSIONS;
  }

  /** The caller of the session. Ends a session that has expired or whose proof is no longer valid. */
  async callerOf(ctx: Context): Promise<Caller | undefined> {
    const found = await this.#find(ctx);
    if (found === undefined) {
      return undefined;
    }
    const asked = performance.now();
    const caller = await this.#parts.ownerOf(ctx, found.held);
    if (caller === undefined) {
      this.#found.delete(ctx);
      await found.held.end();
      return undefined;
    }
    const isStillThere = performance.now() - asked < LONG || (await this.#find(ctx))?.name === found.name;
    return isStillThere ? caller : undefined;
  }

  async proofOf(ctx: Context): Promise<StoredProof | undefined> {
    return (this.#found.get(ctx) ?? (await this.#find(ctx)))?.held.kept;
  }

  /** The CSRF token of forms; empty without a session, and before `callerOf` or `proofOf` found it. */
  csrfOf(ctx: Context): string {
    return this.#found.get(ctx)?.csrf ?? '';
  }

  /** Ends the session of the request, and deletes its cookie. */
  async end(ctx: Context): Promise<void> {
    const names = idsOf(ctx).map(digest);
    if (names.length > 0) {
      await this.#ask(ctx, (store, wait) => store.end(names, wait));
    }
    this.#found.delete(ctx);
    setCookie(ctx, null);
  }

  /** Ends the sessions that the identity provider names. Resolves to their number. */
  endMarked(ctx: Context, marks: ProviderMarks): Promise<number> {
    return this.#ask(ctx, (store, wait) => store.endMarked(marks, wait));
  }

  /** Whether any replica sees a text for the first time within `lifetime` milliseconds. */
  takeOnce(ctx: Context, text: string, lifetime: number): Promise<boolean> {
    return this.#ask(ctx, (store, wait) => store.takeOnce(digest(text), lifetime, wait));
  }

  /** Work on the shared table; `undefined` = no shared database, or it does not answer, which is logged. */
  async shared<Result>(
    ctx: Context,
    work: (table: SessionTable, wait: Wait) => Promise<Result>,
  ): Promise<Result | undefined> {
    try {
      return await this.#within(ctx, (table, wait) =>
        table === undefined ? Promise.resolve(undefined) : work(table, wait),
      );
    } catch (thrown) {
      const facts = { request_id: stateOf(ctx).requestId, error: errorText(thrown) };
      this.#parts.logger.warn(facts, 'wrong logins are counted by this process alone');
      return undefined;
    }
  }

  async #find(ctx: Context): Promise<Found | undefined> {
    this.#found.delete(ctx);
    const id = readCookie(ctx, COOKIE);
    if (id === undefined || !COOKIE_FORM.test(id)) {
      return undefined;
    }
    const name = digest(id);
    const key = keyOfCookie(id);
    const row = await this.#ask(ctx, (store, wait) => store.find(name, wait));
    const content = row && storedSession.safeParse(unseal(row.sealed, key)).data;
    if (row === undefined || content === undefined) {
      return undefined;
    }
    if (hasExpired(row, lifetimeOf(ctx))) {
      await this.#ask(ctx, (store, wait) => store.end([name], wait));
      return undefined;
    }
    const { csrf, proof } = content;
    const held = (
      kept: StoredProof,
      { since, now, revision }: Omit<FoundSession, 'sealed'>,
    ): HeldSession => ({
      kept,
      since,
      now,
      keep: async (next) => {
        const sealed = seal({ csrf, proof: next } satisfies StoredSession, key);
        const isKept = await this.#ask(ctx, (store, wait) => store.replace(name, revision, sealed, wait));
        return isKept ? held(next, { since, now, revision: revision + 1 }) : undefined;
      },
      again: async () => (await this.#find(ctx))?.held,
      end: () => this.#ask(ctx, (store, wait) => store.end([name], wait)),
    });
    const found = { name, csrf, held: held(proof, row) };
    this.#found.set(ctx, found);
    return found;
  }

  /** Within the deadline of the service. `table`: `undefined` = replicas share no database. */
  #within<Result>(
    ctx: Context,
    work: (table: SessionTable | undefined, wait: Wait) => Promise<Result>,
  ): Promise<Result> {
    const { options, sessions } = stateOf(ctx).generation;
    return withinDeadline(options.deadline, async (wait) => {
      const table = await sessions?.store(wait);
      return table === undefined ? work(table, wait) : this.#line.run(wait, ctx.ip, () => work(table, wait));
    });
  }

  /** @throws HttpError 503 if the store cannot be reached, OverloadedError */
  async #ask<Result>(
    ctx: Context,
    work: (store: SessionStore, wait: Wait) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await this.#within(ctx, (table, wait) => work(table ?? this.#memory, wait));
    } catch (thrown) {
      if (thrown instanceof OverloadedError) {
        throw thrown;
      }
      const facts = { request_id: stateOf(ctx).requestId, error: errorText(thrown) };
      this.#parts.logger.warn(facts, 'sessions of the console cannot be reached');
      throw createError(503, AWAY, { expose: true, headers: { 'Retry-After': RETRY_AFTER } });
    }
  }
}

function keyOfCookie(id: string): Buffer {
  return sealingKey(id, 'session');
}

/** All cookies that may be ids of sessions. */
function idsOf(ctx: Context): string[] {
  return readCookies(ctx, COOKIE).filter((id) => COOKIE_FORM.test(id));
}

/** Whether a form has sent the CSRF token. False without a session. */
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

interface CookieSettings {
  /** In milliseconds. */
  readonly maxAge: number;
  /** `lax`: also sent when a link or redirect leads here from another site, such as an identity provider. */
  readonly sameSite: 'strict' | 'lax';
}

/**
 * The value of a cookie; `undefined` = none, or more than one: over http, a neighbour in the domain can add
 * one that browsers send first, so that users would work in another session.
 */
export function readCookie(ctx: Context, name: string): string | undefined {
  const [value, other] = readCookies(ctx, name);
  return other === undefined ? value : undefined;
}

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

/** Over TLS, browsers accept such a name only from this host, not from its domain or over http. */
function fullName(ctx: Context, name: string): string {
  return isSecure(ctx) ? `__Host-${name}` : name;
}

/**
 * A load balancer may terminate TLS; of several values, the first is the client's. A client that forges the
 * header only keeps its own browser from sending the cookie.
 */
export function isSecure(ctx: Context): boolean {
  const [ofClient = ''] = ctx.get('X-Forwarded-Proto').split(',');
  return ctx.secure || ofClient.trim().toLowerCase() === 'https';
}
