/** The answers to wrong tokens. A right one never comes here, so it passes whoever guesses from its address. */
import createError, { type HttpError } from 'http-errors';
import { TokenLimit } from './login-limit.ts';

/** The message of a 429. */
export const TOO_MANY =
  'there were ten wrong tokens from this address within a minute; please try again later';

export class WrongTokens {
  readonly #limit = new TokenLimit();

  /** Counts one. Seconds to wait, if there were too many from the address of the client; otherwise 0. */
  count(address: string | undefined): number {
    return this.#limit.count(address ?? '');
  }

  /** Counts one. Returns the error to throw: 401 with the message, or 429 if there were too many. */
  error(
    address: string | undefined,
    expected: string,
    headers: Readonly<Record<string, string>> = {},
  ): HttpError {
    const seconds = this.count(address);
    return seconds > 0
      ? createError(429, TOO_MANY, { headers: { 'Retry-After': String(seconds) } })
      : createError(401, expected, { headers });
  }
}
