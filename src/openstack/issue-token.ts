/** Asks Keystone for a token of our own account: `POST /v3/auth/tokens`. */
import type { Clock } from '../filter/services.ts';
import type { HttpAnswer, HttpClient } from '../http/contract.ts';
import { tokenRequest } from './account.ts';
import { TOKENS_PATH } from './identity-url.ts';
import { KeystoneError } from './keystone-error.ts';
import type { KeystoneOptions } from './keystone-options.ts';
import type { OwnToken } from './own-token.ts';
import { isKeystoneError, isToken, tokenContent } from './token-answer.ts';

/** Keystone may lock an account that fails too often. The pause doubles with each failure, up to this. */
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
    const answer = await client.postJson(`${url}${TOKENS_PATH}`, request, {
      answerHeaders: ['x-subject-token'],
    });
    // 404: an application credential that was deleted.
    if (answer.status === 401 || (answer.status === 404 && isKeystoneError(answer))) {
      const what =
        options.application_credential_id === undefined
          ? 'user, password, project or domain is wrong'
          : 'the application credential is wrong, has expired or was deleted';
      const error = new KeystoneError(
        'credentials',
        `${called}: Keystone refuses the account of [keystone]: ${what} (${answer.status})`,
      );
      this.#pause = last?.request === request ? Math.min(MAX_PAUSE_MS, this.#pause * 2) : 1_000;
      this.#refusal = { request, error, at: askedAt };
      throw error;
    }
    if (answer.status !== 201 && answer.status !== 200) {
      throw unusable(answer, called);
    }
    const content = tokenContent(answer, called);
    const value = answer.headers?.['x-subject-token'] ?? '';
    if (!isToken(value)) {
      throw new KeystoneError('unusable-answer', `${called}: the answer has no X-Subject-Token`);
    }
    // By Keystone's own clock, because ours may differ.
    const lifetime = content.expires_at - content.issued_at;
    if (lifetime <= 0) {
      throw new KeystoneError('unusable-answer', `${called}: the token has expired before it came`);
    }
    this.#refusal = undefined;
    return { value, issuedAt: askedAt, expiresAt: askedAt + lifetime, catalog: content.catalog ?? [] };
  }
}

/** An answer with another status than expected, in words that name the option to correct. */
export function unusable({ status }: HttpAnswer, called: string): KeystoneError {
  if (status >= 300 && status < 400) {
    const why = `the answer is a redirect (${status}), which is not followed: set [keystone] auth_url to the address behind it`;
    return new KeystoneError('unusable-answer', `${called}: ${why}`);
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
  return new KeystoneError('unusable-answer', `${called}: ${why}`);
}
