/** Our client of Keystone, with a clock that the test sets. */
import { onTestFinished } from 'vitest';
import { createHttpClient } from '../../src/http/client.ts';
import type { Keystone } from '../../src/openstack/contract.ts';
import { createKeystone } from '../../src/openstack/keystone.ts';
import { type KeystoneOptions, keystoneOptions } from '../../src/openstack/keystone-options.ts';
import { type RecordingLogger, recordingLogger } from '../support/logger.ts';
import { RECORDED_AT } from '../support/recorded-keystone.ts';

export const PASSWORD = 's3cret-password';

export interface TestedKeystone extends Keystone {
  readonly logger: RecordingLogger;
  /** Moves the clock. */
  pass(seconds: number): void;
}

/** Its clock starts when the recorded answers were given. Without retries, which take time. */
export function keystoneAt(authUrl: string, options: Partial<KeystoneOptions> = {}): TestedKeystone {
  let now = RECORDED_AT;
  const logger = recordingLogger();
  const account = { username: 'blazar', password: PASSWORD, project_name: 'service', timeout: 60 };
  const keystone = createKeystone(keystoneOptions.parse({ auth_url: authUrl, ...account, ...options }), {
    logger,
    clock: { now: () => new Date(now) },
    http: {
      createClient: (client) => createHttpClient({ ...client, connectRetries: 0, breakerFailures: 0 }),
    },
  });
  onTestFinished(() => keystone.close());
  return Object.assign(keystone, {
    logger,
    pass: (seconds: number) => {
      now += seconds * 1000;
    },
  });
}

/** The message of what a call is rejected with. It never has a secret. */
export async function failureOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => new Error('it did not fail'),
    (thrown: Error) => thrown,
  );
  const all = `${error.name} ${error.message} ${JSON.stringify(error)} ${String(error.cause)}`;
  if (all.includes(PASSWORD) || /token-\d/.test(all)) {
    throw new Error('the error has a secret in it');
  }
  return error.message;
}
