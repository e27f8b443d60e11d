/** The policy service: everything is wired and checked before the port opens. */
import type { ConfigSources } from '../config/sources.ts';
import type { Configuration } from '../enforcement/configuration.ts';
import { ConfigurationError } from '../errors.ts';
import type { ServiceOptions } from './options.ts';
import { checkedConfiguration } from './service/checked-configuration.ts';
import { openService } from './service/open-service.ts';
import type { Service } from './service/running-service.ts';
import type { ServiceSettings } from './service/service-settings.ts';
import { WatchedFiles } from './watched-files.ts';
import { workerCount } from './workers/share.ts';

export type { Service, ServiceSettings };

/** A service whose configuration has no mistakes. */
export interface PreparedService {
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  /** Starts it in this process, and listens. @throws ConfigurationError also if the address cannot be used */
  start(): Promise<Service>;
}

/** Checks the configuration, starts the service and listens. @throws ConfigurationError also if the address cannot be used */
export async function startService(sources: ConfigSources, settings: ServiceSettings = {}): Promise<Service> {
  const prepared = await prepareService(sources, settings);
  if (settings.worker === undefined && workerCount(prepared.options.workers) > 1) {
    const message = 'expected 1: only the command serve starts several processes';
    throw new ConfigurationError([{ severity: 'error', section: 'service', option: 'workers', message }]);
  }
  return prepared.start();
}

/** Checks the configuration. @throws ConfigurationError */
export async function prepareService(
  sources: ConfigSources,
  settings: ServiceSettings = {},
): Promise<PreparedService> {
  const { worker, pollMs } = settings;
  let service: Service | undefined;
  const watched = {
    configuration: new WatchedFiles(
      () => void (worker === undefined ? service?.reload() : worker.changed('configuration')),
      pollMs,
    ),
    credentials: new WatchedFiles(
      () => void (worker === undefined ? service?.credentialsChanged() : worker.changed('credentials')),
      pollMs,
    ),
  };
  const checked = await checkedConfiguration(sources, watched, settings);
  const start = async () => {
    service = await openService(sources, settings, watched, checked);
    watched.credentials.start();
    if (settings.watch) {
      watched.configuration.start();
    }
    return service;
  };
  return { configuration: checked.configuration, options: checked.options, start };
}
