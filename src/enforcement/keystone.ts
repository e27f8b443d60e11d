import type { SharedServices } from '../filter/services.ts';
import type { Keystone } from '../openstack/contract.ts';
import type { Names, NamesParts } from '../openstack/names.ts';
import { isKeystoneSet, keystoneSection } from '../openstack/options.ts';
import { type Configuration, sectionOf } from './configuration.ts';

/** `undefined`, and nothing is loaded, where `[keystone]` is not set. The configuration must be without mistakes. */
export async function keystoneOf(
  configuration: Configuration,
  services: SharedServices,
): Promise<Keystone | undefined> {
  const options = sectionOf(configuration, keystoneSection);
  if (!isKeystoneSet(options)) {
    return undefined;
  }
  const { createKeystone } = await import('../openstack/keystone.ts');
  return createKeystone(options, services);
}

/** `undefined`, and nothing is loaded, unless `[keystone] resolve_names` is true. */
export async function namesOf(
  configuration: Configuration,
  keystone: Keystone | undefined,
  parts: NamesParts,
): Promise<Names | undefined> {
  const options = sectionOf(configuration, keystoneSection);
  if (!options.resolve_names || keystone === undefined) {
    return undefined;
  }
  const { Names: Resolver } = await import('../openstack/names.ts');
  return new Resolver(keystone, options, parts);
}
