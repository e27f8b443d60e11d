/** The rotator that the options of `[kubernetes]` describe. */
import type { Logger } from '../../../base/logger.ts';
import type { KubernetesOptions } from '../../options.ts';
import type { CertificateOptions, CertificateRotator } from './certificate-rotator.ts';

const DAY_MS = 24 * 3_600_000;

/** For tests. */
export type CertificateTiming = Pick<Partial<CertificateOptions>, 'intervalMs' | 'settleMs'>;

export interface ConfiguredRotator {
  readonly rotator: CertificateRotator;
  close(): Promise<void>;
}

/**
 * `undefined` = the service makes no certificate for itself; then nothing is loaded.
 * @throws ConfigurationError for mistakes in the kubeconfig, or if this is not a pod
 */
export async function configuredRotator(
  options: KubernetesOptions,
  logger: Logger,
  timing: CertificateTiming = {},
): Promise<ConfiguredRotator | undefined> {
  const { certificate_secret: secret, certificate_folder: folder, kubeconfig } = options;
  if (secret === undefined || folder === undefined) {
    return undefined;
  }
  const { createApiClient } = await import('../api/api-client.ts');
  const { CertificateRotator } = await import('./certificate-rotator.ts');
  const client = createApiClient({ kubeconfig, logger });
  const rotator = new CertificateRotator(
    client,
    {
      secret,
      folder,
      names: options.certificate_names,
      webhookConfigurations: options.webhook_configurations,
      lifeMs: options.certificate_days * DAY_MS,
      ...timing,
    },
    logger,
  );
  const close = async () => {
    await rotator.close();
    await client.close();
  };
  return { rotator, close };
}
