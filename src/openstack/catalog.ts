/** Where services are, by the catalog that comes with a token. */
import { z } from 'zod';
import { isMapping } from '../yaml/tree.ts';
import { KeystoneError } from './keystone-error.ts';
import type { KeystoneOptions } from './keystone-options.ts';

/** The services as Keystone lists them. Each is read when it is looked for: those of large clouds have a thousand endpoints. */
export type Catalog = readonly unknown[];

const service = z.object({
  endpoints: z.array(
    z.object({
      interface: z.string(),
      region: z.string().nullish(),
      region_id: z.string().nullish(),
      url: z.string(),
    }),
  ),
});

const MAX_NAMED = 20;

export interface EndpointChoice {
  readonly region: KeystoneOptions['region_name'];
  readonly interface: string;
}

/**
 * The address of the services of a type, without a slash at its end; that of Keystone ends in `/v3` in any case. An address that
 * depends on a region that is not named is an error: a service of another region would be asked for our leases.
 *
 * @throws KeystoneError
 */
export function endpointOf(catalog: Catalog, type: string, choice: EndpointChoice): string {
  const ofType = catalog.filter((entry) => typeOf(entry) === type);
  const endpoints = ofType.flatMap((entry) => service.safeParse(entry).data?.endpoints ?? []);
  const matching = endpoints.filter(
    (one) =>
      one.interface === choice.interface &&
      (choice.region === undefined || [one.region, one.region_id].includes(choice.region)),
  );
  const addresses = [...new Set(matching.map(({ url }) => addressOf(url, type)))];
  const [address] = addresses;
  if (address === undefined) {
    const found = endpoints.map((one) => `${one.interface} in ${one.region_id ?? one.region}`);
    const instead = ofType.length === 0 ? named(typesOf(catalog), 'services') : named(found, 'endpoints');
    throw noEndpoint(`the catalog has no ${wanted(type, choice)}; it has ${instead}`);
  }
  if (addresses.length > 1) {
    const regions = matching.map((one) => String(one.region_id ?? one.region));
    throw noEndpoint(
      choice.region === undefined
        ? `the catalog has the service "${type}" in several regions: set [keystone] region_name to one of ${named(regions)}`
        : `the catalog has more than one ${wanted(type, choice)}`,
    );
  }
  return address;
}

function wanted(type: string, { region, interface: which }: EndpointChoice): string {
  return `${which} endpoint of the service "${type}"${region === undefined ? '' : ` in the region ${region}`}`;
}

function addressOf(text: string, type: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw noEndpoint(`the address of the service "${type}" in the catalog is not an http or https URL`);
  }
  const address = `${url.origin}${url.pathname}`.replace(/\/+$/, '');
  return type === 'identity' ? `${address.replace(/\/v(2\.0|3)$/, '')}/v3` : address;
}

function typeOf(entry: unknown): string | undefined {
  const type = isMapping(entry) ? entry.type : undefined;
  return typeof type === 'string' ? type : undefined;
}

function typesOf(catalog: Catalog): string[] {
  return catalog.flatMap((entry) => typeOf(entry) ?? []);
}

function named(texts: readonly string[], nothing = 'nothing'): string {
  const different = [...new Set(texts)].sort();
  const shown = different.slice(0, MAX_NAMED).map((text) => text.slice(0, 100));
  return different.length === 0
    ? `no ${nothing}`
    : `${shown.join(', ')}${different.length > MAX_NAMED ? ', …' : ''}`;
}

function noEndpoint(message: string): KeystoneError {
  return new KeystoneError('no-endpoint', message);
}
