import { expect, it } from 'vitest';
import { type LedgerFixtures, leaseOf } from '../fixture.ts';

/** A lease that ends, by an on-end or by its date, and a recording that is taken back. */
export function ending(fixtures: LedgerFixtures): void {
  it('gives back what a lease has not used when it ends early', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf({ hosts: 2 }));
    fixture.now = '2026-12-01T06:00:00Z';
    await fixture.end(leaseOf({ id: 'A', hosts: 2 }));
    expect(await fixture.taken()).toEqual(['12']);
    expect(await fixture.count()).toBe(0n);
    const [row] = await fixture.rows('leases');
    expect(row).toMatchObject({
      state: 'ended',
      lease_id: fixture.idOf('A'),
      ended_at: 1_796_104_800_000_000n,
    });
  });

  it('ignores an end that is reported again', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    await Promise.all([1, 2, 3, 4].map(() => fixture.end(leaseOf({ id: 'A' }))));
    const before = await fixture.everything();
    await fixture.end(leaseOf({ id: 'A' }));
    expect(await fixture.everything()).toEqual(before);
    expect(await fixture.taken()).toEqual(['0']);
    expect(await fixture.count()).toBe(0n);
  });

  it('ignores the end of a lease that was never recorded', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    const before = await fixture.everything();
    await fixture.end(leaseOf({ id: 'A', hosts: 2 }));
    await fixture.end(leaseOf({ id: 'A', until: '2026-12-03 00:00' }));
    await fixture.end({ id: 'A' });
    await fixture.end({ id: 'A', start_date: '2026-12-01 00:00', end_date: '2026-12-02 00:00' });
    await fixture.end(leaseOf({ id: 'A' }), 'bob');
    expect(await fixture.everything()).toEqual(before);
  });

  it('ends a lease at its end date, whether its end is reported, late or never', async () => {
    const fixture = await fixtures({ budget: '100', most: 2 });
    await fixture.create(leaseOf({ name: 'never' }));
    await fixture.create(leaseOf({ name: 'late' }));
    fixture.now = '2026-12-01T23:59:59.999Z';
    const next = leaseOf({ name: 'next', from: '2026-12-02 00:00', until: '2026-12-02 01:00' });
    expect((await fixture.create(next)).refusal?.filter).toBe('MaxLeasesFilter');
    fixture.now = '2026-12-02T00:00:00Z';
    expect((await fixture.create(next)).refusal).toBeUndefined();
    expect(await fixture.count()).toBe(1n);
    expect(await fixture.taken()).toEqual(['49']);
    const ended = await fixture.rows('entries');
    expect(ended.filter(({ operation }) => operation === 'end-date')).toHaveLength(8);
    const before = await fixture.everything();
    await fixture.end(leaseOf({ id: 'L', name: 'late' }));
    expect(await fixture.everything()).toEqual(before);
  });

  it('gives back no usage when the end is reported after the end date', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    fixture.now = '2026-12-05T00:00:00Z';
    await fixture.end(leaseOf({ id: 'A' }));
    expect(await fixture.taken()).toEqual(['24']);
    expect(await fixture.count()).toBe(0n);
    const [row] = await fixture.rows('leases');
    expect(row?.ended_at).toBe(row?.ends_at);
  });

  it('allows a check as soon as another lease is past its end, before that is noticed', async () => {
    const fixture = await fixtures({ most: 1 });
    await fixture.create(leaseOf());
    fixture.now = '2026-12-02T00:00:00Z';
    const before = await fixture.everything();
    const next = leaseOf({ name: 'next', from: '2026-12-03 00:00', until: '2026-12-04 00:00' });
    const request = { context: fixture.context(), lease: next };
    expect(await fixture.chain.check(fixture.countFilter, request, {})).toEqual({ allowed: true });
    expect(await fixture.everything()).toEqual(before);
  });

  it('takes a new lease back as if it had never existed', async () => {
    const fixture = await fixtures({ budget: '24' });
    const { undo } = await fixture.create(leaseOf());
    expect(await fixture.takeBack(undo)).toBe(true);
    expect(await fixture.taken()).toEqual(['0']);
    expect(await fixture.count()).toBe(0n);
    expect(await fixture.takeBack(undo)).toBe(false);
    expect((await fixture.create(leaseOf())).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['24']);
  });

  it('takes an update back and restores exactly what was before', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf({ id: 'A' }));
    fixture.now = '2026-12-01T06:00:00Z';
    const [before] = await fixture.rows('leases');
    const balances = byName(await fixture.rows('accounts'));
    const { undo } = await fixture.update(leaseOf({ id: 'A' }), { ...leaseOf({ hosts: 3 }), name: 'other' });
    fixture.now = '2026-12-01T07:00:00Z';
    expect(await fixture.takeBack(undo)).toBe(true);
    expect(await fixture.rows('leases')).toEqual([{ ...before, revision: expect.any(BigInt) }]);
    expect(byName(await fixture.rows('accounts'))).toEqual(balances);
  });

  it('charges a lease again when its id comes back after it was taken back', async () => {
    const fixture = await fixtures({ budget: '24', most: 1 });
    const { undo } = await fixture.create(leaseOf({ id: 'A' }));
    await fixture.takeBack(undo);
    expect((await fixture.create(leaseOf({ id: 'A' }))).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['24']);
    expect(await fixture.count()).toBe(1n);
    expect((await fixture.create(leaseOf({ id: 'B' }))).refusal?.filter).toBe('MaxLeasesFilter');
  });

  it.each([
    ['changed', { end_date: '2026-12-03 00:00' }, ['48']],
    ['requested again unchanged', {}, ['24']],
  ])('takes nothing back when the lease has been %s since', async (_, change, taken) => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf({ id: 'A', hosts: 2 }));
    const { undo } = await fixture.update(leaseOf({ id: 'A', hosts: 2 }), leaseOf({ id: 'A' }));
    await fixture.update(leaseOf({ id: 'A' }), change);
    expect(await fixture.takeBack(undo)).toBe(false);
    expect(await fixture.taken()).toEqual(taken);
  });

  it('takes no lease back that was granted again to the same request', async () => {
    const fixture = await fixtures({ budget: '100' });
    const { undo } = await fixture.create(leaseOf(), undefined, { key: 'k1' });
    await fixture.create(leaseOf(), undefined, { key: 'k1' });
    expect(await fixture.takeBack(undo)).toBe(false);
    expect(await fixture.taken()).toEqual(['24']);
  });

  it('takes nothing back when the lease has ended since', async () => {
    const fixture = await fixtures({ budget: '100' });
    const { undo } = await fixture.create(leaseOf({ id: 'A' }));
    await fixture.end(leaseOf({ id: 'A' }));
    expect(await fixture.takeBack(undo)).toBe(false);
    expect(await fixture.taken()).toEqual(['0']);
  });

  it('ends a lease once when several filters report its end, and no lease that looks like it', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf());
    await fixture.create(leaseOf());
    const call = {};
    const request = { context: fixture.context(), lease: leaseOf() };
    await Promise.all([fixture.chain.end(request, call), fixture.chain.end(request, call)]);
    expect(await fixture.count()).toBe(1n);
    expect(await fixture.taken()).toEqual(['24']);
  });
}

function byName(accounts: readonly { readonly name: string; readonly balance: bigint }[]) {
  return new Map(accounts.map(({ name, balance }) => [name, balance]));
}
