/** Validates clients' tokens with Keystone, or with its earlier answers. */

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ConcurrencyLimiter } from '../base/concurrency-limiter.ts';
import { inTime, withinDeadline } from '../base/deadline.ts';
import { errorText } from '../base/errors.ts';
import { FairLimiter } from '../base/fair-limiter.ts';
import type { Logger } from '../base/logger.ts';
import type { Clock } from '../filter/services.ts';
import type { Keystone, ValidToken } from './contract.ts';

/** `from`: source of the answer. `outage` = an earlier answer, since Keystone does not answer now. */
export type TokenAnswer =
  | { readonly kind: 'valid'; readonly token: ValidToken; readonly from: 'cache' | 'keystone' | 'outage' }
  | { readonly kind: 'invalid'; readonly from: 'cache' | 'keystone' | 'form' }
  /** Unknown: `reason` is the cause, without any part of the token. */
  | { readonly kind: 'unavailable'; readonly from: 'busy' | 'outage'; readonly reason: string };

export interface ValidationSettings {
  /** How many seconds an answer is used without a new request. 0 = no caching. */
  readonly cacheSeconds: number;
  /** How long a request waits for Keystone, in seconds. */
  readonly deadline: number;
  /** Whether a valid token may send requests: others only have separate caches and queues. */
  readonly mayAsk: (token: ValidToken) => boolean;
}

/** For metrics. It must not throw. */
export interface ValidationObserver {
  tokenValidated(outcome: 'valid' | 'invalid' | 'failed'): void;
}

interface ValidationServices {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: ValidationObserver | undefined;
}

/** A Fernet token has about 200 characters; with many groups of a federated user up to a few thousand. */
const MAX_TOKEN_LENGTH = 4096;
/** The characters of tokens: base64url, base64, and the dots of JWS. */
const TOKEN_FORM = /^[A-Za-z0-9_.~+/=-]+$/;
/** Concurrent validations per queue; more wait. Strangers invent tokens: known tokens have separate queues. */
const MAX_UNDER_WAY = 32;
const MAX_WAITING = 256;
/** After a failure, known tokens are accepted for this long while Keystone is called in parallel. */
const OUTAGE_MS = 30_000;
const WARN_EVERY_MS = 60_000;

const MALFORMED: TokenAnswer = { kind: 'invalid', from: 'form' };
const INVALID: TokenAnswer = { kind: 'invalid', from: 'keystone' };
const KNOWN_INVALID: TokenAnswer = { kind: 'invalid', from: 'cache' };
const OUTAGE: TokenAnswer = {
  kind: 'unavailable',
  from: 'outage',
  reason: 'the token cannot be validated now, because Keystone does not answer; please try again',
};
const BUSY: TokenAnswer = {
  kind: 'unavailable',
  from: 'busy',
  reason: 'the token cannot be validated now, because too many others are; please try again',
};

/**
 * Validates a token with one request to Keystone, however many requests have it, and caches the answer: for
 * `cacheSeconds`, never beyond the token's expiry. While Keystone does not answer, or not usefully, a
 * confirmed token stays valid until it expires; for any other the answer is `unavailable`. No failure makes a
 * token valid.
 */
