/** Keystone, asked with our own account. */
import { readFileSync } from 'node:fs';
import type { SharedServices } from '../filter/services.ts';
import type { HttpAnswer, HttpCallOptions, HttpClient } from '../http/contract.ts';
import { tokenRequest } from './account.ts';
import { endpointOf } from './catalog.ts';
import type { Keystone, ValidToken } from './contract.ts';
import { identityUrl, TOKENS_PATH } from './identity-url.ts';
import { KeystoneError } from './keystone-error.ts';
import type { KeystoneOptions } from './options.ts';
import { type OwnToken, OwnTokens } from './own-token.ts';
import { isKeystoneError, isToken, type TokenContent, tokenContent } from './token-answer.ts';

/** Catalogs of large clouds are close to 1 MiB. */
const MAX_IDENTITY_BYTES = 2 * 1024 * 1024;
/** Blazar's list of 10,000 leases is some 20 MiB, and comes in one piece from most versions. */
const MAX_SERVICE_BYTES = 64 * 1024 * 1024;
/** After wrong credentials: Keystone may lock an account that fails too often. Doubles with each failure, up to a minute. */
const MAX_CREDENTIALS_PAUSE_MS = 60_000;

type Signal = Pick<HttpCallOptions, 'signal'>;

/**
 * Asks nothing before it is used. The options must be without mistakes. @throws Error if `auth_url` or `cafile` cannot be used
 */
export function createKeystone(options: KeystoneOptions, services: SharedServices): Keystone {
  return new RealKeystone(options, services);
}

class RealKeystone implements Keystone {
  readonly #options: KeystoneOptions;
  readonly #clock: SharedServices['clock'];
  readonly #url: string;
  readonly #identity: HttpClient;
  readonly #services: HttpClient;
  readonly #tokens: OwnTokens;
  #wrong: { readonly request: string; readonly error: Error; readonly until: number } | undefined;
  #pause = 0;

  constructor(options: KeystoneOptions, { http, clock, logger }: SharedServices) {
    const { auth_url: authUrl = '', cafile, timeout } = options;
    this.#options = options;
    this.#clock = clock;
    this.#url = identityUrl(authUrl);
    const tls = cafile === undefined ? undefined : { ca: readFileSync(cafile) };
    const common = { timeout, connectRetries: 1, breakerFailures: 5, breakerCooldown: 2, tls };
    this.#identity = http.createClient({ ...common, maxAnswerBytes: MAX_IDENTITY_BYTES });
    this.#services = http.createClient({ ...common, maxAnswerBytes: MAX_SERVICE_BYTES });
    this.#tokens = new OwnTokens(() => this.#issue(), { clock, logger });
  }

  async token({ signal }: Signal = {}): Promise<string> {
    return (await this.#tokens.current(signal)).value;
  }

  refused(token: string): void {
    this.#tokens.refused(token);
  }

  async endpoint(serviceType: string, { signal }: Signal = {}): Promise<string> {
    const { catalog } = await this.#tokens.current(signal);
    const { region_name: region, interface: which } = this.#options;
    return endpointOf(catalog, serviceType, { region, interface: which });
  }

  get(url: string, call?: HttpCallOptions): Promise<HttpAnswer> {
    return this.#get(this.#services, url, call);
  }

  getIdentity(path: string, call?: HttpCallOptions): Promise<HttpAnswer> {
    return this.#get(this.#identity, `${this.#url}${path}`, call);
  }

  async validate(token: string, { signal }: Signal = {}): Promise<ValidToken | undefined> {
    if (!isToken(token)) {
      return undefined;
    }
    const address = `${this.#url}${TOKENS_PATH}`;
    const answer = await this.getIdentity(`${TOKENS_PATH}?nocatalog`, {
      signal,
      headers: { 'x-subject-token': token },
      answerHeaders: ['x-subject-token', 'date'],
    });
    if (answer.status === 404 && isKeystoneError(answer)) {
      return undefined;
    }
    if (answer.status !== 200) {
      throw unusable(answer, `GET ${address}`);
    }
    const content = tokenContent(answer, `GET ${address}`);
    if ((answer.headers?.['x-subject-token'] ?? token) !== token) {
      // A proxy that caches without regard to headers.
      throw new KeystoneError('unusable-answer', `GET ${address}: the answer is about another token`);
    }
    const now = this.#clock.now().getTime();
    const keystoneClock = Date.parse(answer.headers?.date ?? '');
    const ahead = Number.isNaN(keystoneClock) ? 0 : keystoneClock - now;
    const expiresAt = content.expires_at - ahead;
    return expiresAt <= now ? undefined : { ...identity(content), expiresAt };
  }

  async close(): Promise<void> {
    await Promise.all([this.#identity.close(), this.#services.close()]);
  }

  async #get(client: HttpClient, url: string, call: HttpCallOptions = {}): Promise<HttpAnswer> {
    const attempt = async (token: string) =>
      client.get(url, { ...call, headers: { ...call.headers, 'x-auth-token': token } });
    const first = await this.token(call);
    const answer = await attempt(first);
    if (answer.status !== 401) {
      return answer;
    }
    this.refused(first);
    const second = await this.token(call);
    return second === first ? answer : attempt(second);
  }

  async #issue(): Promise<OwnToken> {
    const request = tokenRequest(this.#options);
    const askedAt = this.#clock.now().getTime();
    if (this.#wrong?.request === request && askedAt < this.#wrong.until) {
      throw this.#wrong.error;
    }
    const address = `${this.#url}${TOKENS_PATH}`;
    const answer = await this.#identity.postJson(address, request, { answerHeaders: ['x-subject-token'] });
    if (answer.status === 401) {
      const error = new KeystoneError(
        'credentials',
        `POST ${address}: Keystone refuses the credentials of [keystone] (401)`,
      );
      this.#pause = Math.min(MAX_CREDENTIALS_PAUSE_MS, Math.max(1_000, this.#pause * 2));
      this.#wrong = { request, error, until: askedAt + this.#pause };
      throw error;
    }
    if (answer.status !== 201 && answer.status !== 200) {
      throw unusable(answer, `POST ${address}`);
    }
    const content = tokenContent(answer, `POST ${address}`);
    const value = answer.headers?.['x-subject-token'] ?? '';
    if (!isToken(value)) {
      throw new KeystoneError('unusable-answer', `POST ${address}: the answer has no X-Subject-Token`);
    }
    // By Keystone's own clock: ours may differ.
    const lifetime = content.expires_at - content.issued_at;
    if (lifetime <= 0) {
      throw new KeystoneError('unusable-answer', `POST ${address}: the token has expired before it came`);
    }
    this.#wrong = undefined;
    this.#pause = 0;
    return { value, issuedAt: askedAt, expiresAt: askedAt + lifetime, catalog: content.catalog ?? [] };
  }
}

function identity({ user, project, roles }: TokenContent): Omit<ValidToken, 'expiresAt'> {
  const named = ({ id, name, domain }: TokenContent['user']) => ({ id, name, domain: domain?.name ?? '' });
  return {
    user: named(user),
    project: project ? named(project) : undefined,
    // Those of a domain or of the system say nothing about a project.
    roles: project ? (roles ?? []).map(({ name }) => name) : [],
  };
}

/** In words that name the option to correct. */
function unusable({ status }: HttpAnswer, called: string): KeystoneError {
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
