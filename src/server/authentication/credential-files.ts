/** Token and certificate files, reloaded when they change. */

import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { kubernetesSection } from '../../kubernetes/options.ts';
import type { ServiceOptions } from '../configuration/options.ts';
import { readProtocolTokens, tokenOptionsOf } from '../configuration/sections.ts';
import type { Listener } from '../listener/socket.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type Authenticators, replaceTokens } from './authenticators.ts';
import { readTls, type TlsOptions } from './credentials.ts';

interface CredentialUsers {
  readonly authenticators: Authenticators;
  readonly listeners: readonly Listener[];
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Reloads the files, except those with a mistake, whose old content stays. Returns whether all are valid. */
export function rereadCredentials(
  configuration: Configuration,
  tlsOptions: TlsOptions,
  { authenticators, listeners, logger, metrics }: CredentialUsers,
): boolean {
  const mistakes = [
    ...mistakeOf(() => replaceTokens(authenticators, readProtocolTokens(configuration))),
    ...mistakeOf(() => {
      const tls = readTls(tlsOptions);
      if (tls !== undefined) {
        for (const listener of listeners) {
          listener.replaceTls(tls);
        }
      }
    }),
  ];
  for (const error of mistakes) {
    logger.error({ error }, 'token and certificate files not read again: the previous ones stay in use');
  }
  if (mistakes.length === 0) {
    logger.info('token and certificate files read again');
  }
  metrics.credentialReloads.inc({ outcome: mistakes.length === 0 ? 'applied' : 'refused' });
  return mistakes.length === 0;
}

function mistakeOf(read: () => void): string[] {
  try {
    read();
    return [];
  } catch (thrown) {
    return [errorText(thrown)];
  }
}

/** The files to watch. A reload may set other token files; paths of certificates are fixed at the start. */
export function credentialFiles(
  now: Configuration,
  { tls_cert_file, tls_key_file, client_ca_file }: TlsOptions,
): string[] {
  const options = tokenOptionsOf(now);
  const tokenFiles = Object.values(options).map(({ tokens_file }) => tokens_file);
  const { operator_tokens_file, reader_tokens_file, metrics_tokens_file } = options.blazar;
  const ofUsers = [operator_tokens_file, reader_tokens_file, metrics_tokens_file];
  const ofTls = [tls_cert_file, tls_key_file, client_ca_file];
  return [...tokenFiles, ...ofUsers, ...ofTls].filter((file) => file !== undefined);
}

/** The authorities for all clients, or those for API servers; `start-checks.ts` rejects setting both. */
export function tlsOptionsOf(configuration: Configuration, service: ServiceOptions): TlsOptions {
  const { client_ca_file: ofKubernetes } = sectionOf(configuration, kubernetesSection);
  return { ...service, client_ca_file: service.client_ca_file ?? ofKubernetes };
}
