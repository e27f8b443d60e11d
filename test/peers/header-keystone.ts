/** In place of Keystone, for a Blazar that takes who asks from `X-Auth-Token`. */
import { createHttpClient } from '../../src/http/client.ts';
import type { Keystone } from '../../src/openstack/contract.ts';

export function headerKeystone(endpoint: string, token = 'admin'): Keystone {
  const client = createHttpClient({
    timeout: 60,
    connectRetries: 0,
    breakerFailures: 0,
    breakerCooldown: 0,
    maxAnswerBytes: 64 * 1024 * 1024,
  });
  const named = (name: string) => ({ id: name, name, domain: 'Default' });
  return {
    token: async () => token,
    refused: () => {},
    endpoint: async () => endpoint,
    get: (url, call) => client.get(url, { ...call, headers: { ...call?.headers, 'x-auth-token': token } }),
    getIdentity: () => Promise.reject(new Error('there is no Keystone')),
    validate: async () => ({
      expiresAt: Date.now() + 60_000,
      user: named('service'),
      project: named(token.split('/')[0] ?? ''),
      roles: token === 'admin' ? ['admin'] : ['member'],
    }),
    close: () => client.close(),
  };
}
