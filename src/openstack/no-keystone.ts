import type { ServiceTokens } from '../filter/services.ts';

/** Where `[keystone]` is not set: whoever needs a token fails. */
export const NO_KEYSTONE: ServiceTokens = {
  token: async () => {
    throw new Error('[keystone] auth_url and cloud are not set: there is no token to send');
  },
  refused: () => {},
};
