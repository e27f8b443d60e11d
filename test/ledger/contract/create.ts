import { expect, it } from 'vitest';
import { allow, type Lease, reject } from '../../../src/index.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import { type Grounds, leaseOf } from '../ground.ts';

/** A lease that is new: recorded if it fits, once, or without any trace. */
export function creating(grounds: Grounds): void {
  it('charges a lease for all of its time when it is granted', async () => {
    const ground = await grounds({ budget: '100' });
    const recording = await ground.create(leaseOf({ hosts: 2 }));
    expect(recording.refusal).toBeUndefined();
    expect(await ground.taken()).toEqual(['48']);
    expect(await ground.count()).toBe(1n);
    await ground.verify();
  });

  it('says who charged what, when and why', async () => {
    const ground = await grounds({ budget: '100' });
    const { lease } = await ground.create(leaseOf());
    const entries = await ground.rows('entries');
    expect(entries.map(({ account, delta }) => [account.replace(/\d+$/, 'N'), delta])).toEqual([
      ['max_leases/project', 1n],
      ['max_leases/user/alice', 1n],
      ['max_leases/project/type/physical:host', 1n],
      ['max_leases/user/alice/type/physical:host', 1n],
      ['usage_budget/N', 86_400_000_000n],
    ]);
    for (const entry of entries) {
      expect(entry).toMatchObject({
        at: 1_795_251_630_000_000n,
        lease,
        operation: 'create',
        who: 'alice',
        request_id: 'req-1',
        reason: null,
      });
    }
  });

  it('takes the whole of a budget, and not a second more', async () => {
    const ground = await grounds({ budget: '24' });
    const more = await ground.create(leaseOf({ until: '2026-12-02 00:00:01' }));
    expect(more.refusal?.filter).toBe('UsageBudgetFilter');
    expect(more.refusal?.message).toMatch(
      /would cost 24\.0003 node-hours; project .* has 24 node-hours left/,
    );
    expect((await ground.create(leaseOf())).refusal).toBeUndefined();
    expect(await ground.taken()).toEqual(['24']);
    await ground.verify();
  });

  it('leaves no trace of a lease that is refused', async () => {
    const ground = await grounds({ budget: '30', most: 2 });
    await ground.create(leaseOf());
    const before = await ground.everything();
    for (const lease of [leaseOf({ name: 'dear' }), leaseOf({ name: 'dear', id: 'D' })]) {
      const { refusal, lease: row, undo } = await ground.create(lease);
      expect([refusal?.filter, row, undo]).toEqual(['UsageBudgetFilter', null, undefined]);
    }
    expect(await ground.everything()).toEqual(before);
  });

  it('leaves no trace of a check, whatever it says', async () => {
    const ground = await grounds({ budget: '30' });
    await ground.create(leaseOf());
    const before = await ground.everything();
    const asked = (lease: Lease) =>
      ground.chain.check(ground.budgetFilter, { context: ground.context(), lease }, {});
    expect(await asked(leaseOf({ name: 'short', until: '2026-12-01 06:00' }))).toEqual(allow());
    expect(await asked(leaseOf({ name: 'long' }))).toMatchObject({ allowed: false });
    expect(await asked(leaseOf())).toEqual(allow());
    expect(await ground.everything()).toEqual(before);
  });

  it('records the same request once, however often it is sent', async () => {
    const ground = await grounds({ budget: '24', most: 1 });
    const { lease } = await ground.create(leaseOf());
    const [entries, accounts] = [await ground.rows('entries'), await ground.rows('accounts')];
    expect(await ground.create(leaseOf())).toEqual({
      refusal: undefined,
      warnings: [],
      lease,
      undo: undefined,
    });
    // Other hosts may have been found for it meanwhile.
    const reservations = [
      { id: 'r1', resource_type: 'physical:host', min: 1, max: 1, allocations: [{ id: '7' }] },
    ];
    expect((await ground.create({ ...leaseOf(), reservations })).lease).toBe(lease);
    expect(await ground.rows('entries')).toEqual(entries);
    expect(await ground.rows('accounts')).toEqual(accounts);
    expect(await ground.rows('leases')).toHaveLength(1);
  });

  it('records the same request once when it is sent twenty times at once', async () => {
    const ground = await grounds({ budget: '24', most: 1 });
    const recordings = await Promise.all(Array.from({ length: 20 }, () => ground.create(leaseOf())));
    expect(new Set(recordings.map(({ lease }) => lease)).size).toBe(1);
    expect(recordings.filter(({ undo }) => undo !== undefined)).toHaveLength(1);
    expect(await ground.taken()).toEqual(['24']);
    expect(await ground.rows('leases')).toHaveLength(1);
    await ground.verify();
  });

  it('counts both of two leases of one name and one start that differ in anything else', async () => {
    const ground = await grounds({ budget: '1000' });
    await ground.create(leaseOf());
    await ground.create(leaseOf({ until: '2026-12-03 00:00' }));
    await ground.create(leaseOf({ hosts: 2 }));
    expect(await ground.count()).toBe(3n);
    expect(await ground.taken()).toEqual(['120']);
    await ground.verify();
  });

  it.each([
    ['name', leaseOf({ name: 'other' }), 'alice'],
    ['start', leaseOf({ from: '2026-12-01 00:00:01' }), 'alice'],
    ['user', leaseOf(), 'bob'],
  ])('takes a request with another %s for another lease', async (_, lease, user) => {
    const ground = await grounds({ budget: '1000' });
    await ground.create(leaseOf());
    await ground.create(lease, user);
    expect(await ground.count()).toBe(2n);
  });

  it('takes a request from another region for another lease', async () => {
    const ground = await grounds();
    for (const region of ['north', 'south', 'north']) {
      const request = { context: { ...ground.context(), region_name: region }, lease: leaseOf() };
      await ground.chain.commit(request, ground.claimants, AUTHOR, NO_WAIT);
    }
    expect(await ground.count()).toBe(2n);
  });

  it('learns the id of a lease when the same request brings it', async () => {
    const ground = await grounds({ budget: '24' });
    const { lease } = await ground.create(leaseOf());
    for (const _ of [1, 2]) {
      expect((await ground.create(leaseOf({ id: 'A' }))).lease).toBe(lease);
    }
    expect((await ground.rows('leases')).map(({ lease_id }) => lease_id)).toEqual([ground.idOf('A')]);
    expect(await ground.taken()).toEqual(['24']);
    // Another lease that is called the same.
    expect((await ground.create(leaseOf({ id: 'B' }))).refusal?.filter).toBe('UsageBudgetFilter');
    await ground.verify();
  });

  it('records what a filter that is tried claims, and only warns of its refusals', async () => {
    const ground = await grounds({ budget: '10', most: 0, audit: true });
    const { refusal, warnings } = await ground.create(leaseOf());
    expect(refusal).toBeUndefined();
    expect(warnings.map(({ filter }) => filter)).toEqual(['MaxLeasesFilter', 'UsageBudgetFilter']);
    expect(await ground.taken()).toEqual(['24']);
    expect(await ground.count()).toBe(1n);
    await ground.verify({ overdrawn: true });
  });

  it('refuses a lease when a filter can not tell what it claims', async () => {
    const ground = await grounds();
    const before = await ground.everything();
    const claimant = { name: 'Unsure', audit: false, claims: () => reject('It does not say how many.') };
    const request = { context: ground.context(), lease: leaseOf() };
    const { refusal } = await ground.chain.commit(request, [claimant], AUTHOR, NO_WAIT);
    expect(refusal).toMatchObject({ filter: 'Unsure', message: 'It does not say how many.' });
    expect(await ground.everything()).toEqual(before);
  });

  it('writes nothing when a filter throws', async () => {
    const ground = await grounds();
    const before = await ground.everything();
    const claimant = {
      name: 'Broken',
      audit: false,
      claims: () => {
        throw new TypeError('a factor that is none');
      },
    };
    const request = { context: ground.context(), lease: leaseOf() };
    await expect(ground.chain.commit(request, [claimant], AUTHOR, NO_WAIT)).rejects.toThrow(
      'a factor that is none',
    );
    expect(await ground.everything()).toEqual(before);
    expect((await ground.create(leaseOf())).refusal).toBeUndefined();
  });
}

const AUTHOR = { operation: 'create', who: 'alice', requestId: null, reason: null } as const;
