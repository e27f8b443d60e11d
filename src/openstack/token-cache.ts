/** What Keystone has said about tokens. It holds digests, never a token. */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ValidToken } from './contract.ts';

/** Entries of each store. */
const MAX_TOKENS = 10_000;
/** Of the valid tokens of a store, as estimated: names and roles are Keystone's texts. */
const MAX_BYTES = 16_777_216;
/** How long a token that Keystone does not know is refused without asking again. Short: a token may reach one Keystone before the next. */
const UNKNOWN_MS = 5000;

/** A token that Keystone has confirmed, and when it was asked, in milliseconds of the epoch. */
export interface KnownToken {
  readonly token: ValidToken;
  readonly askedAt: number;
}

/** The SHA-256 of a token: what it is kept under. */
export function tokenKey(token: string): string {
  return hash('sha256', token, 'base64');
}

/**
 * Three bounded stores, each of which forgets what was not used for longest: tokens that may ask, valid tokens that may not, and tokens
 * that Keystone does not know. So neither guesses nor the tokens of users push out those of the services.
 */
export class TokenCache {
  readonly #mayAsk = new LRUCache<string, KnownToken>(VALID_STORE);
  readonly #mayNotAsk = new LRUCache<string, KnownToken>(VALID_STORE);
  readonly #unknown = new LRUCache<string, number>({ max: MAX_TOKENS });

  /** The number of tokens that are known as valid, and as unknown to Keystone. */
  get sizes(): { valid: number; unknown: number } {
    return { valid: this.#mayAsk.size + this.#mayNotAsk.size, unknown: this.#unknown.size };
  }

  valid(key: string): KnownToken | undefined {
    return this.#mayAsk.get(key) ?? this.#mayNotAsk.get(key);
  }

  /** Whether it is in the store of those that may ask. */
  isPrivileged(key: string): boolean {
    return this.#mayAsk.has(key);
  }

  isUnknown(key: string, now: number): boolean {
    const since = this.#unknown.get(key);
    // A clock that was set back ends it too.
    return since !== undefined && now >= since && now < since + UNKNOWN_MS;
  }

  keepValid(key: string, known: KnownToken, mayAsk: boolean): void {
    this.#unknown.delete(key);
    const [store, other] = mayAsk ? [this.#mayAsk, this.#mayNotAsk] : [this.#mayNotAsk, this.#mayAsk];
    other.delete(key);
    store.set(key, known);
  }

  keepUnknown(key: string, now: number): void {
    this.#mayAsk.delete(key);
    this.#mayNotAsk.delete(key);
    this.#unknown.set(key, now);
  }
}

const VALID_STORE = {
  max: MAX_TOKENS,
  maxSize: MAX_BYTES,
  sizeCalculation: ({ token: { user, project, roles, systemRoles = [] } }: KnownToken) => {
    const texts = [user, project].flatMap((one) => (one === undefined ? [] : Object.values(one)));
    return [...texts, ...roles, ...systemRoles].reduce((sum, text) => sum + 2 * text.length + 16, 256);
  },
};
