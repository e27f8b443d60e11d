/** Who sees single budgets in the metrics. */
import type { Context } from 'koa';
import type { FixedTokens } from './fixed-tokens.ts';
import { shownToken } from './people.ts';
import type { WrongTokens } from './wrong-tokens.ts';

/** The message of a 401. */
export const EXPECTED_TOKEN =
  'expected one of [service] metrics_tokens, or a token of a reader or operator; or none';

/**
 * Tells of a request whether it shows a token for them; without any token it may see everything else. Throws an HTTP error that may be
 * shown: 401 for another token, 429 after too many of these from one address. Keystone is not asked.
 */
export function budgetReaders(tokens: FixedTokens, wrong: WrongTokens): (ctx: Context) => boolean {
  return (ctx) => {
    const token = shownToken(ctx);
    if (token === undefined) {
      return false;
    }
    if (!tokens.seesBudgets(token)) {
      throw wrong.error(ctx.ip, EXPECTED_TOKEN);
    }
    return true;
  };
}
