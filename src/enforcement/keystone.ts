import { withinDeadline } from '../base/deadline.ts';
import type { ServiceTokens, SharedServices } from '../filter/services.ts';
import type { Keystone } from '../openstack/contract.ts';
import type { Names, NamesParts } from '../openstack/names.ts';
import { isKeystoneSet, keystoneSection } from '../openstack/options.ts';
import { type Configuration, sectionOf } from './configuration.ts';

/**
 * `undefined`, with nothing loaded, if `[keystone]` is not set. `instead`: the client to use if it is set.
 * The configuration must be valid.
 */
export async function keystoneOf(
  configuration: Configuration,
  services: SharedServices,
  instead?: Keystone | undefined,
): Promise<Keystone | undefined> {
  const options = sectionOf(configuration, keystoneSection);
  if (!isKeystoneSet(options)) {
    return undefined;
  }
  if (instead !== undefined) {
    return instead;
  }
  const { createKeystone } = await import('../openstack/keystone.ts');
  return createKeystone(options, services);
}

/** `undefined`, with nothing loaded, unless `[keystone] resolve_names` is true. */
export async function namesOf(
  configuration: Configuration,
  keystone: Keystone | undefined,
  parts: NamesParts,
  earlier: Names | undefined,
): Promise<Names | undefined> {
  const options = sectionOf(configuration, keystoneSection);
  if (!options.resolve_names || keystone === undefined) {
    return undefined;
  }
  const { Names: Resolver } = await import('../openstack/names.ts');
  const { effectiveOptions } = await import('../openstack/effective-options.ts');
  await prepared(keystone);
  return new Resolver(keystone, (await effectiveOptions(options)).options, parts, earlier);
}

/** In seconds. */
const PREPARATION = 2;

/**
 * Loads the client and gets a token, so that the names for the first request are there in time. An
 * unavailable Keystone delays the start no longer than this; later requests for names report it.
 */
function prepared(keystone: Keystone): Promise<unknown> {
  return withinDeadline(PREPARATION, ({ signal }) => keystone.token({ signal })).catch(() => undefined);
}

/**
 * The ids of projects given by id or `name@domain`, without names that Keystone does not have. Without
 * `keystone` all of them are ids. @throws KeystoneError, HttpCallError if Keystone gives no answer
 */
export async function projectIdsOf(
  projects: readonly string[],
  keystone: Keystone | undefined,
): Promise<readonly string[]> {
  if (keystone === undefined || !projects.some((one) => one.includes('@'))) {
    return projects;
  }
  const { accountIdOf } = await import('../openstack/identity-records.ts');
  const ids = await Promise.all(
    projects.map((one) => (one.includes('@') ? accountIdOf(keystone, 'project', one) : one)),
  );
  return ids.flatMap((id) => id ?? []);
}

/** For a configuration without `[keystone]`: getting a token fails. */
export const NO_KEYSTONE: ServiceTokens = {
  token: async () => {
    throw new Error('[keystone] auth_url and cloud are not set: there is no token to send');
  },
  refused: () => {},
};
