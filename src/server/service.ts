/** The policy service: everything is wired and checked before the port opens. */
import type { ConfigSources } from '../config/sources.ts';
import { WatchedFiles } from './configuration/watched-files.ts';
import { checkedConfiguration } from './service/checked-configuration.ts';
import { openService } from './service/open-service.ts';
import type { Service } from './service/running-service.ts';
import type { ServiceSettings } from './service/service-settings.ts';

export type { Service, ServiceSettings };

/** Checks the configuration, starts the service and listens. @throws ConfigurationError also if the address cannot be used */
export async function startService(sources: ConfigSources, settings: ServiceSettings = {}): Promise<Service> {
  const { pollMs } = settings;
  let service: Service | undefined;
  const watched = {
    configuration: new WatchedFiles(() => void service?.reload(), pollMs),
    credentials: new WatchedFiles(() => void service?.credentialsChanged(), pollMs),
  };
  const checked = await checkedConfiguration(sources, watched, settings);
  service = await openService(sources, settings, watched, checked);
  watched.credentials.start();
  if (settings.watch) {
    watched.configuration.start();
  }
  return service;
}
