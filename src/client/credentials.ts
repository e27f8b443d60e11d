/** With which token the client asks: a given one, or those of Keystone. */
import { errorText } from '../base/errors.ts';
import type { KeystoneErrorCode } from '../openstack/contract.ts';
import { EndpointError } from './bounded-fetch.ts';

export interface Credentials {
  /** @throws EndpointError if Keystone gives none; the reason of `signal` */
  token(signal?: AbortSignal): Promise<string>;
  /** The service does not accept this token. Returns whether asking for another one makes sense. */
  refused(token: string): boolean;
  close(): Promise<void>;
}

export function givenToken(token: string): Credentials {
  return { token: async () => token, refused: () => false, close: async () => {} };
}

/** What Keystone says of what was configured. Anything else is a fault of Keystone, or on the way to it. */
const MISTAKES: readonly KeystoneErrorCode[] = ['credentials', 'forbidden', 'configuration'];

/** Of this cloud of `clouds.yaml`; `envvars` = of the variables `OS_*`. A token is kept until it is about to expire. */
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
