/** The reservations of a lease after a partial update. */
import { describe, expect, it } from 'vitest';
import { reservationsAfterUpdate } from '../../src/index.ts';
import { readOnly } from '../../src/lease/read-only.ts';
import { deepFreeze, updateExtend } from '../support/requests.ts';

const hosts = { id: 'h', resource_type: 'physical:host', min: 1, max: 2, allocations: [{ id: '1' }] };
const address = { id: 'f', resource_type: 'virtual:floatingip', amount: 1 };

describe('reservationsAfterUpdate', () => {
  it('merges the update into the reservation with the same id, in any order', () => {
    const [amount, max] = [{ amount: 3 }, { max: 5 }];
    const update = {
      reservations: [
        { id: 'f', ...amount },
        { id: 'h', ...max },
      ],
    };
    expect(reservationsAfterUpdate({ reservations: [hosts, address] }, update)).toEqual([
      { ...address, ...amount },
      { ...hosts, ...max },
    ]);
  });

  it('keeps reservations that the update leaves out, after those that it names', () => {
    const current = { reservations: [hosts, address] };
    expect(reservationsAfterUpdate(current, { reservations: [{ id: 'f', amount: 3 }] })).toEqual([
      { ...address, amount: 3 },
      hosts,
    ]);
  });

  it('treats a reservation without an id, or with an unknown id, as new', () => {
    const added = { resource_type: 'network' };
    const unknown = { id: 'n', resource_type: 'network' };
    expect(reservationsAfterUpdate({ reservations: [hosts] }, { reservations: [added, unknown] })).toEqual([
      added,
      unknown,
      hosts,
    ]);
  });

  it('keeps two reservations without an id apart', () => {
    const current = { reservations: [{ resource_type: 'physical:host', max: 2 }] };
    const wanted = { reservations: [{ resource_type: 'network' }] };
    expect(reservationsAfterUpdate(current, wanted)).toEqual([
      { resource_type: 'network' },
      { resource_type: 'physical:host', max: 2 },
    ]);
  });

  it('replaces the current value with null if the update sends null', () => {
    expect(
      reservationsAfterUpdate({ reservations: [hosts] }, { reservations: [{ id: 'h', max: null }] }),
    ).toEqual([{ ...hosts, max: null }]);
  });

  it('changes neither lease, and accepts the read-only views of filters', () => {
    const { currentLease, lease } = deepFreeze(updateExtend());
    expect(reservationsAfterUpdate(currentLease, lease)).toEqual(lease.reservations);
    expect(reservationsAfterUpdate(readOnly(currentLease), readOnly(lease))).toEqual(lease.reservations);
  });
});