export class TokenValidation {
  readonly #keystone: Pick<Keystone, 'validate' | 'close'>;
  readonly #services: ValidationServices;
  readonly #cache = new TokenCache();
  readonly #flights = new Map<string, Promise<TokenAnswer>>();
  readonly #privileged = new ConcurrencyLimiter(MAX_UNDER_WAY, MAX_WAITING);
  readonly #known = new ConcurrencyLimiter(MAX_UNDER_WAY, MAX_WAITING);
  readonly #others = new FairLimiter(MAX_UNDER_WAY, MAX_WAITING);
  /** Time of Keystone's failure, if it has not answered since. */
  #failedAt: number | undefined;
  #saidOutage = false;
  #isClosed = false;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(keystone: Pick<Keystone, 'validate' | 'close'>, services: ValidationServices) {
    this.#keystone = keystone;
    this.#services = services;
  }

  get sizes(): { valid: number; unknown: number } {
    return this.#cache.sizes;
  }

  /** Tokens being validated, including queued ones. */
  get underWay(): number {
    return this.#flights.size;
  }

  /**
   * Never rejects. Known answers are returned without a promise. `address`: of the client; clients share
   * the queue for unknown tokens fairly.
   */
  ask(token: string, settings: ValidationSettings, address = ''): TokenAnswer | Promise<TokenAnswer> {
    if (token.length > MAX_TOKEN_LENGTH || !TOKEN_FORM.test(token)) {
      return MALFORMED;
    }
    const key = hash('sha256', token, 'base64');
    const now = this.#now();
    const known = this.#cache.valid(key);
    if (known === undefined) {
      return this.#cache.isUnknown(key, now)
        ? KNOWN_INVALID
        : this.#waitForUnknown(key, token, settings, address);
    }
    if (!isAlive(known, now)) {
      this.#cache.keepUnknown(key, now);
      return KNOWN_INVALID;
    }
    if (isWithin(known.askedAt, now, settings.cacheSeconds * 1000)) {
      return { kind: 'valid', token: known.token, from: 'cache' };
    }
    const flight = this.#validate(key, token, settings, address);
    if (this.#failedAt !== undefined && isWithin(this.#failedAt, now, OUTAGE_MS)) {
      return { kind: 'valid', token: known.token, from: 'outage' };
    }
    return this.#waitForKnown(known, flight, settings);
  }

  /** Closes the client, which aborts what is in progress: no request may still wait for it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#keystone.close();
  }

  async #waitForUnknown(
    key: string,
    token: string,
    settings: ValidationSettings,
    address: string,
  ): Promise<TokenAnswer> {
    return (await inSeconds(settings.deadline, this.#validate(key, token, settings, address))) ?? OUTAGE;
  }

  /** Half of the time: the lease is still to be checked. Token owners can cause a full queue: no outage. */
  async #waitForKnown(
    known: KnownToken,
    flight: Promise<TokenAnswer>,
    { deadline }: ValidationSettings,
  ): Promise<TokenAnswer> {
    const answer = (await inSeconds(deadline / 2, flight)) ?? OUTAGE;
    return answer.from === 'outage' && isAlive(known, this.#now())
      ? { kind: 'valid', token: known.token, from: 'outage' }
      : answer;
  }

  /** Not cancelled when a request ends: others may wait for the same answer. */
  #validate(key: string, token: string, settings: ValidationSettings, address: string): Promise<TokenAnswer> {
    let flight = this.#flights.get(key);
    if (flight === undefined) {
      flight = this.#inTurn(key, token, settings, address).finally(() => this.#flights.delete(key));
      this.#flights.set(key, flight);
    }
    return flight;
  }

  async #inTurn(
    key: string,
    token: string,
    settings: ValidationSettings,
    address: string,
  ): Promise<TokenAnswer> {
    const line = this.#lineOf(key);
    return withinDeadline(settings.deadline, async (deadline) => {
      try {
        await line.enter(deadline, address);
      } catch {
        this.#warn({ under_way: this.underWay }, 'too many tokens wait to be validated');
        return BUSY;
      }
      try {
        // Taken before the call: an answer may describe a time before it arrives.
        const askedAt = this.#now();
        const { signal } = deadline;
        const valid = await inTime(this.#keystone.validate(token, { signal }), deadline);
        return this.#learn(key, askedAt, valid, settings);
      } catch (thrown) {
        return this.#failed(thrown, token);
      } finally {
        line.leave();
      }
    });
  }

  #lineOf(key: string): Pick<FairLimiter, 'enter' | 'leave'> {
    if (this.#cache.isPrivileged(key)) {
      return this.#privileged;
    }
    return this.#cache.valid(key) === undefined ? this.#others : this.#known;
  }

  #learn(
    key: string,
    askedAt: number,
    valid: ValidToken | undefined,
    { mayAsk }: ValidationSettings,
  ): TokenAnswer {
    const { logger, observer } = this.#services;
    const now = this.#now();
    if (this.#failedAt !== undefined) {
      this.#failedAt = undefined;
      if (this.#saidOutage) {
        this.#saidOutage = false;
        logger.info('Keystone validates tokens again');
      }
    }
    const known = valid && { token: valid, askedAt };
    if (known !== undefined && isAlive(known, now)) {
      observer?.tokenValidated('valid');
      this.#cache.keepValid(key, known, mayAsk(known.token));
      return { kind: 'valid', token: known.token, from: 'keystone' };
    }
    observer?.tokenValidated('invalid');
    this.#cache.keepUnknown(key, now);
    return INVALID;
  }

  #failed(thrown: unknown, token: string): TokenAnswer {
    if (this.#isClosed) {
      return OUTAGE;
    }
    this.#services.observer?.tokenValidated('failed');
    this.#failedAt = this.#now();
    const error = errorText(thrown).replaceAll(token, '(token)');
    if (this.#warn({ error }, 'Keystone did not validate a token: only known tokens are accepted')) {
      this.#saidOutage = true;
    }
    return OUTAGE;
  }

  /** Rate-limited: any client can cause such lines. Returns whether it was logged. */
  #warn(fields: object, message: string): boolean {
    const now = this.#now();
    if (isWithin(this.#warnedAt, now, WARN_EVERY_MS)) {
      return false;
    }
    this.#warnedAt = now;
    this.#services.logger.warn(fields, message);
    return true;
  }

  #now(): number {
    return this.#services.clock.now().getTime();
  }
}

