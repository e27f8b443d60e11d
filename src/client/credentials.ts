/** The tokens of the client: a given one, or Keystone's. */
import { errorText } from '../base/errors.ts';
import type { KeystoneErrorCode } from '../openstack/contract.ts';
import { EndpointError } from './bounded-fetch.ts';

export interface Credentials {
  /** @throws EndpointError if Keystone issues none; the reason of `signal` */
  token(signal?: AbortSignal): Promise<string>;
  /** The service refuses this token. Returns whether to request another one. */
  refused(token: string): boolean;
  close(): Promise<void>;
}

export function givenToken(token: string): Credentials {
  return { token: async () => token, refused: () => false, close: async () => {} };
}

/** Keystone errors caused by the configuration. All others are faults of Keystone or the connection. */
const MISTAKES: readonly KeystoneErrorCode[] = ['credentials', 'forbidden', 'configuration'];

/**
 * Tokens of this cloud of `clouds.yaml`; `envvars` = of the variables `OS_*`. Cached until shortly before
 * they expire.
 */
export async function keystoneTokens(cloud: string): Promise<Credentials> {
  const { keystoneOptions } = await import('../openstack/keystone-options.ts');
  const { createKeystone } = await import('../openstack/keystone.ts');
  const { KeystoneError } = await import('../openstack/contract.ts');
  const { createSharedServices } = await import('../enforcement/services.ts');
  const quiet = () => {};
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const keystone = createKeystone(keystoneOptions.parse({ cloud }), createSharedServices({ logger }));
  return {
    token: async (signal) => {
      try {
        return await keystone.token({ signal });
      } catch (thrown) {
        signal?.throwIfAborted();
        const isMistake = thrown instanceof KeystoneError && MISTAKES.includes(thrown.code);
        const message = `no token of Keystone: ${errorText(thrown)}`;
        throw new EndpointError(isMistake ? 'refused' : 'failed', message);
      }
    },
    refused: (token) => {
      keystone.refused(token);
      return true;
    },
    close: () => keystone.close(),
  };
}
