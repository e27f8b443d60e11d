/** The Keystone gates of all configurations in use, and their clients of Keystone. */
import { hash } from 'node:crypto';
import createError from 'http-errors';
import type { SharedServices } from '../../filter/services.ts';
import type { ValidToken } from '../../openstack/contract.ts';
import type { KeystoneOptions } from '../../openstack/keystone-options.ts';
import type {
  TokenAnswer,
  TokenValidation,
  ValidationObserver,
  ValidationSettings,
} from '../../openstack/token-validation.ts';
import type { UserLogin } from '../../openstack/user-login.ts';
import type { ServiceOptions } from '../configuration/options.ts';
import { CountedUses } from '../counted-uses.ts';

export interface AuthenticationObserver extends ValidationObserver {
  readonly countToken: CountToken;
}

export interface HeldAuthenticator {
  readonly authenticator: KeystoneAuthenticator;
  readonly login: UserLogin;
  /** Call it once, after the last request. The last release of a client closes it. */
  release(): Promise<void>;
}

interface Shared {
  readonly validation: TokenValidation;
  readonly login: UserLogin;
}

/**
 * Configurations with the same `[keystone]` share a client and its cache of tokens: Keystone may be
 * unavailable when the configuration is reloaded.
 */
export class KeystoneAuthenticators {
  readonly #services: SharedServices;
  readonly #observer: AuthenticationObserver | undefined;
  readonly #shared = new CountedUses<Shared>(async ({ validation, login }) => {
    await Promise.all([validation.close(), login.close()]);
  });

  constructor(services: SharedServices, observer: AuthenticationObserver | undefined) {
    this.#services = services;
    this.#observer = observer;
  }

  get sizes() {
    const sum = { valid: 0, unknown: 0, underWay: 0 };
    for (const { validation } of this.#shared.values) {
      sum.valid += validation.sizes.valid;
      sum.unknown += validation.sizes.unknown;
      sum.underWay += validation.underWay;
    }
    return sum;
  }

  /** `undefined` = `keystone_auth` is off. Sends no request. @throws KeystoneError if it cannot be used */
  async open(
    generation: number,
    service: ServiceOptions,
    keystone: KeystoneOptions,
  ): Promise<HeldAuthenticator | undefined> {
    const { keystone_auth, token_cache_time, service_roles, deadline } = service;
    if (!keystone_auth) {
      return undefined;
    }
    // Imported on demand: loading takes time.
    const { createKeystone } = await import('../../openstack/keystone.ts');
    const { clientOptions, effectiveOptions } = await import('../../openstack/effective-options.ts');
    const { TokenValidation: Validation } = await import('../../openstack/token-validation.ts');
    const { UserLogin: Login } = await import('../../openstack/user-login.ts');
    const { options } = await effectiveOptions(keystone);
    // A digest, since the options may hold a password. With the content of `cafile`, which may have changed alone.
    const key = hash('sha256', JSON.stringify([keystone, options, clientOptions(options).tls]));
    const { value, release } = this.#shared.use(key, () => ({
      validation: new Validation(createKeystone(keystone, this.#services), {
        ...this.#services,
        observer: this.#observer,
      }),
      login: new Login(keystone, this.#services),
    }));
    const rules = {
      serviceRoles: service_roles,
      authUrl: options.auth_url ?? '',
      cacheSeconds: token_cache_time,
      deadline,
      generation,
    };
    const count = this.#observer?.countToken ?? (() => {});
    const authenticator = new KeystoneAuthenticator(value.validation, rules, count);
    return { authenticator, login: value.login, release };
  }
}

type TokenOutcome = 'allowed' | 'forbidden' | 'invalid' | 'unavailable';

interface GateOptions {
  readonly serviceRoles: readonly string[];
  /** Where clients get a token, for the challenge of a 401. */
  readonly authUrl: string;
  readonly cacheSeconds: number;
  readonly deadline: number;
  readonly generation: number;
}

interface OwnerQuestion<Caller> {
  /** Of the client. */
  readonly address: string;
  /** Rejects a token that Keystone does not know. */
  readonly refuse: Refuse;
  /** The message of a 403. */
  readonly expectedRoles: string;
  /** `undefined` = the user has no role here. */
  readonly callerOf: (token: ValidToken) => Caller | undefined;
}

/** Rejects a token that Keystone does not know, by an HTTP error with these headers. */
export type Refuse = (headers: Readonly<Record<string, string>>) => never;

