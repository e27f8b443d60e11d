/** A configuration with which the service can start, and its files. */

import { ConfigurationError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { type Configuration, requireConfiguration, sectionOf } from '../../enforcement/configuration.ts';
import type { CertificateTiming } from '../../kubernetes/cluster/certificates/configured-rotator.ts';
import { credentialFiles, tlsOptionsOf } from '../authentication/credential-files.ts';
import type { TlsOptions } from '../authentication/credentials.ts';
import { type ServiceOptions, serviceSection } from '../configuration/options.ts';
import { SECTIONS } from '../configuration/sections.ts';
import { type Started, startedWith, startProblems } from '../configuration/start-checks.ts';
import { storageProblems } from '../configuration/storage-checks.ts';
import type { WatchedFiles } from '../configuration/watched-files.ts';
import type { Watchdog } from '../watchdog.ts';

export interface Watched {
  readonly configuration: WatchedFiles;
  readonly credentials: WatchedFiles;
}

export interface CheckedConfiguration {
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  readonly tlsOptions: TlsOptions;
  readonly started: Started;
}

/**
 * Watches each file before its last read, so that no change in between is missed.
 *
 * @throws ConfigurationError
 */
export async function checkedConfiguration(
  sources: ConfigSources,
  watched: Watched,
  { watch: readAgain = false }: ServiceSettings,
): Promise<CheckedConfiguration> {
  const { configFiles = [], configDirs = [] } = sources;
  await watched.configuration.watch([...configFiles, ...configDirs]);
  let configuration = await requireConfiguration(sources, SECTIONS);
  while ((await watched.configuration.watch(filesRead(sources, configuration))) && readAgain) {
    configuration = await requireConfiguration(sources, SECTIONS);
  }
  const options = sectionOf(configuration, serviceSection);
  const started = startedWith(configuration);
  const problems = [
    ...startProblems(configuration, started),
    ...(await storageProblems(configuration, { ask: false })),
  ];
  if (problems.some(({ severity }) => severity === 'error')) {
    throw new ConfigurationError(problems);
  }
  configuration = { ...configuration, problems: [...configuration.problems, ...problems] };
  const tlsOptions = tlsOptionsOf(configuration, options);
  await watched.credentials.watch(credentialFiles(configuration, tlsOptions));
  return { configuration, options, tlsOptions, started };
}

export function filesRead(
  { configDirs = [] }: ConfigSources,
  { files, namedFiles }: Configuration,
): string[] {
  return [...files, ...namedFiles, ...configDirs];
}

export interface ServiceSettings {
  /** Default: standard error, with `log_level` and `log_format`. */
  readonly logger?: Logger;
  /** Whether to reload when a configuration file changes. Default false. */
  readonly watch?: boolean;
  /** How often to check for changed files, in milliseconds. Default 1000. */
  readonly pollMs?: number;
  /** The clock for the cache of metrics: monotonic, in milliseconds. Default: the clock of the process. */
  readonly metricsClock?: () => number;
  /** How soon certificates change. Default: as configured, and as long as API servers may take. */
  readonly certificateTiming?: CertificateTiming;
  /** Detects filters that block the process. Default: none. */
  readonly watchdog?: Pick<Watchdog, 'executions' | 'watch' | 'heldForMs' | 'endIn'>;
}
