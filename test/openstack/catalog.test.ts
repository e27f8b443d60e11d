import { describe, expect, it } from 'vitest';
import { endpointOf } from '../../src/openstack/keystone.ts';
import type { Catalog } from '../../src/openstack/own-token.ts';

const endpoint = (region: string | null, url: string, which = 'public') =>
  ({ id: 'e', interface: which, region, region_id: region, url }) as const;
const service = (type: string, ...endpoints: object[]) => ({ id: 's', type, name: type, endpoints });

const TWO_REGIONS: Catalog = [
  service('identity', endpoint('a', 'http://k:5000/'), endpoint('b', 'http://k:5000/v3')),
  service(
    'reservation',
    endpoint('a', 'http://a/v1/'),
    endpoint('a', 'http://inner/v1', 'internal'),
    endpoint('b', 'http://b/v1'),
  ),
];

const find = (catalog: Catalog, type: string, region?: string, which = 'public') =>
  endpointOf(catalog, type, { region, interface: which });

describe('the catalog', () => {
  it.each<[string, string, string | undefined, string | undefined, string]>([
    ['of a region', 'reservation', 'a', undefined, 'http://a/v1'],
    ['of another region', 'reservation', 'b', undefined, 'http://b/v1'],
    ['of an interface', 'reservation', undefined, 'internal', 'http://inner/v1'],
    ['of Keystone without /v3', 'identity', 'a', undefined, 'http://k:5000/v3'],
    ['that regions share', 'identity', undefined, undefined, 'http://k:5000/v3'],
  ])('gives the address %s', (_what, type, region, which, address) => {
    expect(find(TWO_REGIONS, type, region, which)).toBe(address);
  });

  const none = (which: string, type: string, place: string, instead: string) =>
    `the catalog has no ${which} endpoint of the service "${type}"${place}; it has ${instead}`;
  it.each<[string, Parameters<typeof find>, string]>([
    [
      'a region that is not named',
      [TWO_REGIONS, 'reservation'],
      'the catalog has the service "reservation" in several regions: set [keystone] region_name to one of a, b',
    ],
    [
      'an interface that is not there',
      [TWO_REGIONS, 'reservation', 'b', 'admin'],
      none('admin', 'reservation', ' in the region b', 'internal in a, public in a, public in b'),
    ],
    [
      'a service that is not there',
      [TWO_REGIONS, 'compute', 'a'],
      none('public', 'compute', ' in the region a', 'identity, reservation'),
    ],
    ['nothing', [[], 'compute'], none('public', 'compute', '', 'no services')],
    [
      'two in a region',
      [[service('x', endpoint('a', 'http://1'), endpoint('a', 'http://2'))], 'x', 'a'],
      'the catalog has more than one public endpoint of the service "x" in the region a',
    ],
  ])('refuses %s', (_what, args, message) => {
    expect(() => find(...args)).toThrow(message);
  });

  it.each([
    ['no URL', '/v1'],
    ['a URL with a password', 'http://u:p@h/'],
    ['another scheme', 'file:///etc/passwd'],
  ])('refuses %s as an address', (_what, url) => {
    expect(() => find([service('x', endpoint('a', url))], 'x', 'a')).toThrow(
      'the address of the service "x" in the catalog is not an http or https URL',
    );
  });

  it('leaves out what is no service', () => {
    const odd: Catalog = [null, 7, 'x', [], { type: 7 }, { type: 'x' }, { type: 'x', endpoints: 'y' }];
    expect(find([...odd, service('x', endpoint(null, 'http://x'))], 'x')).toBe('http://x');
  });
});
