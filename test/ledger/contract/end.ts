import { expect, it } from 'vitest';
import { type Grounds, leaseOf } from '../ground.ts';

/** A lease that ends, by an on-end or by its date, and a recording that is taken back. */
export function ending(grounds: Grounds): void {
  it('gives back what a lease has not used when it ends early', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.create(leaseOf({ hosts: 2 }));
    ground.now = '2026-12-01T06:00:00Z';
    await ground.end(leaseOf({ id: 'A', hosts: 2 }));
    expect(await ground.taken()).toEqual(['12']);
    expect(await ground.count()).toBe(0n);
    const [row] = await ground.rows('leases');
    expect(row).toMatchObject({
      state: 'ended',
      lease_id: ground.idOf('A'),
      ended_at: 1_796_104_800_000_000n,
    });
  });

  it('ignores an end that is reported again', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.create(leaseOf());
    await Promise.all([1, 2, 3, 4].map(() => ground.end(leaseOf({ id: 'A' }))));
    const before = await ground.everything();
    await ground.end(leaseOf({ id: 'A' }));
    expect(await ground.everything()).toEqual(before);
    expect(await ground.taken()).toEqual(['0']);
    expect(await ground.count()).toBe(0n);
  });

  it('ignores the end of a lease that was never recorded', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.create(leaseOf());
    const before = await ground.everything();
    await ground.end(leaseOf({ id: 'A', hosts: 2 }));
    await ground.end(leaseOf({ id: 'A', until: '2026-12-03 00:00' }));
    await ground.end({ id: 'A' });
    await ground.end({ id: 'A', start_date: '2026-12-01 00:00', end_date: '2026-12-02 00:00' });
    await ground.end(leaseOf({ id: 'A' }), 'bob');
    expect(await ground.everything()).toEqual(before);
  });

  it('ends a lease at its end date, whether its end is reported, late or never', async () => {
    const ground = await grounds({ budget: '100', most: 2 });
    await ground.create(leaseOf({ name: 'never' }));
    await ground.create(leaseOf({ name: 'late' }));
    ground.now = '2026-12-01T23:59:59.999Z';
    const next = leaseOf({ name: 'next', from: '2026-12-02 00:00', until: '2026-12-02 01:00' });
    expect((await ground.create(next)).refusal?.filter).toBe('MaxLeasesFilter');
    ground.now = '2026-12-02T00:00:00Z';
    expect((await ground.create(next)).refusal).toBeUndefined();
    expect(await ground.count()).toBe(1n);
    expect(await ground.taken()).toEqual(['49']);
    const ended = await ground.rows('entries');
    expect(ended.filter(({ operation }) => operation === 'end-date')).toHaveLength(8);
    const before = await ground.everything();
    await ground.end(leaseOf({ id: 'L', name: 'late' }));
    expect(await ground.everything()).toEqual(before);
  });

  it('gives back no usage when the end is reported after the end date', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.create(leaseOf());
    ground.now = '2026-12-05T00:00:00Z';
    await ground.end(leaseOf({ id: 'A' }));
    expect(await ground.taken()).toEqual(['24']);
    expect(await ground.count()).toBe(0n);
    const [row] = await ground.rows('leases');
    expect(row?.ended_at).toBe(row?.ends_at);
  });

  it('allows a check as soon as another lease is past its end, before that is noticed', async () => {
    const ground = await grounds({ most: 1 });
    await ground.create(leaseOf());
    ground.now = '2026-12-02T00:00:00Z';
    const before = await ground.everything();
    const next = leaseOf({ name: 'next', from: '2026-12-03 00:00', until: '2026-12-04 00:00' });
    const request = { context: ground.context(), lease: next };
    expect(await ground.chain.check(ground.countFilter, request, {})).toEqual({ allowed: true });
    expect(await ground.everything()).toEqual(before);
  });

  it('takes a new lease back as if it had never existed', async () => {
    const ground = await grounds({ budget: '24' });
    const { undo } = await ground.create(leaseOf());
    expect(await ground.takeBack(undo)).toBe(true);
    expect(await ground.taken()).toEqual(['0']);
    expect(await ground.count()).toBe(0n);
    expect(await ground.takeBack(undo)).toBe(false);
    expect((await ground.create(leaseOf())).refusal).toBeUndefined();
    expect(await ground.taken()).toEqual(['24']);
  });

  it('takes an update back and restores exactly what was before', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.create(leaseOf({ id: 'A' }));
    ground.now = '2026-12-01T06:00:00Z';
    const [before] = await ground.rows('leases');
    const balances = byName(await ground.rows('accounts'));
    const { undo } = await ground.update(leaseOf({ id: 'A' }), { ...leaseOf({ hosts: 3 }), name: 'other' });
    ground.now = '2026-12-01T07:00:00Z';
    expect(await ground.takeBack(undo)).toBe(true);
    expect(await ground.rows('leases')).toEqual([{ ...before, revision: expect.any(BigInt) }]);
    expect(byName(await ground.rows('accounts'))).toEqual(balances);
  });

  it('charges a lease again when its id comes back after it was taken back', async () => {
    const ground = await grounds({ budget: '24', most: 1 });
    const { undo } = await ground.create(leaseOf({ id: 'A' }));
    await ground.takeBack(undo);
    expect((await ground.create(leaseOf({ id: 'A' }))).refusal).toBeUndefined();
    expect(await ground.taken()).toEqual(['24']);
    expect(await ground.count()).toBe(1n);
    expect((await ground.create(leaseOf({ id: 'B' }))).refusal?.filter).toBe('MaxLeasesFilter');
  });

  it.each([
    ['changed', { end_date: '2026-12-03 00:00' }, ['48']],
    ['requested again unchanged', {}, ['24']],
  ])('takes nothing back when the lease has been %s since', async (_, change, taken) => {
    const ground = await grounds({ budget: '100' });
    await ground.create(leaseOf({ id: 'A', hosts: 2 }));
    const { undo } = await ground.update(leaseOf({ id: 'A', hosts: 2 }), leaseOf({ id: 'A' }));
    await ground.update(leaseOf({ id: 'A' }), change);
    expect(await ground.takeBack(undo)).toBe(false);
    expect(await ground.taken()).toEqual(taken);
  });

  it('takes no lease back that was granted again to the same request', async () => {
    const ground = await grounds({ budget: '100' });
    const { undo } = await ground.create(leaseOf(), undefined, { key: 'k1' });
    await ground.create(leaseOf(), undefined, { key: 'k1' });
    expect(await ground.takeBack(undo)).toBe(false);
    expect(await ground.taken()).toEqual(['24']);
  });

  it('takes nothing back when the lease has ended since', async () => {
    const ground = await grounds({ budget: '100' });
    const { undo } = await ground.create(leaseOf({ id: 'A' }));
    await ground.end(leaseOf({ id: 'A' }));
    expect(await ground.takeBack(undo)).toBe(false);
    expect(await ground.taken()).toEqual(['0']);
  });

  it('ends a lease once when several filters report its end, and no lease that looks like it', async () => {
    const ground = await grounds({ budget: '100' });
    await ground.create(leaseOf());
    await ground.create(leaseOf());
    const call = {};
    const request = { context: ground.context(), lease: leaseOf() };
    await Promise.all([ground.chain.end(request, call), ground.chain.end(request, call)]);
    expect(await ground.count()).toBe(1n);
    expect(await ground.taken()).toEqual(['24']);
  });
}

function byName(accounts: readonly { readonly name: string; readonly balance: bigint }[]) {
  return new Map(accounts.map(({ name, balance }) => [name, balance]));
}
