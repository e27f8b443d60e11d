/** The token of our own account: cached, renewed in time, and discarded when a service refuses it. */

import { z } from 'zod';
import { inTime, waitFor } from '../base/deadline.ts';
import { errorText } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { jsonIn } from '../base/yaml/tree.ts';
import type { Clock } from '../filter/services.ts';
import type { HttpAnswer, HttpClient } from '../http/contract.ts';
import { KeystoneError, unusableAnswer } from './contract.ts';
import { TOKENS_PATH, tokenRequest } from './effective-options.ts';
import type { KeystoneOptions } from './keystone-options.ts';

/** The services in Keystone's format. Entries are parsed on lookup: large clouds have a thousand endpoints. */
export type Catalog = readonly unknown[];

interface OwnToken {
  readonly value: string;
  /** Milliseconds of the epoch, by our clock. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly catalog: Catalog;
}

/** Enough for the longest call in progress. For short-lived tokens: a quarter of their lifetime. */
const MARGIN_MS = 120_000;
/** Pause after a failed renewal, while the old token is still valid. */
const RENEWAL_PAUSE_MS = 5_000;
/**
 * A token is replaced at its first refusal, but a service that refuses every token must not cause a token
 * request per call: if the replacement is refused too, the pause until the next one doubles, from one second
 * to this. It is reset after this time without a refusal. Keystone itself refuses tokens that it issued in
 * the same second as a password change.
 */
const MAX_REFUSAL_PAUSE_MS = 60_000;

export class OwnTokens {
  readonly #issue: () => Promise<OwnToken>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #kept: OwnToken | undefined;
  /** One request shared by all callers. */
  #underWay: Promise<OwnToken> | undefined;
  #renewalFailedAt: number | undefined;
  #replacedAt = Number.NEGATIVE_INFINITY;
  #refusalPause = 0;

  constructor(issue: () => Promise<OwnToken>, { clock, logger }: { clock: Clock; logger: Logger }) {
    this.#issue = issue;
    this.#clock = clock;
    this.#logger = logger;
  }

