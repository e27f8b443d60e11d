import { expect, it } from 'vitest';
import { RequestCall } from '../../../src/enforcement/chain/hook.ts';
import { allow, type Lease, reject } from '../../../src/index.ts';
import { NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixtures, leaseOf } from '../fixture.ts';
import { by } from '../recorded-leases.ts';

/** A lease that is new: recorded if it fits, once, or without any trace. */
export function creating(fixtures: LedgerFixtures): void {
  it('records who charged what, when and why', async () => {
    const fixture = await fixtures({ budget: '100' });
    const { lease } = await fixture.create(leaseOf());
    const entries = await fixture.rows('entries');
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

  it('grants a lease that takes the whole budget, and refuses one second more', async () => {
    const fixture = await fixtures({ budget: '24' });
    const more = await fixture.create(leaseOf({ until: '2026-12-02 00:00:01' }));
    expect(more.refusal?.filter).toBe('UsageBudgetFilter');
    expect(more.refusal?.message).toMatch(
      /would cost 24\.0003 node-hours; project .* has 24 node-hours left/,
    );
    expect((await fixture.create(leaseOf())).refusal).toBeUndefined();
    expect(await fixture.taken()).toEqual(['24']);
  });

  it('leaves no trace of a refused lease', async () => {
    const fixture = await fixtures({ budget: '30', most: 2 });
    await fixture.create(leaseOf());
    const before = await fixture.everything();
    for (const lease of [leaseOf({ name: 'dear' }), leaseOf({ name: 'dear', id: 'D' })]) {
      const { refusal, lease: row, undo } = await fixture.create(lease);
      expect([refusal?.filter, row, undo]).toEqual(['UsageBudgetFilter', null, undefined]);
    }
    expect(await fixture.everything()).toEqual(before);
  });

  it('leaves no trace of a check, whatever it answers', async () => {
    const fixture = await fixtures({ budget: '30' });
    await fixture.create(leaseOf());
    const before = await fixture.everything();
    const asked = (lease: Lease) =>
      fixture.chain.check(fixture.budgetFilter, { context: fixture.context(), lease }, {});
    expect(await asked(leaseOf({ name: 'short', until: '2026-12-01 06:00' }))).toEqual(allow());
    expect(await asked(leaseOf({ name: 'long' }))).toMatchObject({ allowed: false });
    expect(await asked(leaseOf())).toMatchObject({ allowed: false });
    expect(await fixture.everything()).toEqual(before);
  });

  it('treats requests that look alike as different leases', async () => {
    const fixture = await fixtures({ budget: '100', most: 9 });
    const recordings = await Promise.all([1, 2, 3, 4, 5, 6].map(() => fixture.create(leaseOf())));
    expect(recordings.filter(({ refusal }) => refusal === undefined)).toHaveLength(4);
    expect(await fixture.taken()).toEqual(['96']);
    expect(await fixture.count()).toBe(4n);
  });

  it('records a request that is sent again with its key once, and allows checking it', async () => {
    const fixture = await fixtures({ budget: '24', most: 1 });
    const { lease } = await fixture.create(leaseOf(), undefined, { key: 'k1' });
    const entries = await fixture.rows('entries');
    const accounts = await fixture.rows('accounts');
    expect(await fixture.create(leaseOf(), undefined, { key: 'k1' })).toEqual({
      refusal: undefined,
      warnings: [],
      lease,
      undo: undefined,
    });
    const context = fixture.context();
    const call = new RequestCall(NO_WAIT, 'k1', [context, leaseOf()]);
    const checked = await fixture.chain.check(fixture.budgetFilter, { context, lease: leaseOf() }, call);
    expect(checked).toEqual(allow());
    expect(await fixture.rows('entries')).toEqual(entries);
    expect(await fixture.rows('accounts')).toEqual(accounts);
    expect(await fixture.rows('leases')).toHaveLength(1);
  });

  it('records a request that is sent twenty times at once with its key once', async () => {
    const fixture = await fixtures({ budget: '24', most: 1 });
    const recordings = await Promise.all(
      Array.from({ length: 20 }, () => fixture.create(leaseOf(), undefined, { key: 'k1' })),
    );
    expect(new Set(recordings.map(({ lease }) => lease)).size).toBe(1);
    expect(recordings.filter(({ undo }) => undo !== undefined)).toHaveLength(1);
    expect(await fixture.taken()).toEqual(['24']);
    expect(await fixture.rows('leases')).toHaveLength(1);
  });

  it.each([
    ['another key', leaseOf(), 'alice', { key: 'k2' }],
    ['no key', leaseOf(), 'alice', {}],
    ['the key and another name', leaseOf({ name: 'other' }), 'alice', { key: 'k1' }],
    ['the key and other hosts', leaseOf({ hosts: 2 }), 'alice', { key: 'k1' }],
    ['the key of another user', leaseOf(), 'bob', { key: 'k1' }],
    ['the key in another region', leaseOf(), 'alice', { key: 'k1', region: 'south' }],
  ])('treats a request with %s as another lease', async (_, lease, user, how) => {
    const fixture = await fixtures({ budget: '1000' });
    await fixture.create(leaseOf(), undefined, { key: 'k1' });
    const other = await fixture.create(lease, user, how);
    expect(await fixture.count()).toBe(2n);
    // And that one once.
    if ('key' in how) {
      expect((await fixture.create(lease, user, how)).lease).toBe(other.lease);
    }
  });

  it('accepts the key of a lease that has ended or was taken back for a new lease', async () => {
    const fixture = await fixtures({ budget: '24' });
    const { undo } = await fixture.create(leaseOf(), undefined, { key: 'k1' });
    await fixture.takeBack(undo);
    expect(await fixture.taken()).toEqual(['0']);
    await fixture.create(leaseOf({ id: 'A' }), undefined, { key: 'k1' });
    expect(await fixture.taken()).toEqual(['24']);
    await fixture.end(leaseOf({ id: 'A' }));
    await fixture.create(leaseOf(), undefined, { key: 'k1' });
    expect(await fixture.taken()).toEqual(['24']);
    expect((await fixture.create(leaseOf(), undefined, { key: 'k2' })).refusal?.filter).toBe(
      'UsageBudgetFilter',
    );
  });

  it('treats a region that is null, empty or missing as the same, and any other as different', async () => {
    const fixture = await fixtures({ budget: '1000' });
    for (const region of [undefined, null, '']) {
      await fixture.create(leaseOf({ id: 'A' }), undefined, region === undefined ? {} : { region });
    }
    expect(await fixture.count()).toBe(1n);
    for (const region of ['north', 'North', 'n\u00f6rd', 'no\u0308rd', 'nord', 'n\u043erd']) {
      await fixture.create(leaseOf({ id: 'A' }), undefined, { region });
    }
    expect(await fixture.count()).toBe(7n);
    await fixture.end(leaseOf({ id: 'A' }), undefined, 'no\u0308rd');
    expect((await fixture.rows('leases')).filter(({ state }) => state === 'ended')).toMatchObject([
      { region: 'no\u0308rd' },
    ]);
  });

  it.each([
    ['composed and decomposed', 'caf\u00e9', 'cafe\u0301'],
    ['Latin and Cyrillic', 'cafe', 'c\u0430fe'],
    ['with and without a joiner', 'cafe', 'ca\u200dfe'],
    ['large and small', 'cafe', 'CAFE'],
    ['with and without a blank behind', 'cafe', 'cafe '],
    ['of full and half width', 'cafe', '\uff43afe'],
  ])('treats ids, users and projects %s as different', async (_, one, other) => {
    const first = await fixtures({ mostPerUser: 1, projectId: `${Math.random()}${one}` });
    const second = await fixtures({ mostPerUser: 1, projectId: first.project.replace(one, other) });
    for (const fixture of [first, second]) {
      for (const user of [one, other]) {
        expect((await fixture.create(leaseOf({ id: `${user}1` }), user)).refusal).toBeUndefined();
        expect((await fixture.create(leaseOf({ id: `${user}2` }), user)).refusal?.filter).toBe(
          'MaxLeasesFilter',
        );
      }
      await fixture.end(leaseOf({ id: `${one}1` }), one);
      const leases = await fixture.rows('leases');
      const states = [one, other].map((user) => [
        user,
        leases.find(({ user_id }) => user_id === user)?.state,
      ]);
      expect(states).toEqual([
        [one, 'ended'],
        [other, 'open'],
      ]);
    }
  });

  it('learns the id of a lease that was recorded without one, once for each', async () => {
    const fixture = await fixtures({ budget: '48' });
    const recorded = [await fixture.create(leaseOf()), await fixture.create(leaseOf())];
    const adopted: (bigint | null)[] = [];
    for (const id of ['A', 'B', 'A', 'B']) {
      adopted.push((await fixture.adopt(leaseOf({ id }))).lease);
    }
    const rows = recorded.map(({ lease }) => lease);
    expect(adopted).toEqual([...rows, ...rows]);
    expect((await fixture.rows('leases')).map(({ lease_id }) => lease_id)).toEqual([
      fixture.idOf('A'),
      fixture.idOf('B'),
    ]);
    expect(await fixture.taken()).toEqual(['48']);
    expect((await fixture.adopt(leaseOf({ id: 'C' }))).refusal?.filter).toBe('UsageBudgetFilter');
  });

  it('treats a check with an id as a new lease: Blazar passes on ids that users choose', async () => {
    const fixture = await fixtures({ budget: '24' });
    await fixture.create(leaseOf());
    expect((await fixture.create(leaseOf({ id: 'chosen' }))).refusal?.filter).toBe('UsageBudgetFilter');
  });

  it('judges a lease with a known id by what it takes more, and keeps the most expensive', async () => {
    const fixture = await fixtures({ budget: '60' });
    const { lease } = await fixture.create(leaseOf({ id: 'A' }));
    expect(await fixture.create(leaseOf({ id: 'A' }))).toMatchObject({ lease, undo: undefined });
    expect((await fixture.create(leaseOf({ id: 'A', hosts: 3 }))).refusal?.message).toMatch(/would cost 48 /);
    expect((await fixture.create(leaseOf({ id: 'A', hosts: 2 }))).lease).toBe(lease);
    expect(await fixture.taken()).toEqual(['48']);
    expect((await fixture.create(leaseOf({ id: 'A', until: '2026-12-01 01:00' }))).lease).toBe(lease);
    expect(await fixture.taken()).toEqual(['48']);
    expect(await fixture.count()).toBe(1n);
    await fixture.end(leaseOf({ id: 'A' }));
    expect(await fixture.taken()).toEqual(['0']);
    expect(await fixture.count()).toBe(0n);
  });

  it('charges a lease in addition to what an earlier one with its id has used, whose end was not reported', async () => {
    const fixture = await fixtures({ budget: '100' });
    await fixture.create(leaseOf({ id: 'A' }));
    fixture.now = '2026-12-01T06:00:00Z';
    // The same once more is a repetition.
    await fixture.create(leaseOf({ id: 'A' }));
    expect(await fixture.taken()).toEqual(['24']);
    await fixture.create(leaseOf({ id: 'A', from: '2026-12-01 06:00', until: '2026-12-02 06:00' }));
    expect(await fixture.taken()).toEqual(['30']);
    await fixture.end(leaseOf({ id: 'A' }));
    expect(await fixture.taken()).toEqual(['6']);
  });

  it('refuses a lease whose id was requested in too many ways', async () => {
    const fixture = await fixtures({ budget: '1000' });
    const recordings = [];
    for (let hour = 1; hour <= 20; hour += 1) {
      const until = `2026-12-01 ${String(hour).padStart(2, '0')}:00`;
      recordings.push(await fixture.create(leaseOf({ id: 'A', until })));
    }
    expect(recordings.filter(({ refusal }) => refusal === undefined)).toHaveLength(16);
    expect(recordings.at(-1)?.refusal?.message).toMatch(/asked for in 16 other ways/);
  });

  it('records the claims of an audited filter, and only warns of its refusals', async () => {
    const fixture = await fixtures({ budget: '10', most: 0, audit: true, mayOverdraw: true });
    const { refusal, warnings } = await fixture.create(leaseOf());
    expect(refusal).toBeUndefined();
    expect(warnings.map(({ filter }) => filter)).toEqual(['MaxLeasesFilter', 'UsageBudgetFilter']);
    expect(await fixture.taken()).toEqual(['24']);
    expect(await fixture.count()).toBe(1n);
  });

  it('refuses a lease when a filter cannot tell what it claims', async () => {
    const fixture = await fixtures();
    const before = await fixture.everything();
    const claimant = { name: 'Unsure', audit: false, claims: () => reject('It does not say how many.') };
    const request = { context: fixture.context(), lease: leaseOf() };
    const { refusal } = await fixture.chain.commit(request, [claimant], by('create'), NO_WAIT);
    expect(refusal).toMatchObject({ filter: 'Unsure', message: 'It does not say how many.' });
    expect(await fixture.everything()).toEqual(before);
  });

  it('writes nothing when a filter throws', async () => {
    const fixture = await fixtures();
    const before = await fixture.everything();
    const claimant = {
      name: 'Broken',
      audit: false,
      claims: () => {
        throw new TypeError('a factor that is none');
      },
    };
    const request = { context: fixture.context(), lease: leaseOf() };
    await expect(fixture.chain.commit(request, [claimant], by('create'), NO_WAIT)).rejects.toThrow(
      'a factor that is none',
    );
    expect(await fixture.everything()).toEqual(before);
    expect((await fixture.create(leaseOf())).refusal).toBeUndefined();
  });
}
