/** The answers to wrong tokens. A right one never comes here, so it passes whoever guesses from its address. */
import type { Context } from 'koa';
import { TokenLimit } from './login-limit.ts';

/** The message of a 429. */
export const TOO_MANY =
  'there were ten wrong tokens from this address within a minute; please try again later';

export class WrongTokens {
  readonly #limit = new TokenLimit();

  /** Counts one. Seconds to wait, if there were too many from the address of the client; otherwise 0. */
  count({ ip }: Context): number {
    return this.#limit.count(ip);
  }

  /** Counts one, and throws an HTTP error: 401 with the message, or 429 if there were too many. */
  refuse(ctx: Context, expected: string, headers: Readonly<Record<string, string>> = {}): never {
    const seconds = this.count(ctx);
    return seconds > 0
      ? ctx.throw(429, TOO_MANY, { headers: { 'Retry-After': String(seconds) } })
      : ctx.throw(401, expected, { headers });
  }
}
