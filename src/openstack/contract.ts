/** Keystone, for those who use it. */
import type { ServiceTokens } from '../filter/services.ts';
import type { HttpAnswer, HttpCallOptions } from '../http/contract.ts';

/**
 * Keystone, with our own account. Calls are bounded in time and size. They throw `KeystoneError`, `HttpCallError`, or the reason of a
 * signal. No error contains a token or a secret.
 */
export interface Keystone extends ServiceTokens {
  /**
   * The address of a service in the catalog, without a slash at its end, such as that of the type `reservation`. Fails if it depends on a
   * region and `region_name` is not set.
   */
  endpoint(serviceType: string, call?: Pick<HttpCallOptions, 'signal'>): Promise<string>;
  /** A GET with our token; after a 401 once more, with a new one. An answer may have 64 MiB. */
  get(url: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** The same, at Keystone itself: `path` is what follows `/v3`, such as `/projects/ID`. An answer may have 2 MiB. */
  getIdentity(path: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** What somebody else's token says. `undefined` = Keystone knows no such token: unknown, expired or revoked. */
  validate(token: string, call?: Pick<HttpCallOptions, 'signal'>): Promise<ValidToken | undefined>;
  close(): Promise<void>;
}

/** A token that Keystone has confirmed. */
export interface ValidToken {
  /** Milliseconds of the epoch, by our clock: it is Keystone's time, corrected by the difference of the clocks. */
  readonly expiresAt: number;
  readonly user: Identified;
  /** `undefined` = the token is not scoped to a project. */
  readonly project: Identified | undefined;
  /** The names of its roles in that project. Roles in a domain or in the system are left out. */
  readonly roles: readonly string[];
  /** The names of its roles in the whole system, for a token that is scoped to it. Default: none. */
  readonly systemRoles?: readonly string[] | undefined;
  /**
   * Whether the site has named a project for the administrators of the cloud (`admin_project_name`), and the token is for another one: its
   * administrator is none of the cloud. Default: false.
   */
  readonly isAdminElsewhere?: boolean | undefined;
}

interface Identified {
  readonly id: string;
  readonly name: string;
  /** The name of its domain. */
  readonly domain: string;
}

/**
 * Why Keystone cannot be used:
 * - `credentials`: it refuses the account of `[keystone]`
 * - `forbidden`: it knows the account, which may not do this
 * - `unusable-answer`: what answers at `auth_url` is no Keystone, or not its version 3
 * - `unavailable`: it answers that it cannot answer now
 * - `no-endpoint`: the catalog has no address, or no single one, for a type of service
 * - `configuration`: a file that `[keystone]` names cannot be used
 */
export type KeystoneErrorCode =
  | 'credentials'
  | 'forbidden'
  | 'unusable-answer'
  | 'unavailable'
  | 'no-endpoint'
  | 'configuration';

/** Keystone has answered, but not with what was asked for. `message` is for the log, and contains no token and no secret. */
export class KeystoneError extends Error {
  override readonly name = 'KeystoneError';
  readonly code: KeystoneErrorCode;

  constructor(code: KeystoneErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

export function unusableAnswer(message: string): KeystoneError {
  return new KeystoneError('unusable-answer', message);
}
