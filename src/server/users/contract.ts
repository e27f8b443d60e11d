/** How the API and the console learn who asks: types only. */
import type { Context } from 'koa';
import type { Person } from './person.ts';

export interface People {
  /**
   * The person behind a request by a token: `X-Auth-Token`, or `Authorization: Bearer`. `undefined` = it carries none. Throws an HTTP error that may
   * be shown: 401 for one that is not valid, 429 after many of these from the address, 403 for one without any role here, 503 if Keystone does not answer.
   */
  byToken(ctx: Context): Promise<Person | undefined>;
  /** The person of the session of a browser; `undefined` = there is none, or it has ended. Sends cookies only to rotate. */
  bySession(ctx: Context): Promise<Person | undefined>;
  /** Who asks when the authenticators are open and nothing was shown; `undefined` = something must be shown. */
  readonly anybody: Person | undefined;
  /** What forms of a session must send back as `csrf`; empty without a session. */
  csrfOf(ctx: Context): string;
}
