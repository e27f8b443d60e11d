/** `scheduling-policy certificates`: writes the certificate of the service before its first start. */
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import { createLogger } from '../../base/logger.ts';
import { ExitCode, UsageError } from '../output.ts';

export async function writeCertificates(configFiles: readonly string[]): Promise<void> {
  const { readConfiguration, sectionOf } = await import('../../enforcement/configuration.ts');
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const { kubernetesSection } = await import('../../kubernetes/options.ts');
  const configuration = await readConfiguration({ configFiles, environment: {} }, SECTIONS);
  const problems = configuration.problems.filter(concernsCertificates);
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  const { configuredKeeper } = await import('../../kubernetes/cluster/certificates/configured-keeper.ts');
  const configured = await configuredKeeper(
    sectionOf(configuration, kubernetesSection),
    createLogger('info', 'json'),
  );
  if (configured === undefined) {
    throw new UsageError('expected certificate_secret in [kubernetes] of --config-file');
  }
  const stop = () => void configured.close();
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    process.exitCode = (await configured.keeper.prepare()) ? ExitCode.ok : ExitCode.failed;
  } finally {
    process.off('SIGTERM', stop).off('SIGINT', stop);
    await configured.close();
  }
}

/** Tokens are not there yet, nor is what this command writes. */
function concernsCertificates({ severity, section, option }: Problem): boolean {
  return (
    severity === 'error' &&
    (section === undefined ||
      (section === 'kubernetes' && !/^(tokens_file|client_ca_file)$/.test(option ?? '')))
  );
}
