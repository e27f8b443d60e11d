/** The interface of the Keystone client. */
import type { ServiceTokens } from '../filter/services.ts';
import type { HttpAnswer, HttpCallOptions } from '../http/contract.ts';

/**
 * Keystone, with our own account. Calls are bounded in time and size. They throw `KeystoneError`,
 * `HttpCallError`, or the reason of a signal. No error contains a token or a secret.
 */
export interface Keystone extends ServiceTokens {
  /**
   * The URL of a service in the catalog, such as of the type `reservation`, without a slash at its end. Fails
   * if it depends on a region and `region_name` is not set.
   */
  endpoint(serviceType: string, call?: Pick<HttpCallOptions, 'signal'>): Promise<string>;
  /** A GET with our token; after a 401 once more, with a new one. Maximum answer: 64 MiB. */
  get(url: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** A GET from Keystone itself: `path` is the part after `/v3`, such as `/projects/ID`. Maximum answer: 2 MiB. */
  getIdentity(path: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** The content of another client's token. `undefined` = Keystone has no such token: unknown, expired or revoked. */
  validate(token: string, call?: Pick<HttpCallOptions, 'signal'>): Promise<ValidToken | undefined>;
  close(): Promise<void>;
}

/** A token that Keystone has confirmed. */
export interface ValidToken {
  /** Milliseconds of the epoch, by our clock: Keystone's time, corrected by the clock difference. */
  readonly expiresAt: number;
  readonly user: Identified;
  /** `undefined` = the token is not scoped to a project. */
  readonly project: Identified | undefined;
  /** Names of its roles in that project, without domain and system roles. */
  readonly roles: readonly string[];
  /** Names of its system-wide roles, for a system-scoped token. Default: none. */
  readonly systemRoles?: readonly string[] | undefined;
  /**
   * Whether the site has a project for cloud administrators (`admin_project_name`), and the token is for
   * another: its administrator is no cloud administrator. Default: false.
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
 * - `forbidden`: the account may not do this
 * - `unusable-answer`: the server at `auth_url` is not Keystone, or not its version 3
 * - `unavailable`: it reports that it is unavailable
 * - `no-endpoint`: the catalog has no URL, or several, for a service type
 * - `configuration`: a file named in `[keystone]` cannot be used
 */
export type KeystoneErrorCode =
  | 'credentials'
  | 'forbidden'
  | 'unusable-answer'
  | 'unavailable'
  | 'no-endpoint'
  | 'configuration';

/** Keystone's answer is not the expected one. `message` is for the log, and contains no token or secret. */
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
