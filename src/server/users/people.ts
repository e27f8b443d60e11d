/** Who asks: by a token of the configuration, a token of Keystone, or the session of a browser. */
import type { Context } from 'koa';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { stateOf } from '../request-state.ts';
import type { People } from './contract.ts';
import type { FixedTokens } from './fixed-tokens.ts';
import { expectedRoles, keystonePerson } from './keystone-person.ts';
import { oidcSection } from './oidc-options.ts';
import { ANYBODY } from './person.ts';
import type { Sessions } from './sessions.ts';
import type { WrongTokens } from './wrong-tokens.ts';

const EXPECTED = 'expected a valid token in the header X-Auth-Token';

export interface PeopleParts {
  readonly tokens: FixedTokens;
  readonly sessions: Sessions;
  readonly wrong: WrongTokens;
  /** The current one. */
  readonly configuration: () => Configuration;
}

export function createPeople({ tokens, sessions, wrong, configuration }: PeopleParts): People {
  const isAsked = () => tokens.required || sectionOf(configuration(), oidcSection).issuer !== undefined;
  return {
    byToken: async (ctx) => {
      const token = shownToken(ctx);
      if (token === undefined) {
        return undefined;
      }
      const fixed = tokens.ownerOf(token);
      if (fixed !== undefined) {
        return fixed.person;
      }
      const { options, keystone } = stateOf(ctx).generation;
      if (keystone !== undefined && !tokens.isOfPeople(token)) {
        return keystone.gate.ownerOf(token, {
          refuse: (headers) => {
            throw wrong.error(ctx.ip, EXPECTED, headers);
          },
          expectedRoles: expectedRoles(options),
          personOf: (valid) => keystonePerson(valid, options),
        });
      }
      if (isAsked()) {
        throw wrong.error(ctx.ip, EXPECTED);
      }
      return undefined;
    },
    bySession: (ctx) => sessions.personOf(ctx),
    get anybody() {
      return isAsked() ? undefined : ANYBODY;
    },
    csrfOf: (ctx) => sessions.csrfOf(ctx),
  };
}

/** The token of a request; `undefined` = there is none. Throws an HTTP error 401 for two that differ: they are as good as a wrong one. */
export function shownToken(ctx: Context): string | undefined {
  const header = ctx.get('X-Auth-Token');
  const bearer = /^Bearer +(\S+)$/i.exec(ctx.get('Authorization'))?.[1];
  if (header !== '' && bearer !== undefined && header !== bearer) {
    ctx.throw(401, 'expected one token, got another in X-Auth-Token than in Authorization');
  }
  return header === '' ? bearer : header;
}
