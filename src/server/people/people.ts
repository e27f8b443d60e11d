/** Who asks: by the tokens of the service, or by a session that one of them has opened. */
import type { Sessions } from '../console/sessions.ts';
import type { AcceptedTokens } from '../credentials.ts';
import type { People } from './contract.ts';
import type { Person } from './person.ts';

const READER: Person = {
  kind: 'reader',
  provenBy: 'token',
  who: 'service token',
  name: 'service token',
  userId: null,
  memberships: [],
};
const NOBODY: Person = { ...READER, provenBy: 'nobody', who: 'anybody', name: 'anybody' };

export function createPeople(tokens: AcceptedTokens, sessions: Sessions): People {
  return {
    byToken: async (ctx) => {
      const token = ctx.get('X-Auth-Token');
      if (token === '' || !tokens.required) {
        return undefined;
      }
      return tokens.accept(token)
        ? READER
        : ctx.throw(401, 'expected a valid token in the header X-Auth-Token');
    },
    bySession: async (ctx) => (sessions.has(ctx) ? READER : undefined),
    get anybody() {
      return tokens.required ? undefined : NOBODY;
    },
    csrfOf: () => '',
  };
}
