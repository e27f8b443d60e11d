/** What is remembered of a login while the browser is at the identity provider: in a sealed cookie, so that strangers fill no memory. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { readCookie, writeCookie } from './cookies.ts';

const COOKIE = 'blazar-enforcement-login';
const LIFETIME_MS = 600_000;
/** Of logins that have come back: none comes back twice. */
const MAX_USED = 10_000;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

const preSession = z.object({
  state: z.string(),
  nonce: z.string(),
  /** Of PKCE. */
  verifier: z.string(),
  /** The path that the login leads to. */
  next: z.string(),
  /** In milliseconds of the epoch. */
  since: z.number(),
});

export type PreSession = z.infer<typeof preSession>;

export class PreSessions {
  /** Of this process alone, as the sessions are. */
  readonly #key = randomBytes(32);
  readonly #used = new LRUCache<string, true>({ max: MAX_USED });

  begin(ctx: Context, next: string): PreSession {
    const [state, nonce, verifier] = [random(), random(), random()] as const;
    const begun = { state, nonce, verifier, next, since: Date.now() };
    writeCookie(ctx, COOKIE, this.#seal(JSON.stringify(begun)), SETTINGS);
    return begun;
  }

  /** The one of a browser that comes back, once; `undefined` = there is none, or it is too old. */
  take(ctx: Context): PreSession | undefined {
    const begun = this.#open(readCookie(ctx, COOKIE) ?? '');
    writeCookie(ctx, COOKIE, null, SETTINGS);
    const now = Date.now();
    if (
      begun === undefined ||
      now < begun.since ||
      now >= begun.since + LIFETIME_MS ||
      this.#used.has(begun.state)
    ) {
      return undefined;
    }
    this.#used.set(begun.state, true);
    return begun;
  }

  #seal(text: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv);
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  #open(sealed: string): PreSession | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length <= IV_BYTES + TAG_BYTES) {
      return undefined;
    }
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const opened = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()];
      return preSession.parse(JSON.parse(Buffer.concat(opened).toString()));
    } catch {
      return undefined;
    }
  }
}

/** It must come with the browser back from another site. */
const SETTINGS = { maxAge: LIFETIME_MS, sameSite: 'lax' } as const;

function random(): string {
  return randomBytes(32).toString('base64url');
}
