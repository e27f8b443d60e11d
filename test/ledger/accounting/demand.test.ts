import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Reservation } from '../../../src/index.ts';
import {
  demandOf,
  isComparable,
  OTHERS,
  recordedResources,
  resourcePeriods,
} from '../../../src/ledger/accounting/demand.ts';
import created from '../../fixtures/blazar-wire/check-create-physical-host.json' with { type: 'json' };
import extended from '../../fixtures/blazar-wire/check-update-extend.json' with { type: 'json' };
import ended from '../../fixtures/blazar-wire/on-end-active.json' with { type: 'json' };

describe('demandOf', () => {
  it('is the same when Blazar creates, updates and ends a lease', () => {
    const demands = [created.lease, extended.current_lease, ended.lease].map((lease) =>
      demandOf(lease.reservations as unknown as Reservation[]),
    );
    expect(new Set(demands).size).toBe(1);
    expect(isComparable(demands[0] ?? '')).toBe(true);
  });

  it('is the same in any order, and whatever Blazar adds', () => {
    const hosts = { resource_type: 'physical:host', min: 1, max: 2 };
    const addresses = { resource_type: 'virtual:floatingip', amount: '2' };
    const others = { resource_type: 'virtual:gpu', min: 1, max: 1 };
    const reported = [
      { ...others, amount: null },
      { ...addresses, amount: 2, id: 'r2', status: 'active', required_floatingips: [] },
      { ...hosts, id: 'r1', before_end: 'default', amount: null, allocations: [{ id: '1' }] },
    ];
    expect(demandOf(reported)).toBe(demandOf([{ ...hosts, amount: 3 }, addresses, others]));
  });

  it('differs for other counts and other types', () => {
    const reservation = fc.record({
      resource_type: fc.constantFrom('physical:host', 'virtual:gpu'),
      min: fc.nat(3),
      max: fc.nat(3),
    });
    const sorted = (all: readonly object[]) => JSON.stringify(all.map((one) => JSON.stringify(one)).sort());
    fc.assert(
      fc.property(fc.array(reservation), fc.array(reservation), (one, other) => {
        expect(demandOf(one) === demandOf(other)).toBe(sorted(one) === sorted(other));
      }),
    );
  });
});

describe('the recorded resources of a lease', () => {
  const hosts = (max: number) => [{ resource_type: 'physical:host', min: 1, max }];
  const addresses = { resource_type: 'virtual:floatingip', amount: 2 };
  const first = recordedResources(hosts(1), null);

  it('are those of the last request with reservations, and of each time before', () => {
    expect(recordedResources([], first)).toBe(first);
    expect(recordedResources(hosts(1), first, 5n)).toBe(first);
    expect(recordedResources(hosts(2), first)).toBe(recordedResources(hosts(2), null));
    expect(resourcePeriods(recordedResources(hosts(2), first, 5n))).toEqual([
      { until: 5n, counts: new Map([['physical:host', 1]]) },
      { until: undefined, counts: new Map([['physical:host', 2]]) },
    ]);
    expect(resourcePeriods(null)).toEqual([]);
  });

  it('are summed by type, in any order, those beyond sixteen types together', () => {
    const both = [addresses, ...hosts(1)];
    expect(recordedResources(both, null)).toBe(recordedResources(both.toReversed(), null));
    const many = Array.from({ length: 18 }, (_, index) => ({ resource_type: `type ${index}`, amount: 1 }));
    const [period] = resourcePeriods(recordedResources([...many, ...many], null));
    expect(period?.counts.size).toBe(17);
    expect([period?.counts.get('type 15'), period?.counts.get(OTHERS)]).toEqual([2, 4]);
  });
});
