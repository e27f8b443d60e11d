/** Measures the cost of a Keystone token for a request, relative to a fixed one. */
import { amount } from './harness/amount.ts';
import { processorOf, type Subject, type Suite } from './harness/suite.ts';
import { LEASES } from './load.ts';
import { server } from './service.ts';
import { FIXED_TOKEN, KEYSTONE_TOKEN } from './tokens.ts';

const BATCH = amount(4000, 64);
const FIXED = 'fixed token';
const CACHED = 'cached token of Keystone';

function withToken(token: string): Promise<Subject> {
  return server('service, tokens', BATCH, { ...LEASES, headers: { 'x-auth-token': token } });
}

export const suite: Suite = {
  name: 'tokens',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 700,
  subjects: {
    [FIXED]: () => withToken(FIXED_TOKEN),
    [CACHED]: () => withToken(KEYSTONE_TOKEN),
  },
  comparisons: [
    { name: 'check', measured: CACHED, comparedWith: FIXED, of: 'time', target: { atMost: 1.1 } },
    {
      name: 'check, by its processor',
      measured: processorOf(CACHED),
      comparedWith: processorOf(FIXED),
      of: 'time',
    },
  ],
  notes: [
    'The requests of `service`, without a decision log, at a service with one fixed token and `keystone_auth`. The token of Keystone has been validated before the first round. Both tokens have the 183 characters of a Fernet token. Every server has a process of its own.',
  ],
};