/** For metrics. It must not throw. */
type CountToken = (outcome: TokenOutcome, from: TokenAnswer['from']) => void;

/** In seconds. An outage of Keystone lasts longer than a full queue. */
const RETRY_AFTER = '5';

/** The rules of one configuration. The cache of tokens is in `validation`, which outlives it. */
export class KeystoneAuthenticator {
  readonly #validation: Pick<TokenValidation, 'ask'>;
  readonly #settings: ValidationSettings;
  readonly #count: CountToken;
  readonly #generation: string;
  readonly #expected: string;
  readonly #challenge: string;
  /** What clients must show, in words. */
  readonly asks: string;

  constructor(
    validation: Pick<TokenValidation, 'ask'>,
    { serviceRoles, authUrl, cacheSeconds, deadline, generation }: GateOptions,
    count: CountToken,
  ) {
    const mayAsk = ({ project, roles }: ValidToken) =>
      project !== undefined && roles.some((role) => serviceRoles.includes(role));
    const named = `${serviceRoles.length === 1 ? 'the role' : 'one of the roles'} ${serviceRoles.join(', ')}`;
    this.#validation = validation;
    this.#settings = { cacheSeconds, deadline, mayAsk };
    this.#count = count;
    this.#generation = String(generation);
    this.#expected = `expected a token of a user with ${named} in the project of the token`;
    const { origin, pathname } = new URL(authUrl);
    this.#challenge = `Keystone uri="${origin}${pathname}"`;
    this.asks = `a token of Keystone with ${named}`;
  }

  /**
   * Throws an HTTP error unless the token is accepted: by `refuse` if Keystone does not know it, 403 without
   * the role, 503 if it cannot be validated. Returns a promise, which may reject with such an error, only if
   * Keystone must be called. `address`: of the client.
   */
  requireProof(token: string, refuse: Refuse, address: string | undefined): Promise<void> | undefined {
    const answer = this.#validation.ask(token, this.#settings, address);
    if (answer instanceof Promise) {
      return answer.then((later) => this.#judge(later, refuse));
    }
    this.#judge(answer, refuse);
    return undefined;
  }

  /**
   * The caller of a token. Throws an HTTP error: by `refuse` if Keystone does not know the token, 403 for a
   * user without any role here, 503 if it cannot be validated.
   */
  async ownerOf<Caller>(
    token: string,
    { address, refuse, expectedRoles, callerOf }: OwnerQuestion<Caller>,
  ): Promise<Caller> {
    const answer = await this.#validation.ask(token, this.#settings, address);
    if (answer.kind !== 'valid') {
      return this.#refuse(answer, refuse);
    }
    const caller = callerOf(answer.token);
    this.#count(caller === undefined ? 'forbidden' : 'allowed', answer.from);
    if (caller === undefined) {
      throw createError(403, expectedRoles);
    }
    return caller;
  }

  /**
   * The token of a session, or, with the `address` of the client, of a login; `undefined` = not valid. Throws
   * an HTTP error 503 if that is unknown.
   */
  async validated(token: string, address?: string): Promise<ValidToken | undefined> {
    const answer = await this.#validation.ask(token, this.#settings, address);
    if (answer.kind === 'unavailable') {
      return this.#unavailable(answer);
    }
    this.#count(answer.kind === 'valid' ? 'allowed' : 'invalid', answer.from);
    return answer.kind === 'valid' ? answer.token : undefined;
  }

  #judge(answer: TokenAnswer, refuse: Refuse): void {
    if (answer.kind !== 'valid') {
      this.#refuse(answer, refuse);
    }
    if (!this.#settings.mayAsk(answer.token)) {
      this.#count('forbidden', answer.from);
      throw createError(403, this.#expected, { headers: { 'X-Enforcement-Generation': this.#generation } });
    }
    this.#count('allowed', answer.from);
  }

  #refuse(answer: Exclude<TokenAnswer, { kind: 'valid' }>, refuse: Refuse): never {
    if (answer.kind === 'unavailable') {
      return this.#unavailable(answer);
    }
    this.#count(answer.kind, answer.from);
    return refuse({ 'WWW-Authenticate': this.#challenge });
  }

  #unavailable(answer: Extract<TokenAnswer, { kind: 'unavailable' }>): never {
    this.#count(answer.kind, answer.from);
    throw createError(503, answer.reason, { expose: true, headers: { 'Retry-After': RETRY_AFTER } });
  }
}
