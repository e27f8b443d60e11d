/** Logout tokens of OpenID Connect Back-Channel Logout 1.0: what they must say, beside a signature of the issuer. */
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { IssuerLogout } from './oidc-proof.ts';

/** In seconds: how old one may be. */
export const MAX_TOKEN_AGE = 300;
/** Of those that have come: none counts twice. No issuer ends more sessions before they are too old. */
const MAX_SEEN = 10_000;
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

const text = z.string().min(1).max(1024);

const logoutClaims = z
  .object({
    jti: text,
    sid: text.optional(),
    sub: text.optional(),
    events: z.object({ [EVENT]: z.record(z.string(), z.unknown()) }),
    // An ID token has it: one must not do for the other.
    nonce: z.undefined('expected none').optional(),
  })
  .refine(({ sid, sub }) => sid !== undefined || sub !== undefined, 'expected sid or sub');

/** Issuers that are older than the standard write `JWT`, or nothing. */
const TYPES: readonly unknown[] = [undefined, 'jwt', 'logout+jwt', 'application/logout+jwt'];

export class LogoutTokens {
  readonly #seen = new LRUCache<string, true>({ max: MAX_SEEN });

  /** Whose sessions one ends, once. `payload`: signed by the issuer, for us, and not too old. Throws an `Error` that may be logged. */
  take(payload: unknown, type: string | undefined): IssuerLogout {
    if (!TYPES.includes(type?.toLowerCase())) {
      throw new Error('expected typ to be logout+jwt');
    }
    const { data, error } = logoutClaims.safeParse(payload);
    if (data === undefined) {
      const [issue] = error.issues;
      throw new Error(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
    }
    const { jti, sid, sub } = data;
    if (this.#seen.has(jti)) {
      throw new Error('expected a token that has not come before');
    }
    this.#seen.set(jti, true);
    return { sid, sub };
  }
}
