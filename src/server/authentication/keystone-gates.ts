/** The gates of all configurations that are in use, and the clients of Keystone behind them. */
import { hash } from 'node:crypto';
import type { SharedServices } from '../../filter/services.ts';
import type { KeystoneOptions } from '../../openstack/options.ts';
import type { TokenValidation, ValidationObserver } from '../../openstack/token-validation.ts';
import type { UserLogin } from '../../openstack/user-login.ts';
import type { ServiceOptions } from '../configuration/options.ts';
import { type CountToken, KeystoneGate } from './keystone-gate.ts';

export interface GateObserver extends ValidationObserver {
  readonly countToken: CountToken;
}

/** A gate for one configuration. */
export interface HeldGate {
  readonly gate: KeystoneGate;
  /** For people who log in with their password. */
  readonly login: UserLogin;
  /** Call it once, when no request can come any more. The last one of a client closes it. */
  release(): Promise<void>;
}

interface Shared {
  readonly validation: TokenValidation;
  readonly login: UserLogin;
  users: number;
}

/**
 * Configurations with the same `[keystone]` share a client and what is known about tokens: Keystone may be away when the configuration is
 * reloaded.
 */
export class KeystoneGates {
  readonly #services: SharedServices;
  readonly #observer: GateObserver | undefined;
  readonly #shared = new Map<string, Shared>();

  constructor(services: SharedServices, observer: GateObserver | undefined) {
    this.#services = services;
    this.#observer = observer;
  }

  /** The tokens that are known, and those that Keystone is being asked about. */
  get sizes(): { readonly valid: number; readonly unknown: number; readonly underWay: number } {
    const sum = { valid: 0, unknown: 0, underWay: 0 };
    for (const { validation } of this.#shared.values()) {
      sum.valid += validation.sizes.valid;
      sum.unknown += validation.sizes.unknown;
      sum.underWay += validation.underWay;
    }
    return sum;
  }

  /** `undefined` = `keystone_auth` is off. Asks Keystone nothing. @throws KeystoneError if `[keystone]` cannot be used */
  async open(
    generation: number,
    service: ServiceOptions,
    keystone: KeystoneOptions,
  ): Promise<HeldGate | undefined> {
    const { keystone_auth, token_cache_time, service_roles, deadline } = service;
    if (!keystone_auth) {
      return undefined;
    }
    // Loading them takes time that only those need who use them.
    const { createKeystone } = await import('../../openstack/keystone.ts');
    const { effectiveOptions } = await import('../../openstack/effective-options.ts');
    const { TokenValidation: Validation } = await import('../../openstack/token-validation.ts');
    const { UserLogin: Login } = await import('../../openstack/user-login.ts');
    const { options } = await effectiveOptions(keystone);
    // A digest, since the options may hold a password.
    const key = hash('sha256', JSON.stringify([keystone, options]));
    const shared = this.#shared.get(key) ?? {
      validation: new Validation(createKeystone(keystone, this.#services), {
        ...this.#services,
        observer: this.#observer,
      }),
      login: new Login(keystone, this.#services),
      users: 0,
    };
    this.#shared.set(key, shared);
    shared.users += 1;
    const rules = {
      serviceRoles: service_roles,
      authUrl: options.auth_url ?? '',
      cacheSeconds: token_cache_time,
      deadline,
      generation,
    };
    const gate = new KeystoneGate(shared.validation, rules, this.#observer?.countToken ?? (() => {}));
    return { gate, login: shared.login, release: () => this.#release(key, shared) };
  }

  async #release(key: string, shared: Shared): Promise<void> {
    shared.users -= 1;
    if (shared.users === 0) {
      this.#shared.delete(key);
      await Promise.all([shared.validation.close(), shared.login.close()]);
    }
  }
}