  /**
   * Shortly before a token expires, it is renewed and still returned. Rejects with the signal's reason if
   * that fires first.
   */
  async current(signal?: AbortSignal): Promise<OwnToken> {
    signal?.throwIfAborted();
    const now = this.#clock.now().getTime();
    const kept = this.#kept;
    if (kept === undefined || now >= kept.expiresAt) {
      return inTime(this.#renew(), waitFor(signal));
    }
    const { issuedAt, expiresAt } = kept;
    const renewal = expiresAt - Math.min(MARGIN_MS, (expiresAt - issuedAt) / 4);
    if (now >= renewal && now >= (this.#renewalFailedAt ?? now - RENEWAL_PAUSE_MS) + RENEWAL_PAUSE_MS) {
      this.#renew().catch((thrown: unknown) => this.#renewalFailed(thrown));
    }
    return kept;
  }

  /** The next `current` waits for another token, unless this one has just replaced a refused one. */
  refused(token: string): void {
    const now = this.#clock.now().getTime();
    const since = Math.abs(now - this.#replacedAt);
    if (this.#kept?.value !== token || since < this.#refusalPause) {
      return;
    }
    this.#refusalPause =
      since > MAX_REFUSAL_PAUSE_MS ? 1_000 : Math.min(MAX_REFUSAL_PAUSE_MS, this.#refusalPause * 2);
    this.#replacedAt = now;
    this.#kept = undefined;
  }

  #renew(): Promise<OwnToken> {
    this.#underWay ??= this.#issue()
      .then((token) => {
        this.#kept = token;
        this.#renewalFailedAt = undefined;
        return token;
      })
      .finally(() => {
        this.#underWay = undefined;
      });
    // All waiting callers may have given up.
    this.#underWay.catch(() => undefined);
    return this.#underWay;
  }

  #renewalFailed(thrown: unknown): void {
    if (this.#renewalFailedAt === undefined) {
      const error = errorText(thrown);
      this.#logger.warn({ error }, 'no new token from Keystone: the current one is used until it expires');
    }
    this.#renewalFailedAt = this.#clock.now().getTime();
  }
}

/** Keystone may lock an account after too many failures. The pause doubles with each failure, up to this. */
const MAX_PAUSE_MS = 60_000;

export class TokenIssuer {
  readonly #clock: Clock;
  /** The last refusal. Other credentials are tried at once. */
  #refusal: { readonly request: string; readonly error: Error; readonly at: number } | undefined;
  #pause = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `url` is the root of version 3. @throws KeystoneError @throws HttpCallError */
  async issue(client: HttpClient, url: string, options: KeystoneOptions): Promise<OwnToken> {
    const request = tokenRequest(options);
    const askedAt = this.#clock.now().getTime();
    const last = this.#refusal;
    if (last?.request === request && Math.abs(askedAt - last.at) < this.#pause) {
      throw last.error;
    }
    const called = `POST ${url}${TOKENS_PATH}`;
    const call = { answerHeaders: ['x-subject-token'] };
    const answer = await client.postJson(`${url}${TOKENS_PATH}`, request, call);
    // 404: an application credential that was deleted.
    if (answer.status === 401 || (answer.status === 404 && isKeystoneError(answer))) {
      const what =
        options.application_credential_id === undefined
          ? 'user, password, project or domain is wrong'
          : 'the application credential is wrong, has expired or was deleted';
      const message = `${called}: Keystone refuses the account of [keystone]: ${what} (${answer.status})`;
      const error = new KeystoneError('credentials', message);
      this.#pause = last?.request === request ? Math.min(MAX_PAUSE_MS, this.#pause * 2) : 1_000;
      this.#refusal = { request, error, at: askedAt };
      throw error;
    }
    if (answer.status !== 201 && answer.status !== 200) {
      throw unusable(answer, called);
    }
    const content = tokenContent(answer, called);
    const value = tokenIn(answer, called);
    // By Keystone's clock, because ours may differ.
    const lifetime = content.expires_at - content.issued_at;
    if (lifetime <= 0) {
      throw unusableAnswer(`${called}: the token has expired before it came`);
    }
    this.#refusal = undefined;
    return { value, issuedAt: askedAt, expiresAt: askedAt + lifetime, catalog: content.catalog ?? [] };
  }
}

/** An answer with an unexpected status, in words that name the option to correct. */
export function unusable({ status }: HttpAnswer, called: string): KeystoneError {
  if (status >= 300 && status < 400) {
    const why = `the answer is a redirect (${status}), which is not followed: set [keystone] auth_url to the address behind it`;
    return unusableAnswer(`${called}: ${why}`);
  }
  if (status === 403) {
    const why = 'the account of [keystone] may not do this (403): it needs a role such as service or admin';
    return new KeystoneError('forbidden', `${called}: ${why}`);
  }
  if (status === 401) {
    return new KeystoneError('credentials', `${called}: Keystone refuses our token (401)`);
  }
  if (status === 429 || status >= 500) {
    return new KeystoneError('unavailable', `${called}: Keystone does not answer now (${status})`);
  }
  const why = `expected an answer of Keystone's version 3, got ${status}: check [keystone] auth_url`;
  return unusableAnswer(`${called}: ${why}`);
}

const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** Four times as long as Keystone's own limit. */
const name = z.string().max(1020);

/** Users of other identity providers may have a domain without a name. */
const identified = z.object({
  id: z.string().min(1).max(255),
  name,
  domain: z.object({ name: name.nullish() }).nullish(),
});

const tokenAnswer = z.object({
  token: z.object({
    expires_at: instant,
    issued_at: instant,
    user: identified,
    project: identified.nullish(),
    system: z.object({ all: z.boolean().nullish() }).nullish(),
    is_admin_project: z.boolean().nullish(),
    roles: z.array(z.object({ name })).max(1000).nullish(),
    // Not validated here: it may be long, and few entries are used.
    catalog: z.custom<readonly unknown[]>(Array.isArray).nullish(),
  }),
});

/** Times are in milliseconds of the epoch, by Keystone's clock. */
export type TokenContent = z.infer<typeof tokenAnswer>['token'];

/** @throws KeystoneError for anything else, such as a page of a proxy */
export function tokenContent(answer: HttpAnswer, address: string): TokenContent {
  const parsed = tokenAnswer.safeParse(jsonIn(answer.body));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue === undefined || issue.path.length === 0 ? '' : ` at ${issue.path.join('.')}`;
    const what = `the answer (${answer.status}) is no token of Keystone${where}`;
    throw unusableAnswer(`${address}: ${what}; check [keystone] auth_url`);
  }
  return parsed.data.token;
}

/** @throws KeystoneError if there is none */
export function tokenIn({ headers }: HttpAnswer, called: string): string {
  const token = headers?.['x-subject-token'] ?? '';
  if (!isToken(token)) {
    throw unusableAnswer(`${called}: the answer has no X-Subject-Token`);
  }
  return token;
}

/** Tokens are ASCII without spaces, and never longer. Nothing else is sent as a header. */
export function isToken(text: string): boolean {
  return text.length <= 8192 && /^[\x21-\x7e]+$/.test(text);
}

/** Whether an error is from Keystone, not from a proxy or another service. */
export function isKeystoneError({ status, body }: HttpAnswer): boolean {
  return z.object({ error: z.object({ code: z.literal(status) }) }).safeParse(jsonIn(body)).success;
}
