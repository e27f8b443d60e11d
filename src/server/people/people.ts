/** Who asks: by the tokens of the service. */
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

export function createPeople(tokens: AcceptedTokens): People {
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
    bySession: async () => undefined,
    get anybody() {
      return tokens.required ? undefined : NOBODY;
    },
    csrfOf: () => '',
  };
}
