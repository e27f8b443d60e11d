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
