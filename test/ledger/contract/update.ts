import { expect, it } from 'vitest';
import { UsageBudgetFilter } from '../../../filters/usage-budget-filter.ts';
import { NO_KEYSTONE } from '../../../src/enforcement/keystone.ts';
import { createSharedServices } from '../../../src/enforcement/services.ts';
import { claimantOf } from '../../../src/ledger/lease-request.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixtures, leaseOf } from '../fixture.ts';
import { by } from '../recorded-leases.ts';

/** A lease that changes: judged by what it takes more, and counted from now for what has run. */
export function updating(fixtures: LedgerFixtures): void {
  it('charges what a lease takes more, and refunds what it takes less', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    const longer = leaseOf({ id: 'A', until: '2026-12-03 00:00' });
    expect((await fixture.update(leaseOf({ id: 'A' }), longer)).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['48']);
    // Blazar may refuse the change after our yes: what becomes cheaper is held until a request shows it.
    const shorter = leaseOf({ id: 'A', until: '2026-12-01 06:00' });
    await fixture.update(longer, shorter);
    expect(await fixture.taken()).toEqual(['48']);
    await fixture.update(shorter, { name: 'renamed' });
    expect(await fixture.taken()).toEqual(['6']);
    expect(await fixture.count()).toBe(1n);
  });

  it('learns the id of a lease from its update', async () => {
    const fixture = await fixtures({ budget: '100' });
    const { lease } = await fixture.create(leaseOf());
    await fixture.update(leaseOf({ id: 'A' }), { name: 'renamed' });
    const known = await fixture.rows('leases');
    expect(known.map(({ id, lease_id, name }) => [id, lease_id, name])).toEqual([
      [lease, fixture.idOf('A'), 'renamed'],
    ]);
    // By its id it is found whatever else it is called.
    await fixture.update(
      { ...leaseOf({ id: 'A' }), name: 'renamed again' },
      { end_date: '2026-12-02 01:00' },
    );
    expect(await fixture.taken()).toEqual(['25']);
  });

  it('updates the lease with the same end date, of two with one name', async () => {
    const fixture = await fixtures({ budget: '1000' });
    await fixture.create(leaseOf());
    const { lease } = await fixture.create(leaseOf({ until: '2026-12-03 00:00' }));
    const { lease: updated } = await fixture.update(leaseOf({ id: 'B', until: '2026-12-03 00:00' }), {});
    expect(updated).toBe(lease);
  });

  it('refuses more than is left, with the difference, and leaves no trace', async () => {
    const fixture = await fixtures({ budget: '30' });
    await fixture.create(leaseOf());
    const before = await fixture.everything();
    const { refusal } = await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-02 07:00' });
    expect(refusal?.message).toMatch(/^The change would cost 7 node-hours more; .* has 6 node-hours left/);
    expect(await fixture.everything()).toEqual(before);
    expect(
      (await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-02 06:00' })).refusal,
    ).toBeUndefined();
    expect(await fixture.taken()).toEqual(['30']);
  });

  it('moves a lease that has not started without a charge', async () => {
    const fixture = await fixtures({ budget: '24' });
    await fixture.create(leaseOf());
    const dates = { start_date: '2026-12-05 00:00', end_date: '2026-12-06 00:00' };
    expect((await fixture.update(leaseOf({ id: 'A' }), dates)).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['24']);
    const [row] = await fixture.rows('leases');
    expect([row?.starts_at, row?.ends_at]).toEqual([1_796_428_800_000_000n, 1_796_515_200_000_000n]);
  });

  it('counts a change of a running lease from now on', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    // Six hours with one host, and eighteen with three.
    fixture.now = '2026-12-01T06:00:00.999Z';
    await fixture.update(leaseOf({ id: 'A' }), leaseOf({ id: 'A', hosts: 3 }));
    expect(await fixture.taken()).toEqual(['60']);
    // Six more with three, and the last twelve with one again.
    fixture.now = '2026-12-01T12:00:00Z';
    await fixture.update(leaseOf({ id: 'A', hosts: 3 }), leaseOf({ id: 'A' }));
    expect(await fixture.taken()).toEqual(['60']);
    // What has run is not given back, however much earlier it is said to end.
    await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-01 12:00' });
    expect(await fixture.taken()).toEqual(['36']);
    await fixture.end(leaseOf({ id: 'A', until: '2026-12-01 12:00' }));
    expect(await fixture.taken()).toEqual(['24']);
  });

  it('neither refunds nor charges the second that has started', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    fixture.now = '2026-12-01T00:00:01.999999Z';
    await fixture.end(leaseOf({ id: 'A' }));
    const [entry] = (await fixture.rows('entries')).slice(-1);
    expect(entry?.delta).toBe(-86_399n * 1_000_000n);
  });

  it('records the same update once, however often it is sent, and one of those that are sent at once', async () => {
    const fixture = await fixtures({ budget: '48' });
    await fixture.create(leaseOf());
    fixture.now = '2026-12-01T06:00:00Z';
    const change = { end_date: '2026-12-03 00:00' };
    const all = await Promise.all(
      Array.from({ length: 5 }, () => fixture.update(leaseOf({ id: 'A' }), change)),
    );
    const refusals = all.flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal.message]));
    expect(refusals).toEqual(Array(4).fill(expect.stringMatching(/^Another change of this lease/)));
    fixture.now = '2026-12-01T06:00:05Z';
    expect((await fixture.update(leaseOf({ id: 'A' }), change)).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['48']);
    expect(await fixture.count()).toBe(1n);
  });

  it('allows a change at once after another that the request shows to be made', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    const first = await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-03 00:00' });
    const longer = leaseOf({ id: 'A', until: '2026-12-03 00:00' });
    const second = await fixture.update(longer, { end_date: '2026-12-03 12:00' });
    expect([first, second].map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
  });

  it('allows no other change for a minute after one of hosts that the request does not show', async () => {
    const fixture = await fixtures({ budget: '1000' });
    await fixture.create(leaseOf());
    fixture.now = '2026-12-01T06:00:00Z';
    await fixture.update(leaseOf({ id: 'A' }), leaseOf({ id: 'A', hosts: 3 }));
    const longer = { end_date: '2026-12-03 00:00' };
    fixture.now = '2026-12-01T06:00:59Z';
    const { refusal } = await fixture.update(leaseOf({ id: 'A' }), longer);
    expect(refusal?.message).toMatch(/^Another change of this lease/);
    fixture.now = '2026-12-01T06:01:00Z';
    expect((await fixture.update(leaseOf({ id: 'A' }), longer)).refusal).toBeUndefined();
    // The same after a change of dates.
    fixture.now = '2026-12-01T06:01:59Z';
    const grown = await fixture.update(leaseOf({ id: 'A' }), leaseOf({ id: 'A', hosts: 2 }));
    expect(grown.refusal?.message).toMatch(/^Another change of this lease/);
  });

  it('lets a lease shrink when its project is over the limit already, and not grow', async () => {
    const fixture = await fixtures({ budget: '100', mayOverdraw: true });
    await fixture.create(leaseOf());
    await fixture.create(leaseOf({ name: 'other' }));
    await fixture.give({ amount: '10' });
    const longer = await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-02 00:00:01' });
    expect(longer.refusal?.message).toMatch(/has 0 node-hours left/);
    expect((await fixture.update(leaseOf({ id: 'A' }), { name: 'renamed' })).refusal).toBeUndefined();
    expect(
      (await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-01 12:00' })).refusal,
    ).toBeUndefined();
    expect(await fixture.taken()).toEqual(['48']);
    await fixture.update(leaseOf({ id: 'A', until: '2026-12-01 12:00' }), {});
    expect(await fixture.taken()).toEqual(['36']);
  });

  it('records an unknown lease by its update, from now on, and judges it by what it takes more', async () => {
    const fixture = await fixtures({ budget: '10' });
    fixture.now = '2026-12-01T20:00:00Z';
    // Of 24 hours it has 4 before it; with 6 more it takes all 10.
    const longer = { end_date: '2026-12-02 06:00' };
    expect((await fixture.update(leaseOf({ id: 'A' }), longer)).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['10']);
    expect(await fixture.count()).toBe(1n);
  });

  it('refuses to let an unknown lease grow over the limit, and leaves no trace', async () => {
    const fixture = await fixtures({ budget: '10' });
    fixture.now = '2026-12-01T20:00:00Z';
    const before = await fixture.everything();
    const { refusal } = await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-02 06:00:01' });
    expect(refusal?.filter).toBe('UsageBudgetFilter');
    expect(await fixture.everything()).toEqual(before);
  });

  it.each([
    ['was noticed', true],
    ['was not noticed yet', false],
  ])('charges the whole extension of a lease whose end %s', async (_, isNoticed) => {
    const fixture = await fixtures({ budget: '30', most: 1 });
    await fixture.create(leaseOf({ id: 'A' }));
    fixture.now = '2026-12-02T01:00:00Z';
    if (isNoticed) {
      await fixture.end(leaseOf({ id: 'A' }));
    }
    // From its end on: nobody can tell that it was not there meanwhile.
    const long = await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-02 07:00' });
    expect(long.refusal?.message).toMatch(/would cost 7 node-hours more; .* has 6 node-hours left/);
    expect(
      (await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-02 06:00' })).refusal,
    ).toBeUndefined();
    expect(await fixture.taken()).toEqual(['30']);
    expect(await fixture.count()).toBe(1n);
  });

  it('judges an update of an ended lease as if it were new', async () => {
    const fixture = await fixtures({ budget: '24', most: 1 });
    await fixture.create(leaseOf({ id: 'A' }));
    await fixture.end(leaseOf({ id: 'A' }));
    await fixture.create(leaseOf({ id: 'B', name: 'other' }));
    const { refusal } = await fixture.update(leaseOf({ id: 'A' }), {});
    expect(refusal?.filter).toBe('MaxLeasesFilter');
    expect(await fixture.taken()).toEqual(['24']);
    expect(await fixture.count()).toBe(1n);
  });

  it('keeps a reservation that the update leaves out', async () => {
    const fixture = await fixtures({ budget: '1000' });
    const hosts = { id: 'r1', resource_type: 'physical:host', min: 1, max: 2 };
    const address = { id: 'r2', resource_type: 'physical:host', min: 1, max: 1 };
    const lease = { ...leaseOf({ id: 'A' }), reservations: [hosts, address] };
    await fixture.create(lease);
    expect(await fixture.taken()).toEqual(['72']);
    await fixture.update(lease, { reservations: [{ id: 'r2', max: 4 }] });
    expect(await fixture.taken()).toEqual(['144']);
  });

  it('keeps the charge of what becomes cheaper until it is confirmed, and refunds it at the end', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf({ hosts: 3 }));
    await fixture.update(leaseOf({ id: 'A', hosts: 3 }), leaseOf({ id: 'A', hosts: 1 }));
    expect(await fixture.taken()).toEqual(['72']);
    // Blazar has refused it: the lease is as it was, and is found as it was.
    fixture.now = '2026-12-01T06:00:00Z';
    await fixture.end(leaseOf({ id: 'A', hosts: 3 }));
    expect(await fixture.taken()).toEqual(['18']);
    expect(await fixture.count()).toBe(0n);
  });

  it('counts a lease as long as it may exist, whatever end was requested', async () => {
    const fixture = await fixtures({ budget: '100', most: 1 });
    await fixture.create(leaseOf({ id: 'A' }));
    await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-01 06:00' });
    fixture.now = '2026-12-01T12:00:00Z';
    expect((await fixture.create(leaseOf({ name: 'other' }))).refusal?.filter).toBe('MaxLeasesFilter');
    fixture.now = '2026-12-02T00:00:00Z';
    expect((await fixture.create(leaseOf({ until: '2026-12-03 00:00' }))).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['72']);
  });

  it('refuses what a change may leave when it fails half way: more hosts for the old duration', async () => {
    const fixture = await fixtures({ budget: '30' });
    await fixture.create(leaseOf({ id: 'A' }));
    // Four hours of five hosts would fit. A day of five hosts would not, and Blazar changes the hosts first.
    const change = leaseOf({ id: 'A', hosts: 5, until: '2026-12-01 04:00' });
    const { refusal } = await fixture.update(leaseOf({ id: 'A' }), change);
    expect(refusal?.message).toMatch(/would cost 96 node-hours more; .* has 6 node-hours left/);
    await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-01 04:00' });
    const shorter = leaseOf({ id: 'A', until: '2026-12-01 04:00' });
    expect((await fixture.update(shorter, change)).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['20']);
  });

  it('charges a running lease until the event that ends it, if a change that failed has moved only that', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    fixture.now = '2026-12-01T06:00:00Z';
    const { reservations = [], ...lease } = leaseOf({ id: 'A' });
    const running = { ...lease, reservations: reservations.map((one) => ({ ...one, status: 'active' })) };
    await fixture.update(running, { end_date: '2026-12-03 00:00' });
    const endingAt = (time: string) => ({
      ...running,
      events: [{ event_type: 'end_lease', status: 'UNDONE', time }],
    });
    await fixture.update(endingAt('2026-12-03T00:00:00'), { end_date: '2026-12-02 00:00' });
    expect(await fixture.taken()).toEqual(['48']);
    await fixture.update(endingAt('2026-12-02T00:00:00'), { end_date: '2026-12-02 00:00' });
    expect(await fixture.taken()).toEqual(['24']);
  });

  it('refuses what a change of a type may leave, at which Blazar fails: the reservations before it as requested', async () => {
    const fixture = await fixtures({ budget: '200' });
    const hosts = (id: string, max: number) => ({ id, resource_type: 'physical:host', min: 1, max });
    const address = (id: string) => ({ id, resource_type: 'virtual:floatingip', amount: 1 });
    const lease = { ...leaseOf({ id: 'A' }), reservations: [hosts('r1', 1), hosts('r2', 5), address('r3')] };
    await fixture.create(lease);
    const { refusal } = await fixture.update(lease, { reservations: [hosts('r1', 6), address('r2')] });
    expect(refusal?.message).toMatch(/would cost 120 node-hours more; .* has 56 node-hours left/);
  });

  it('ends the cheapest of leases that look alike', async () => {
    const fixture = await fixtures({ budget: '1000' });
    const hosts = (found: number) => ({
      ...leaseOf(),
      reservations: [
        {
          id: 'r1',
          resource_type: 'physical:host',
          min: 1,
          max: 4,
          allocations: Array.from({ length: found }, (_, index) => ({ id: String(index) })),
        },
      ],
    });
    for (const found of [4, 1, 2]) {
      await fixture.create(hosts(found));
    }
    expect(await fixture.taken()).toEqual(['168']);
    const taken: string[] = [];
    for (const id of ['A', 'B', 'C']) {
      await fixture.end({ ...hosts(4), id, name: 'renamed' });
      taken.push(...(await fixture.taken()));
    }
    expect(taken).toEqual(['144', '96', '0']);
  });

  it('refunds nothing for a lease with the same dates and other reservations', async () => {
    const fixture = await fixtures({ budget: '1000' });
    await fixture.create(leaseOf({ hosts: 2 }));
    await fixture.end(leaseOf({ id: 'A', hosts: 1 }));
    expect(await fixture.taken()).toEqual(['48']);
    const longer = { end_date: '2026-12-03 00:00' };
    await fixture.update(leaseOf({ id: 'B', hosts: 1 }), longer);
    expect(await fixture.taken()).toEqual(['96']);
    expect(await fixture.count()).toBe(2n);
  });

  it('recognizes a lease without an id as it was, and as it was requested', async () => {
    const fixture = await fixtures({ budget: '1000' });
    await fixture.create(leaseOf());
    const later = { from: '2026-12-02 00:00', until: '2026-12-03 00:00' };
    await fixture.update(leaseOf(), leaseOf(later));
    await fixture.update(leaseOf(), leaseOf(later));
    await fixture.update(leaseOf(later), leaseOf({ ...later, hosts: 2 }));
    expect(await fixture.rows('leases')).toHaveLength(1);
    await fixture.end(leaseOf({ ...later, hosts: 2 }));
    expect(await fixture.taken()).toEqual(['0']);
  });

  it('treats an id in another project as another lease', async () => {
    const one = await fixtures({ budget: '100' });
    const other = await fixtures({ budget: '100' });
    await one.create({ ...leaseOf(), id: 'same' });
    const request = { context: other.context(), lease: { ...leaseOf(), id: 'same' } };
    await other.chain.end(request, {});
    expect(await one.taken()).toEqual(['24']);
    const longer = { ...request, currentLease: request.lease, lease: { end_date: '2026-12-03 00:00' } };
    await other.chain.commit(longer, other.claimants, by('update'), NO_WAIT);
    expect([await one.taken(), await other.taken()]).toEqual([['24'], ['48']]);
  });

  it('charges the real owner of a lease whose id another user has requested before', async () => {
    const fixture = await fixtures({ mostPerUser: 1 });
    await fixture.create(leaseOf({ id: 'A' }), 'bob');
    await fixture.create(leaseOf({ id: 'A' }), 'alice');
    expect(await fixture.rows('leases')).toMatchObject([{ user_id: 'alice' }]);
    const count = (user: string) => fixture.balance(`max_leases/user/${user}`);
    expect([await count('alice'), await count('bob')]).toEqual([1n, 1n]);
    await fixture.update(leaseOf({ id: 'A' }), {}, 'alice');
    expect([await count('alice'), await count('bob')]).toEqual([1n, 0n]);
  });

  it('keeps the charge for removed instances until the end, since Blazar may not have removed them', async () => {
    const fixture = await fixtures({ mostPerUser: 9 });
    const filter = new UsageBudgetFilter(
      UsageBudgetFilter.options.parse({ usage_budget_rates: { 'virtual:instance': 1 } }) as never,
      { ...createSharedServices({}), ledger: fixture.chain, outbox: fixture.outbox, keystone: NO_KEYSTONE },
    );
    await fixture.give({ amount: '100' });
    const claimants = [claimantOf(filter, 'UsageBudgetFilter', false)];
    const lease = (amount: number) => ({
      ...leaseOf({ id: 'A' }),
      reservations: [{ id: 'r1', resource_type: 'virtual:instance', amount }],
    });
    const context = fixture.context();
    const commit = (request: object) =>
      fixture.chain.commit({ context, ...request } as never, claimants, by('update'), NO_WAIT);
    await commit({ lease: lease(3) });
    await commit({ currentLease: lease(3), lease: lease(1) });
    await commit({ currentLease: lease(1), lease: { name: 'renamed' } });
    expect(await fixture.taken()).toEqual(['72']);
    await fixture.chain.end({ context, lease: lease(1) }, {});
    expect(await fixture.taken()).toEqual(['0']);
  });
}
