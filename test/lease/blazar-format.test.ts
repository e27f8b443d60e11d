import { describe, expect, it } from 'vitest';
import {
  formatContext,
  formatLease,
  InvalidRequestError,
  type Lease,
  leaseEnd,
  leaseStart,
} from '../../src/index.ts';
import { createGpuAndFloatingIp, deepFreeze } from '../support/requests.ts';

/** The arguments of Blazar, reconstructed from the request that it sent. */
function blazarArguments() {
  const { lease } = createGpuAndFloatingIp();
  const { reservations = [], ...values } = lease;
  const allocations = Object.fromEntries(
    reservations.map(({ resource_type = '', allocations = [] }) => [resource_type, allocations]),
  );
  return { values, reservations: reservations.map(({ allocations: _, ...rest }) => rest), allocations };
}

describe('formatLease', () => {
  it('builds the lease that Blazar sends from the arguments of Blazar', () => {
    const { values, reservations, allocations } = deepFreeze(blazarArguments());
    expect(formatLease(values, reservations, allocations)).toEqual(createGpuAndFloatingIp().lease);
  });

  it('gives reservations of one type the same allocations, or an empty list', () => {
    const reservations = [
      { resource_type: 'physical:host' },
      { resource_type: 'physical:host' },
      { resource_type: 'network' },
    ];
    const lease = formatLease({}, reservations, { 'physical:host': [{ id: '1' }], network: [] });
    expect(lease.reservations?.map(({ allocations }) => allocations)).toEqual([
      [{ id: '1' }],
      [{ id: '1' }],
      [],
    ]);
  });

  it('names the resource type without allocations, and those with allocations', () => {
    const { values, reservations, allocations } = blazarArguments();
    const { 'virtual:floatingip': _, ...rest } = allocations;
    expect(() => formatLease(values, reservations, rest)).toThrow(InvalidRequestError);
    expect(() => formatLease(values, reservations, rest)).toThrow(
      'reservations.1.resource_type: expected a resource type that has allocations (physical:host), got "virtual:floatingip"',
    );
  });

  it.each(['__proto__', 'constructor', 'toString', undefined])(
    'finds no allocations under %s',
    (resource_type) => {
      const reservation = resource_type === undefined ? {} : { resource_type };
      expect(() => formatLease({}, [reservation], {})).toThrow(InvalidRequestError);
    },
  );
});

describe('formatContext', () => {
  it('takes the ids from the lease, as Blazar does', () => {
    const { context, lease } = createGpuAndFloatingIp();
    expect(
      formatContext(lease, { authUrl: 'https://keystone.example.org:5000/v3', regionName: 'RegionOne' }),
    ).toEqual(context);
  });

  it('names the missing field', () => {
    const details = { authUrl: 'https://keystone.example.org', regionName: null };
    expect(() => formatContext({ project_id: 'climate' }, details)).toThrow(
      'user_id: expected a text, got nothing',
    );
    expect(() => formatContext({ user_id: 'alice' }, details)).toThrow(
      'project_id: expected a text, got nothing',
    );
  });
});

describe('the dates of a lease', () => {
  it.each<[Lease, boolean, boolean]>([
    [{ start_date: '2026-12-01', end_date: '2026-12-02' }, true, true],
    [{ start_date: '2026-12-01', end_time: '2026-12-02' }, true, true],
    [{}, false, false],
    [{ start_date: 'soon', end_date: 'later' }, false, false],
  ])('in %j are read if they are valid', (lease, start, end) => {
    expect([leaseStart(lease) !== undefined, leaseEnd(lease) !== undefined]).toEqual([start, end]);
  });
});

describe('an attribute with the name of a prototype', () => {
  it('stays an attribute of lease and reservation', () => {
    const values = JSON.parse('{"name":"x","__proto__":{"end_date":"2099-01-01T00:00:00"}}');
    const reservation = JSON.parse('{"resource_type":"network","__proto__":{"allocations":[1]}}');
    const lease = formatLease(values, [reservation], { network: [] });
    expect(Object.keys(lease)).toEqual(['name', '__proto__', 'reservations']);
    expect(lease.end_date).toBeUndefined();
    const [formatted] = lease.reservations ?? [];
    expect(Object.keys(formatted ?? {})).toEqual(['resource_type', '__proto__', 'allocations']);
    expect(Object.getPrototypeOf(formatted)).toBe(Object.prototype);
  });
});
