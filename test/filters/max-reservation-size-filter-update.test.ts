import { describe, expect, it } from 'vitest';
import type { Lease, Reservation } from '../../src/index.ts';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import { updateExtend } from '../support/requests.ts';
import { hosts, load } from './reservation-sizes.ts';

describe('MaxReservationSizeFilter at update', () => {
  const two = { id: 'h', resource_type: 'physical:host', min: 1, max: 2 };
  const ip = { id: 'f', resource_type: 'virtual:floatingip', amount: 1 };
  const update = async (sizes: string, current: readonly unknown[] | null, lease: Lease) => {
    const { context, currentLease } = updateExtend();
    return (await load([`max_reservation_size = ${sizes}`])).checkUpdate({
      context,
      currentLease: { ...currentLease, reservations: current as Reservation[] },
      lease,
    });
  };

  it('allows the captured extension, even if the lease is over a new limit', async () => {
    for (const sizes of ['physical:host:2', 'physical:host:1', 'physical:host:0']) {
      const enforcement = await load([`max_reservation_size = ${sizes}`]);
      expect(await enforcement.checkUpdate(updateExtend()), sizes).toMatchObject(ALLOWED);
    }
  });

  it('allows an update of the dates alone', async () => {
    for (const lease of [{}, { end_date: '2026-12-05' }, { end_date: '2026-12-05', reservations: [] }]) {
      expect(await update('physical:host:1', [two], lease)).toMatchObject(ALLOWED);
    }
    const none = JSON.parse('{"reservations": null}');
    expect(await update('physical:host:1', [two], none)).toMatchObject(ALLOWED);
  });

  it('allows growth to the limit, and rejects one unit more', async () => {
    const grow = (max: unknown) => update('physical:host:4', [two], { reservations: [{ id: 'h', max }] });
    expect(await grow(4)).toMatchObject(ALLOWED);
    expect(await grow('4')).toMatchObject(ALLOWED);
    expect(await grow(5)).toMatchObject(
      rejectedWith('The lease reserves up to 5 of physical:host; the most allowed for any lease is 4.'),
    );
  });

  it('allows a lease that is too large to shrink or stay, but not to grow by one unit', async () => {
    const change = (max: number) =>
      update('physical:host:3', [{ ...two, max: 9 }], { reservations: [{ id: 'h', max }] });
    expect(await change(9)).toMatchObject(ALLOWED);
    expect(await change(8)).toMatchObject(ALLOWED);
    expect(await change(10)).toMatchObject(REJECTED);
  });

  it('checks each type separately: a decrease of one type does not allow an increase of another', async () => {
    const lease = {
      reservations: [
        { id: 'h', max: 0 },
        { id: 'f', amount: 2 },
      ],
    };
    expect(await update('physical:host:1, virtual:floatingip:1', [two, ip], lease)).toMatchObject(
      rejectedWith('The lease reserves up to 2 of virtual:floatingip; the most allowed for any lease is 1.'),
    );
    expect(await update('physical:host:1, virtual:floatingip:2', [two, ip], lease)).toMatchObject(ALLOWED);
  });

  it('counts reservations that the update leaves out', async () => {
    const second = { ...two, id: 'i', max: 3 };
    const lease = { reservations: [{ id: 'h', max: 3 }] };
    expect(await update('physical:host:6', [two, second], lease)).toMatchObject(ALLOWED);
    expect(await update('physical:host:5', [two, second], lease)).toMatchObject(
      rejectedWith(expect.stringContaining('up to 6 of physical:host')),
    );
  });

  it('allows hosts to move from one reservation to another', async () => {
    const second = { ...two, id: 'i', max: 3 };
    const lease = {
      reservations: [
        { id: 'h', max: 4 },
        { id: 'i', max: 1 },
      ],
    };
    expect(await update('physical:host:1', [two, second], lease)).toMatchObject(ALLOWED);
  });

  it('counts an added reservation, with an unknown id or without one', async () => {
    for (const added of [hosts(1), hosts(1, { id: 'new' })]) {
      const lease = { reservations: [added] };
      expect(await update('physical:host:3', [two], lease)).toMatchObject(ALLOWED);
      expect(await update('physical:host:2', [two], lease)).toMatchObject(REJECTED);
    }
    expect(await update('network:0', [two], { reservations: [{ resource_type: 'network' }] })).toMatchObject(
      REJECTED,
    );
  });

  it('counts everything as new if the current lease has no reservations', async () => {
    for (const none of [[], null]) {
      expect(await update('physical:host:1', none, { reservations: [hosts(2)] })).toMatchObject(REJECTED);
    }
  });

  it('rejects an invalid count, and names its place in the updated lease', async () => {
    const lease = {
      reservations: [
        { id: 'f', amount: 1 },
        { id: 'h', max: 'many' },
      ],
    };
    expect(await update('physical:host:9', [two, ip], lease)).toMatchObject(
      rejectedWith(
        "The size of the lease can't be told: reservations.1: expected max or amount as a whole number, 0 or more.",
      ),
    );
    expect(await update('physical:host:9', [two], { reservations: [{ id: 'h', max: null }] })).toMatchObject(
      REJECTED,
    );
  });

  it('allows a valid count to replace an invalid one, within the limit', async () => {
    const broken = [{ ...two, max: 'many' }];
    const mend = (max: number) => update('physical:host:2', broken, { reservations: [{ id: 'h', max }] });
    expect(await mend(2)).toMatchObject(ALLOWED);
    expect(await mend(3)).toMatchObject({ allowed: false, failed: false });
  });

  it('refuses a request that names a reservation twice', async () => {
    const lease = {
      reservations: [
        { id: 'h', max: 2 },
        { id: 'h', max: 2 },
      ],
    };
    await expect(update('physical:host:4', [two], lease)).rejects.toThrow('lease.reservations.1.id');
  });

  it('applies the limits of users and projects', async () => {
    const request = updateExtend();
    const { user_id, project_id } = request.context;
    const lease = { reservations: [{ ...request.lease.reservations?.[0], max: 3 }] };
    const ask = async (...lines: readonly string[]) =>
      (await load(['max_reservation_size = physical:host:2', ...lines])).checkUpdate({ ...request, lease });
    expect(await ask()).toMatchObject(REJECTED);
    expect(await ask(`max_reservation_size_project_limits = ${project_id}/physical:host:3`)).toMatchObject(
      ALLOWED,
    );
    expect(await ask(`max_reservation_size_user_limits = ${user_id}/physical:host:3`)).toMatchObject(ALLOWED);
  });
});
