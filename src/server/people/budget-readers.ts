/** Who sees single budgets in the metrics. */
import type { Context } from 'koa';
import type { FixedTokens } from './fixed-tokens.ts';
import { LoginLimit } from './login-limit.ts';
import { shownToken } from './people.ts';

/** The message of a 401. */
export const EXPECTED_TOKEN =
  'expected one of [service] metrics_tokens, or a token of a reader or operator; or none';
/** The message of a 429. */
export const TOO_MANY =
  'there were ten wrong tokens from this address within a minute; please try again later';

/**
 * Tells of a request whether it shows a token for them; without any token it may see everything else. Throws an HTTP error that may be
 * shown: 401 for another token, 429 after too many of these from one address. Keystone is not asked.
 */
export function budgetReaders(tokens: FixedTokens): (ctx: Context) => boolean {
  const wrong = new LoginLimit();
  return (ctx) => {
    const token = shownToken(ctx);
    if (token === undefined) {
      return false;
    }
    // Before the limit: behind a proxy, strangers who guess have the address of Prometheus.
    if (tokens.seesBudgets(token)) {
      return true;
    }
    const seconds = wrong.wait(ctx.ip);
    if (seconds > 0) {
      const headers = { 'Retry-After': String(seconds) };
      ctx.throw(429, TOO_MANY, { headers });
    }
    wrong.count(ctx.ip);
    return ctx.throw(401, EXPECTED_TOKEN);
  };
}