/** False if the expiry is not a number. */
function isAlive({ token }: KnownToken, now: number): boolean {
  return now < token.expiresAt;
}

/** False if the clock was set back to before `since`. */
function isWithin(since: number, now: number, milliseconds: number): boolean {
  return now >= since && now < since + milliseconds;
}

/** `undefined` = too late. */
function inSeconds(seconds: number, answer: Promise<TokenAnswer>): Promise<TokenAnswer | undefined> {
  return withinDeadline(seconds, (deadline) => inTime(answer, deadline)).catch(() => undefined);
}

/** Entries of each store. */
const MAX_TOKENS = 10_000;
/** Of a store's valid tokens, estimated: names and roles are texts from Keystone. */
const MAX_BYTES = 16_777_216;
/** How long an unknown token is refused unasked: short, as it may reach one Keystone before another. */
const UNKNOWN_MS = 5000;

/** A token confirmed by Keystone, and when it was validated, in milliseconds of the epoch. */
interface KnownToken {
  readonly token: ValidToken;
  readonly askedAt: number;
}

/**
 * Three bounded least-recently-used stores: tokens that may send requests, valid tokens that may not, and
 * unknown tokens. So neither guesses nor users' tokens evict those of the services.
 */
class TokenCache {
  readonly #mayAsk = new LRUCache<string, KnownToken>(VALID_STORE);
  readonly #mayNotAsk = new LRUCache<string, KnownToken>(VALID_STORE);
  readonly #unknown = new LRUCache<string, number>({ max: MAX_TOKENS });

  get sizes(): { valid: number; unknown: number } {
    return { valid: this.#mayAsk.size + this.#mayNotAsk.size, unknown: this.#unknown.size };
  }

  valid(key: string): KnownToken | undefined {
    return this.#mayAsk.get(key) ?? this.#mayNotAsk.get(key);
  }

  /** Whether the token is known and may send requests. */
  isPrivileged(key: string): boolean {
    return this.#mayAsk.has(key);
  }

  isUnknown(key: string, now: number): boolean {
    const since = this.#unknown.get(key);
    // Setting the clock back ends it too.
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
