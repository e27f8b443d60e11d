import { describe, expect, it } from 'vitest';
import { type DecidedRequest, requestedLeaseOf } from '../../src/decisions/lease-record.ts';
import { toInstant } from '../../src/index.ts';
import type { Lease, Reservation } from '../../src/lease/lease.ts';

const context = { user_id: 'alice', project_id: 'climate' };
const DATES = { start_date: '2026-12-01 09:00', end_date: '2026-12-03 09:00' };
const HOSTS = {
  resource_type: 'physical:host',
  min: 1,
  max: 2,
  resource_properties: '["==", "$gpu", "A100"]',
};
const created = (reservations: Lease['reservations']): DecidedRequest => ({
  context,
  lease: { ...DATES, ...(reservations && { reservations }) },
});

describe('what a refused lease asked for', () => {
  it('is its dates and reservations, without hosts and what Blazar adds', () => {
    const added = { id: 'r1', lease_id: 'l1', status: 'pending', missing_resources: false, before_end: null };
    const given = { ...HOSTS, ...added, allocations: [{ id: '1' }] };
    expect(requestedLeaseOf(created([given, { resource_type: 'site:thing', level: 3 }]))).toEqual({
      start: toInstant('2026-12-01T09:00:00Z'),
      end: toInstant('2026-12-03T09:00:00Z'),
      reservations: [HOSTS, { resource_type: 'site:thing', level: 3 }],
    });
    expect(requestedLeaseOf(created(undefined))?.reservations).toEqual([]);
  });

  it('is the whole lease for an update that names only what changes, in both spellings', () => {
    const current: Lease = { ...DATES, id: 'l1', reservations: [{ ...HOSTS, id: 'r1' }] };
    const lease: Lease = { end_date: '2026-12-05 09:00', reservations: [{ id: 'r1', max: 4 }] };
    for (const request of [
      { context, lease, current_lease: current },
      { context, lease, currentLease: current },
    ]) {
      expect(requestedLeaseOf(request)).toEqual({
        start: toInstant('2026-12-01T09:00:00Z'),
        end: toInstant('2026-12-05T09:00:00Z'),
        reservations: [{ ...HOSTS, max: 4 }],
      });
    }
  });

  it('keeps no reservations rather than some: at most 20, in 4 KiB of UTF-8', () => {
    const kept = (reservations: Lease['reservations']) =>
      requestedLeaseOf(created(reservations))?.reservations;
    expect(kept(Array.from({ length: 20 }, () => HOSTS))).toHaveLength(20);
    expect(kept(Array.from({ length: 21 }, () => ({ resource_type: 'network' })))).toBeUndefined();
    const around = JSON.stringify([{ text: '' }]).length;
    expect(kept([{ text: 'x'.repeat(4096 - around) }])).toHaveLength(1);
    expect(kept([{ text: 'x'.repeat(4097 - around) }])).toBeUndefined();
    expect(kept([{ text: 'é'.repeat(2048) }])).toBeUndefined();
    // Allocations do not count: a lease may be refused for what it was given.
    expect(
      kept([{ ...HOSTS, allocations: Array.from({ length: 999 }, () => ({ name: 'x'.repeat(99) })) }]),
    ).toEqual([HOSTS]);
  });

  it('does not write as JSON what is too long, however deep it is', () => {
    const long = { list: [{ text: 'x'.repeat(5000) }], toJSON: () => expect.unreachable('it is written') };
    expect(requestedLeaseOf(created([{ ...HOSTS, site: { long } }]))?.reservations).toBeUndefined();
  });

  it('is unknown without dates, and takes no harm from names of prototypes', () => {
    expect(requestedLeaseOf({ context, lease: { reservations: [HOSTS] } })).toBeUndefined();
    const hostile = JSON.parse('{"__proto__": {"min": 9}, "constructor": "x", "max": 1}') as Reservation;
    const [kept] = requestedLeaseOf(created([hostile]))?.reservations ?? [];
    expect(JSON.stringify(kept)).toBe('{"__proto__":{"min":9},"constructor":"x","max":1}');
    expect(kept?.min).toBeUndefined();
  });
});
