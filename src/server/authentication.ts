import type { Context } from 'koa';
import type { AcceptedTokens } from './credentials.ts';

/** Lets through who sends one of the tokens as `X-Auth-Token`, everyone when there are none. */
export function requireToken(ctx: Context, tokens: AcceptedTokens): void {
  if (tokens.required && !tokens.accept(ctx.get('X-Auth-Token'))) {
    ctx.throw(401, 'expected a valid token in the header X-Auth-Token');
  }
}
