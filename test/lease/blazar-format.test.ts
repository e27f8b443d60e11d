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

/** Blazar's own arguments, taken apart again from what it sent. */
function blazarArguments() {
  const { lease } = createGpuAndFloatingIp();
  const { reservations = [], ...values } = lease;
  const allocations = Object.fromEntries(
    reservations.map(({ resource_type = '', allocations = [] }) => [resource_type, allocations]),
  );
  return { values, reservations: reservations.map(({ allocations: _, ...rest }) => rest), allocations };
}

describe('formatLease', () => {
  it('makes the lease that Blazar sends from the arguments that Blazar has', () => {
    const { values, reservations, allocations } = deepFreeze(blazarArguments());
    expect(formatLease(values, reservations, allocations)).toEqual(createGpuAndFloatingIp().lease);
  });

  it('gives reservations of one type the same allocations, and an empty list where there are none', () => {
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

  it('says which resource type has no allocations, and which have', () => {
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

  it('says what is missing', () => {
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
  ])('of %j are there or not', (lease, start, end) => {
    expect([leaseStart(lease) !== undefined, leaseEnd(lease) !== undefined]).toEqual([start, end]);
  });

  it('take end_date where both ends are given', () => {
    expect(leaseEnd({ end_date: '2026-12-02', end_time: '2026-12-03' })).toBe(
      leaseEnd({ end_date: '2026-12-02' }),
    );
  });
});
