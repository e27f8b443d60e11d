/** Reconciliation with what Blazar has, for leases in every state. Against a Blazar of the tests, over HTTP. */
import { describe, expect, it } from 'vitest';
import { toInstant } from '../../../src/lease/dates.ts';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { RowAges } from '../../../src/ledger/reconciliation/reconcile.ts';
import { usageOf } from '../../../src/ledger/reports/usage.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { headerKeystone } from '../../peers/header-keystone.ts';
import { giveBudget, NO_WAIT } from '../../support/ledgers.ts';
import { type Answer, type Listed, NOW, RecordedBlazar, recorded } from './recorded-blazar.ts';

/** What the recorded leases cost: 2 hosts for 24 h; 3 hosts of at most 9, and 3 instances, for 12 h. */
const TRUE_COST = 2 * 24 + 3 * 12 + 0.3 * 12;
const AT_MOST = 2 * 24 + 9 * 12 + 0.3 * 12;
const LONG_AGO = '2026-11-22T08:00:00Z';

async function followedWorld(): Promise<RecordedBlazar> {
  const blazar = await RecordedBlazar.asked();
  await blazar.round();
  return blazar;
}

describe('a round', () => {
  it('gives ids to leases, and charges what Blazar has given', async () => {
    const blazar = await RecordedBlazar.asked();
    expect(await blazar.taken()).toBe(AT_MOST);
    const { followed, changes, kept } = await blazar.round();
    expect(followed).toMatchObject({ kind: 'done', listed: 3, doubts: [] });
    expect(changes.sort()).toEqual([
      'corrected #2: Blazar shows what it was given',
      'identified #1: null',
      'identified #3: null',
    ]);
    expect(kept).toEqual([]);
    expect(await blazar.taken()).toBe(TRUE_COST);
    expect((await blazar.open()).map(({ lease_id }) => lease_id)).toEqual(blazar.leases.map(({ id }) => id));
    expect((await blazar.round()).changes).toEqual([]);
    expect((await verifyLedger(blazar.ledger, NO_WAIT)).differences).toEqual([]);
  });

  it('releases a lease that Blazar could not build, without a trace, once the grace is over', async () => {
    const blazar = await RecordedBlazar.asked();
    const [lease] = blazar.leases;
    await blazar.ask(lease, '2026-11-22T08:59:00Z', { start_date: '2026-11-22 08:59' });
    await blazar.round();
    expect((await blazar.round()).kept).toEqual(['left #4: Blazar does not have it yet']);
    blazar.now = '2026-11-22T09:10:00Z';
    expect((await blazar.round()).changes).toEqual(['released #4: Blazar has not built it']);
    expect(await blazar.taken()).toBe(TRUE_COST);
  });

  it('charges what such a lease can have used if nobody has looked for a while', async () => {
    const blazar = await RecordedBlazar.asked();
    const [lease] = blazar.leases;
    await blazar.ask(lease, '2026-11-22T08:59:00Z', { start_date: '2026-11-22 08:59' });
    await blazar.round();
    const longAgo = blazar.ledger.database.queries.updateTable('follower').set({ followed_at: 1n });
    await blazar.ledger.transact('reconcile', () => rows(longAgo.compile()), NO_WAIT);
    blazar.now = '2026-11-22T09:10:00Z';
    expect((await blazar.round()).changes).toEqual(['released #4: Blazar does not have it any more']);
    expect(await blazar.taken()).toBeGreaterThan(TRUE_COST);
  });

  it('charges what a lease can have used that came and went before a process made its first round', async () => {
    const blazar = await RecordedBlazar.asked();
    const [lease] = blazar.leases;
    await blazar.ask(lease, '2026-11-22T06:00:00Z', { start_date: '2026-11-22 07:00' });
    const mine = { now: 0 };
    const known = new RowAges(() => mine.now);
    // It has not known the row for the grace, whose lease has had two hours.
    expect((await blazar.round({ known })).kept).toEqual(['left #4: Blazar does not have it yet']);
    mine.now = 600_000;
    blazar.now = '2026-11-22T09:10:00Z';
    expect((await blazar.round({ known })).changes).toEqual([
      'released #4: Blazar does not have it any more',
    ]);
    expect(await blazar.taken()).toBeCloseTo(TRUE_COST + 2 * (2 + 1 / 6));
  });

  it('releases a lease whose end nobody has reported, and charges what it can have used', async () => {
    const blazar = await followedWorld();
    blazar.loseLease();
    blazar.now = '2030-01-01T06:00:00Z';
    expect((await blazar.round()).changes).toEqual(['released #1: Blazar does not have it any more']);
    expect(await blazar.taken()).toBeCloseTo(TRUE_COST - 2 * 18);
  });

  it('charges a lease that has lost all its hosts without a word for what it has used, once the grace is over', async () => {
    const blazar = await followedWorld();
    blazar.now = '2030-01-01T06:00:00Z';
    blazar.loseHosts();
    // As if Blazar were about to give it hosts.
    expect((await blazar.round({ grace: 1_000_000_000 })).kept).toEqual([
      'left #1: Blazar shows no hosts of it',
    ]);
    expect(await blazar.taken()).toBe(TRUE_COST);
    expect((await blazar.round()).changes).toEqual(['corrected #1: Blazar has changed it without asking']);
    expect(await blazar.taken()).toBeCloseTo(TRUE_COST - 2 * 18);
    expect((await blazar.round()).changes).toEqual([]);
  });

  it('charges a lease once that has lost hosts before it was first seen', async () => {
    const blazar = await RecordedBlazar.asked();
    Object.assign(blazar.leases[0], { degraded: true });
    Object.assign(blazar.leases[0]?.reservations[0] ?? {}, { missing_resources: true });
    blazar.loseHosts();
    expect((await blazar.round()).changes).toContain('corrected #1: Blazar has changed it without asking');
    expect(await blazar.open()).toHaveLength(3);
    expect(await blazar.taken()).toBeCloseTo(TRUE_COST - 2 * 24);
    expect((await blazar.round()).changes).toEqual([]);
  });

  it('charges a lease that has lost hosts for what it has, after a change of it has failed', async () => {
    const blazar = await followedWorld();
    const lease = blazar.leases[1];
    Object.assign(lease, { degraded: true });
    await blazar.askChange(lease, { reservations: lease.reservations.map((one) => ({ ...one, max: 12 })) });
    expect(await blazar.taken()).toBeGreaterThan(TRUE_COST);
    // Blazar may be making it, whatever status it shows.
    blazar.now = '2026-11-22T09:00:59Z';
    await blazar.round();
    expect(await blazar.taken()).toBeGreaterThan(TRUE_COST);
    blazar.now = '2026-11-22T09:01:00Z';
    await blazar.round();
    expect(await blazar.taken()).toBeCloseTo(TRUE_COST);
  });

  it('charges a lease until the event that ends it, which a change that failed has moved, and shows no hosts of it after its end date', async () => {
    const blazar = await followedWorld();
    const lease = blazar.activeLease();
    const events = [{ event_type: 'end_lease', status: 'UNDONE', time: '2030-01-02T06:00:00.000000' }];
    Object.assign(lease ?? {}, { status: 'ERROR', events });
    blazar.now = '2030-01-01T06:00:00Z';
    expect((await blazar.round()).changes).toEqual(['corrected #1: Blazar has changed it without asking']);
    expect(await blazar.taken()).toBe(TRUE_COST + 2 * 6);
    blazar.loseHosts();
    blazar.now = '2030-01-02T05:00:00Z';
    expect((await blazar.round()).changes).toEqual([]);
    expect(await blazar.taken()).toBe(TRUE_COST + 2 * 6);
  });

  it.each([
    ['first', '2026-11-22T09:00:00Z'],
    ['later', '2026-11-22T12:00:00Z'],
  ])(
    'charges a lease that is in use before its start since it was asked for, seen so %s',
    async (_, seen) => {
      const blazar = await (seen === NOW ? RecordedBlazar.asked() : followedWorld());
      const [lease] = blazar.leases;
      const asked = Date.parse(`${lease.created_at.slice(0, 19).replace(' ', 'T')}Z`);
      const early = (Date.parse('2030-01-01T00:00:00Z') - asked) / 3_600_000;
      blazar.now = seen;
      Object.assign(lease, { status: 'ACTIVE' });
      Object.assign(lease.reservations[0] ?? {}, { status: 'active' });
      await blazar.round();
      expect(await blazar.taken()).toBeCloseTo(TRUE_COST + 2 * early);
      blazar.now = '2027-01-01T00:00:00Z';
      expect((await blazar.round()).changes).toEqual([]);
      const longer = { end_date: '2030-01-02T12:00:00.000000' };
      await blazar.askChange(lease, longer);
      Object.assign(lease, longer);
      for (const now of ['2027-01-01T00:01:00Z', '2030-01-01T06:00:00Z']) {
        blazar.now = now;
        await blazar.round();
        expect(await blazar.taken()).toBeCloseTo(TRUE_COST + 2 * (early + 12));
        expect((await blazar.round()).changes).toEqual([]);
      }
      expect((await verifyLedger(blazar.ledger, NO_WAIT)).differences).toEqual([]);
    },
  );

  it('does not charge a lease that is in use a moment before its start by our clock for that moment', async () => {
    const blazar = await followedWorld();
    Object.assign(blazar.leases[0]?.reservations[0] ?? {}, { status: 'active' });
    blazar.now = '2029-12-31T23:59:30Z';
    expect((await blazar.round()).changes).toEqual([]);
    expect(await blazar.taken()).toBe(TRUE_COST);
  });

  it('charges a lease that Blazar has not ended in advance, and counts it, until it is ended', async () => {
    const blazar = await followedWorld();
    const lease = blazar.activeLease();
    blazar.loseHosts();
    const overdue = 'corrected #1: Blazar has not ended it';
    const later = async (time: string) => {
      blazar.now = time;
      return (await blazar.round()).changes.filter((one) => one.includes('#1'));
    };
    const hours = async () => (await blazar.taken()) - TRUE_COST;
    // Its end is 2030-01-02T00:00:00Z.
    expect(await later('2030-01-02T00:04:00Z')).toEqual([]);
    expect(await later('2030-01-02T00:06:00Z')).toEqual([overdue]);
    expect(await hours()).toBeCloseTo((2 * 36) / 60);
    expect(await later('2030-01-02T00:20:00Z')).toEqual([]);
    expect(await later('2030-01-02T00:22:00Z')).toEqual([overdue]);
    expect(await hours()).toBeCloseTo((2 * 52) / 60);
    expect(await later('2030-01-02T05:00:00.5Z')).toEqual([overdue]);
    expect(await hours()).toBeCloseTo(2 * 5.5);
    const [row] = await blazar.open();
    expect(row).toMatchObject({ lease_id: lease.id, ends_at: toInstant('2030-01-02T05:30:00Z') });
    await blazar.ask(lease, '2030-01-02T05:55:00Z', { start_date: '2031-01-01', end_date: '2031-01-02' });
    expect(await later('2030-01-02T06:00:00Z')).toEqual([overdue]);
    expect(await hours()).toBeCloseTo(2 * 6.5 + 2 * 24, 6);
    Object.assign(lease.reservations[0] ?? {}, { status: 'deleted' });
    expect(await later('2030-01-02T06:15:00Z')).toEqual(['released #1: Blazar does not have it any more']);
    expect(await hours()).toBeCloseTo(2 * 6.25);
    expect((await verifyLedger(blazar.ledger, NO_WAIT)).differences).toEqual([]);
  });

  it.each<[string, string, number]>([
    ['counts', '2030-01-02T00:20:00Z', 12.5],
    ['has counted', '2030-01-02T03:00:00Z', 0.6 + 9.5],
  ])(
    'charges a late lease as it was while it %s, when another is asked for with its id',
    async (_, asked, hours) => {
      const blazar = await followedWorld();
      const lease = blazar.activeLease();
      blazar.now = '2030-01-02T00:06:00Z';
      await blazar.round();
      const later = { start_date: '2031-01-01', end_date: '2031-01-02', reservations: [] };
      await blazar.ask(lease, asked, { id: lease.id, ...later });
      for (const now of ['2030-01-02T03:01:00Z', '2030-01-02T12:00:00Z', '2030-01-02T12:01:00Z']) {
        blazar.now = now;
        await blazar.round();
      }
      expect((await blazar.taken()) - TRUE_COST).toBeCloseTo(2 * hours);
    },
  );

  it('charges several late leases of a project in one round', async () => {
    const blazar = await followedWorld();
    for (const reservation of blazar.leases.flatMap(({ reservations }) => reservations)) {
      Object.assign(reservation, { status: 'active' });
    }
    blazar.now = '2031-01-01T00:00:00Z';
    expect((await blazar.round()).changes.toSorted()).toEqual(
      [1, 2, 3].map((row) => `corrected #${row}: Blazar has not ended it`),
    );
  });

  it('counts a late lease from now on that the ledger did not know', async () => {
    const blazar = await followedWorld();
    blazar.activeLease();
    const forgotten = blazar.ledger.database.queries.updateTable('leases').set({ lease_id: null });
    await blazar.ledger.transact('reconcile', () => rows(forgotten.where('id', '=', 1n).compile()), NO_WAIT);
    blazar.now = '2030-01-02T02:00:00Z';
    expect((await blazar.round()).changes).toContain('recorded #4: Blazar has not ended it');
    expect((await blazar.round()).changes).toEqual([]);
    expect((await blazar.taken()) - TRUE_COST).toBeCloseTo(2 * 0.5);
  });

  it('charges a late lease to the budgets that follow the one that has paid for it', async () => {
    const blazar = await RecordedBlazar.start();
    const of = { projectId: 'climate', amount: '90' };
    const turns = ['2026-01-01', '2030-01-02T03:00:00Z', '2030-01-03', '2030-01-04', '2030-01-05'] as const;
    await giveBudget(blazar.ledger, { ...of, from: turns[0], until: turns[1] });
    await giveBudget(blazar.ledger, { ...of, from: turns[1], until: turns[2] });
    await giveBudget(blazar.ledger, { ...of, from: turns[3], until: turns[4] });
    const [lease] = blazar.leases;
    await blazar.ask(lease, '2026-11-22T08:12:00Z');
    await blazar.round();
    Object.assign(lease.reservations[0] ?? {}, { status: 'active' });
    const before = await blazar.taken();
    const taken = async (time: string) => {
      blazar.now = time;
      await blazar.round();
      const budgets = await listBudgets(blazar.ledger, 'climate', NO_WAIT);
      return budgets.map((one) => Number(one.taken) / 3_600_000_000);
    };
    expect(await taken('2030-01-02T06:00:00Z')).toEqual([before + 2 * 3, 2 * 3.5, 0]);
    // None is valid for a day.
    expect(await taken('2030-01-03T12:00:00Z')).toEqual([before + 2 * 3, 2 * 21, 0]);
    expect(await taken('2030-01-04T01:00:00Z')).toEqual([before + 2 * 3, 2 * 21, 2 * 1.5]);
    const [from, until] = ['2030-01-01', '2030-01-06'].map((day) => BigInt(Date.parse(day) / 1000));
    const query = { projectId: 'climate', from: from ?? 0n, until: until ?? 0n, groupBy: 'day' } as const;
    const { groups } = await usageOf(blazar.ledger, query, NO_WAIT);
    const days = groups.map(({ key, amount }) => [key, Number(amount) / 3_600_000_000]);
    expect(days).toEqual(
      expect.arrayContaining([
        ['2030-01-02', 2 * 24],
        ['2030-01-04', 2 * 1.5],
      ]),
    );
    expect((await verifyLedger(blazar.ledger, NO_WAIT)).differences).toEqual([]);
  });

  it('charges a late lease once the clocks agree', async () => {
    const blazar = await followedWorld();
    blazar.activeLease();
    blazar.now = '2030-01-02T02:00:00Z';
    const answer = blazar.answers.get('/v1/leases') as Answer;
    blazar.answers.set('/v1/leases', { ...answer, headers: { date: 'Tue, 01 Jan 2030 00:00:00 GMT' } });
    expect((await blazar.round()).changes.filter((one) => one.includes('#1'))).toEqual([]);
    blazar.answers.set('/v1/leases', { ...answer, headers: {} });
    expect((await blazar.round()).changes).toContain('corrected #1: Blazar has not ended it');
  });

  it('charges a late lease to the project that has used it, not to one that has asked for its id', async () => {
    const blazar = await followedWorld();
    const lease = blazar.activeLease();
    await blazar.ask({ ...lease, project_id: 'physics' }, NOW, { id: lease.id });
    const before = await blazar.taken('physics');
    // Its end is processed by now.
    const dates = { start_date: '2031-01-01', end_date: '2031-01-02' };
    await blazar.ask(lease, '2030-01-02T01:55:00Z', dates);
    lease.project_id = 'physics';
    blazar.now = '2030-01-02T02:00:00Z';
    expect((await blazar.round()).changes).toContain('corrected #1: Blazar has not ended it');
    expect(await blazar.taken('physics')).toBe(before);
  });

  it('charges the hosts that Blazar has found beyond those that it had named', async () => {
    const blazar = await RecordedBlazar.start();
    for (const { reservations, ...lease } of blazar.leases) {
      const named = reservations.map((one) =>
        one.max === 9 ? { ...one, min: 1, allocations: [{ id: '1' }] } : one,
      );
      await blazar.ask({ ...lease, reservations: named }, '2026-11-22T08:12:00Z');
    }
    expect(await blazar.taken()).toBeCloseTo(TRUE_COST - 2 * 12);
    // Another lease has ended between Blazar's question and its search.
    expect((await blazar.round()).changes).toContain('corrected #2: Blazar shows what it was given');
    expect(await blazar.taken()).toBe(TRUE_COST);
  });

  it('charges a lease once that has run beyond the end of a budget when it is changed', async () => {
    const blazar = await RecordedBlazar.start();
    // The one ends when a quarter of the lease is over.
    const turn = '2030-01-01T06:00:00Z';
    const budget = { projectId: 'climate', amount: '100000' };
    await giveBudget(blazar.ledger, { ...budget, from: '2026-01-01', until: turn });
    await giveBudget(blazar.ledger, { ...budget, from: turn, until: '2040-01-01' });
    const taken = async () => {
      const budgets = await listBudgets(blazar.ledger, 'climate', NO_WAIT);
      return Number(budgets.reduce((sum, one) => sum + one.taken, 0n)) / 3_600_000_000;
    };
    for (const lease of blazar.leases) {
      await blazar.ask(lease, '2026-11-22T08:12:00Z');
    }
    await blazar.round();
    expect(await taken()).toBe(TRUE_COST);
    blazar.now = '2030-01-01T12:00:00Z';
    const [lease] = blazar.leases;
    const end_date = '2030-01-02T06:00:00.000000';
    await blazar.askChange(lease, { end_date });
    Object.assign(lease, { end_date });
    const { changes } = await blazar.round();
    expect(changes.filter((one) => one.includes('#1'))).toEqual([
      'corrected #1: Blazar shows which of its changes were made',
    ]);
    expect(await taken()).toBe(TRUE_COST + 2 * 6);
  });

  it('records a lease of which the ledger has not heard, for its project and user', async () => {
    const blazar = await RecordedBlazar.start();
    const [first, second] = blazar.leases;
    await blazar.ask(first, '2026-11-22T08:12:00Z');
    (second as { user_id: string }).user_id = 'dora';
    const { changes } = await blazar.round({ region: 'RegionOne' });
    expect(changes.filter((one) => one.startsWith('recorded'))).toHaveLength(2);
    const rows = await blazar.open();
    expect(rows.map(({ project_id, user_id }) => `${project_id}/${user_id}`).sort()).toEqual([
      'climate/alice',
      'climate/dora',
      'physics/carol',
    ]);
    expect(await blazar.taken()).toBe(TRUE_COST);
  });

  it('releases leases when Blazar has another address, after all of them were found there', async () => {
    const blazar = await followedWorld();
    const endpoint = (await blazar.keystone.endpoint('reservation')).replace('127.0.0.1', 'localhost');
    expect((await blazar.round({ endpoint })).followed).toMatchObject({ doubts: [], endpoint });
    blazar.loseLease();
    blazar.now = '2026-11-22T12:00:00Z';
    expect((await blazar.round({ endpoint })).changes).toEqual([
      'released #1: Blazar does not have it any more',
    ]);
  });

  it('does not take a lease for one that was asked for after it was created, whatever its name', async () => {
    const blazar = await RecordedBlazar.asked();
    const [lease] = blazar.leases;
    await blazar.round();
    (lease as { id: string }).id = 'another';
    await blazar.ask(lease, '2026-11-22T08:30:00Z');
    const { changes } = await blazar.round();
    expect(changes.some((one) => one.startsWith('identified #4'))).toBe(false);
  });

  it('releases no new lease that it has not known for the grace itself, whatever the clocks say', async () => {
    const blazar = await RecordedBlazar.asked();
    const mine = { now: 0 };
    const known = new RowAges(() => mine.now);
    const [lease] = blazar.leases;
    // A replica whose clock is hours behind has recorded it; Blazar is about to build it.
    await blazar.ask({ ...lease, user_id: 'dora' }, '2026-11-21T08:00:00Z');
    const isReleased = async () =>
      (await blazar.round({ known })).changes.some((one) => one.startsWith('released'));
    expect(await isReleased()).toBe(false);
    mine.now = 599_000;
    expect(await isReleased()).toBe(false);
    // The clocks are set.
    blazar.now = '2026-11-23T09:00:00Z';
    expect(await isReleased()).toBe(false);
    mine.now = 600_000;
    expect(await isReleased()).toBe(true);
  });

  it('releases none that may be one which Blazar changes just now', async () => {
    const blazar = await followedWorld();
    const [lease] = blazar.leases;
    await blazar.ask({ ...lease, user_id: 'dora' }, '2026-11-22T08:12:00Z');
    // By Blazar's clock it was there before it was asked for; and somebody has changed its end since.
    const end_date = '2030-01-03T00:00:00.000000';
    const other = { ...lease, id: 'another', user_id: 'dora', created_at: '2026-11-20 00:00:00', end_date };
    blazar.leases.push({ ...other, status: 'UPDATING' });
    blazar.now = '2026-11-22T12:00:00Z';
    const { followed, changes } = await blazar.round();
    expect(changes.filter((one) => one.startsWith('released'))).toEqual([]);
    expect(followed).toMatchObject({
      doubts: [expect.stringContaining('Blazar lists leases that are not recorded')],
    });
    Object.assign(blazar.leases.at(-1) ?? {}, { status: 'ACTIVE' });
    // It is recorded before the other one is released.
    expect((await blazar.round()).changes.map((one) => one.split(' ')[0])).toEqual(['recorded', 'released']);
  });

  it('keeps the youngest of leases that look alike, which Blazar may still build', async () => {
    const blazar = await followedWorld();
    const [lease] = blazar.leases;
    const ofDora = { ...lease, user_id: 'dora', id: 'dora-1', created_at: '2026-11-22 09:00:00' };
    await blazar.ask(ofDora, '2026-11-22T08:00:00Z');
    await blazar.ask(ofDora, '2026-11-22T08:59:59Z');
    blazar.leases.push(ofDora);
    blazar.now = '2026-11-22T09:00:10Z';
    const { changes } = await blazar.round();
    expect(changes.map((one) => one.split(':')[0])).toEqual([
      expect.stringMatching(/^(identified|corrected) #4$/),
    ]);
    expect((await blazar.open()).filter(({ lease_id }) => lease_id === null).map(({ id }) => id)).toEqual([
      5n,
    ]);
  });

  it.each(['CREATING', 'UPDATING', 'STARTING', 'TERMINATING', 'DELETING'])(
    'leaves a lease that is %s',
    async (status) => {
      const blazar = await RecordedBlazar.asked();
      for (const lease of blazar.leases) {
        lease.status = status;
      }
      blazar.now = '2026-11-22T12:00:00Z';
      expect(await blazar.round()).toMatchObject({ changes: [] });
      expect(await blazar.taken()).toBe(AT_MOST);
    },
  );

  it('does nothing about what is asked for while it reads', async () => {
    const blazar = await followedWorld();
    const [lease] = blazar.leases;
    blazar.loseLease();
    blazar.now = '2026-11-22T12:00:00Z';
    blazar.before = async (path) => {
      if (path === '/v1/os-hosts/allocations') {
        // Of the same id, and a new one that looks like another.
        await blazar.ask(lease, blazar.now, { id: lease?.id });
      }
    };
    const { changes, kept } = await blazar.round();
    expect(changes).toEqual([]);
    expect(kept).toEqual(['left #1: it was asked for meanwhile']);
  });

  it('does not record a lease a second time that is asked for while it reads, and in use before its start', async () => {
    const blazar = await RecordedBlazar.start();
    const [lease, ...others] = blazar.leases;
    for (const other of others) {
      await blazar.ask(other, LONG_AGO);
    }
    Object.assign(lease, { status: 'ACTIVE', created_at: '2026-11-22 09:00:00.000000' });
    Object.assign(lease.reservations[0] ?? {}, { status: 'active' });
    blazar.before = async (path) => {
      if (path === '/v1/leases') {
        await blazar.ask(lease, NOW);
      }
    };
    expect((await blazar.round()).kept).toEqual(['left #null: it was asked for meanwhile']);
    blazar.before = async () => {};
    await blazar.round();
    expect((await blazar.open()).filter(({ lease_id }) => lease_id === lease.id)).toHaveLength(1);
    expect(await blazar.open()).toHaveLength(3);
  });

  it('writes nothing when it only tells what it would do', async () => {
    const blazar = await RecordedBlazar.asked();
    const { changes } = await blazar.round({ isDryRun: true });
    expect(changes).toHaveLength(3);
    expect(await blazar.taken()).toBe(AT_MOST);
    expect((await blazar.open()).every(({ lease_id, shown }) => lease_id === null && shown === null)).toBe(
      true,
    );
  });
});

describe('a Blazar without os_region_name', () => {
  it('counts leases once that were recorded before it first asked', async () => {
    const blazar = await RecordedBlazar.start();
    blazar.region = null;
    const [, second, last] = blazar.leases;
    const dates = { start_date: '2030-03-01 00:00', end_date: '2030-03-02 00:00' };
    const instances = second.reservations.slice(0, 1).map((one) => ({ ...one, id: 'new' }));
    const { changes } = await blazar.round({ region: 'RegionOne' });
    expect(changes).toHaveLength(3);
    expect(await blazar.taken()).toBe(TRUE_COST);
    // Asked for, and built, since then. And one that was there before is asked for again.
    await blazar.ask(last, NOW, { ...dates, reservations: instances });
    await blazar.ask(last, NOW, { id: last.id });
    const created_at = '2026-11-22 09:00:00';
    blazar.leases.push({ ...last, ...dates, id: 'new', created_at, reservations: instances });
    blazar.now = '2026-11-22T09:01:00Z';
    expect((await blazar.round({ region: 'RegionOne', isDryRun: true })).followed).toMatchObject({
      doubts: [expect.stringMatching(/dry run/)],
    });
    const { followed } = await blazar.round({ region: 'RegionOne' });
    expect(followed).toMatchObject({ kind: 'done', doubts: [] });
    blazar.now = '2026-11-22T10:00:00Z';
    expect((await blazar.round({ region: 'RegionOne' })).followed).toMatchObject({ doubts: [] });
    const rows = await blazar.open();
    expect(rows.map(({ lease_id }) => lease_id).sort()).toEqual(blazar.leases.map(({ id }) => id).sort());
    expect(new Set(rows.map(({ region }) => region))).toEqual(new Set(['']));
    expect((await blazar.round({ region: 'RegionOne' })).changes).toEqual([]);
    expect((await verifyLedger(blazar.ledger, NO_WAIT)).differences).toEqual([]);
  });

  it('releases nothing where another Blazar has one', async () => {
    const blazar = await followedWorld();
    blazar.region = null;
    const [lease] = blazar.leases;
    await blazar.ask(lease, LONG_AGO);
    blazar.loseLease();
    blazar.now = '2026-11-22T12:00:00Z';
    const { followed, changes } = await blazar.round({ region: 'RegionOne' });
    expect(followed).toMatchObject({ doubts: [expect.stringMatching(/without a region/)] });
    expect(changes).toEqual([]);
  });
});

describe('what users may write into their leases', () => {
  const rowsOf = async (blazar: RecordedBlazar) =>
    (await blazar.open()).map(
      ({ lease_id, project_id, user_id }) => `${lease_id?.slice(0, 8)} ${project_id}/${user_id}`,
    );

  it.each<[string, Partial<Listed>]>([
    ['to another project', { project_id: 'physics' }],
    ['to an exempt project', { project_id: 'staff' }],
    ['to another user', { user_id: 'bob' }],
    ['to nobody', { project_id: null as never, user_id: null as never }],
    ['to somebody without a name', { project_id: '', user_id: '' }],
  ])('gives a lease %s, and it stays charged as it was', async (_, owner) => {
    const blazar = await followedWorld();
    const before = await rowsOf(blazar);
    Object.assign(blazar.leases[0], owner);
    blazar.now = '2026-11-22T12:00:00Z';
    const { followed, changes } = await blazar.round({ exemptProjects: ['staff'] });
    expect(followed).toMatchObject({ kind: 'done', doubts: [] });
    expect(changes).toEqual([]);
    expect(await rowsOf(blazar)).toEqual(before);
    expect(await blazar.taken()).toBe(TRUE_COST);
  });

  it('charges the project that asked for a lease, also when the one that it was given to changes it', async () => {
    const blazar = await followedWorld();
    const [lease] = blazar.leases;
    lease.project_id = 'physics';
    await blazar.ask(lease, LONG_AGO, { id: lease.id });
    blazar.now = '2026-11-22T12:00:00Z';
    const { changes } = await blazar.round();
    expect(changes).toEqual([expect.stringMatching(/^released #4: /)]);
    expect(await blazar.taken()).toBe(TRUE_COST);
  });

  it('does not charge a project for a lease that another one asked for with the id of the first', async () => {
    const blazar = await RecordedBlazar.asked();
    const [lease] = blazar.leases;
    await blazar.ask({ ...lease, project_id: 'physics' }, LONG_AGO, { id: lease.id });
    await blazar.round();
    blazar.now = '2026-11-22T12:00:00Z';
    await blazar.round();
    expect(await blazar.taken('climate')).toBe(TRUE_COST);
    expect((await rowsOf(blazar)).filter((one) => one.startsWith(lease.id.slice(0, 8)))).toEqual([
      `${lease.id.slice(0, 8)} climate/alice`,
    ]);
  });

  it('releases no lease that says of itself that it is terminated, until its reservations are', async () => {
    const blazar = await followedWorld();
    const [lease] = blazar.leases;
    lease.status = 'TERMINATED';
    blazar.now = '2026-11-22T12:00:00Z';
    expect((await blazar.round()).changes).toEqual([]);
    expect(await blazar.taken()).toBe(TRUE_COST);
    for (const reservation of lease.reservations) {
      Object.assign(reservation, { status: 'deleted' });
    }
    expect((await blazar.round()).changes).toEqual(['released #1: Blazar does not have it any more']);
  });

  it.each([
    ['empty', ''],
    ['a mark of the ledger', '-'],
    ['another mark of the ledger', '?'],
    ['a member of every object', '__proto__'],
    ['a picture', '\u{1f600}'],
    ['long', 'x'.repeat(5000)],
    ['not to be stored', 'a\0b'],
  ])('follows all leases when the id of one is %s', async (_, id) => {
    const blazar = await RecordedBlazar.asked();
    const [lease] = blazar.leases;
    const { body } = blazar.answers.get('/v1/os-hosts/allocations') as { body: unknown };
    blazar.answers.set(
      '/v1/os-hosts/allocations',
      JSON.stringify(body).replaceAll(lease.id, JSON.stringify(id).slice(1, -1)),
    );
    lease.id = id;
    expect((await blazar.round()).followed).toMatchObject({ kind: 'done', doubts: [] });
    expect((await blazar.round()).changes).toEqual([]);
    expect(await blazar.open()).toHaveLength(3);
    expect((await verifyLedger(blazar.ledger, NO_WAIT)).differences).toEqual([]);
  });

  it('compares the others when Blazar does not say whose an unknown lease is', async () => {
    const blazar = await RecordedBlazar.start();
    const [first, second] = blazar.leases;
    await blazar.ask(first, '2026-11-22T08:12:00Z');
    Object.assign(second, { project_id: null });
    const { kept, changes } = await blazar.round({ region: 'RegionOne' });
    expect(kept).toEqual(['left #null: Blazar does not say whose it is']);
    expect(changes).toHaveLength(2);
  });
});

describe('nothing is released', () => {
  const cases: [string, (blazar: RecordedBlazar) => void, RegExp][] = [
    [
      'when the list is empty',
      (blazar) => {
        blazar.answers.set('/v1/leases', '{"leases": []}');
        blazar.answers.set('/v1/os-hosts/allocations', '{"allocations": []}');
      },
      /lists no lease at all/,
    ],
    [
      'when the list is of another Blazar',
      (blazar) => {
        for (const lease of blazar.leases) {
          lease.id = `other-${lease.id}`;
          lease.created_at = '2025-01-01 00:00:00';
        }
        blazar.answers.set('/v1/os-hosts/allocations', '{"allocations": []}');
      },
      /none of the leases/,
    ],
    [
      'when leases are missing that have allocations',
      (blazar) => blazar.leases.splice(0, 1),
      /does not list/,
    ],
    [
      'when the clocks differ',
      (blazar) => {
        blazar.loseLease();
        const { status, headers, body } = blazar.answers.get('/v1/leases') as Answer;
        const date = new Date(Date.parse(blazar.now) + 20_000).toUTCString();
        blazar.answers.set('/v1/leases', { status, headers: { ...headers, date }, body });
      },
      /clock/,
    ],
  ];
  it.each(cases)('%s', async (_, spoil, why) => {
    const blazar = await followedWorld();
    blazar.now = '2026-11-22T12:00:00Z';
    spoil(blazar);
    const { followed, changes } = await blazar.round();
    expect(followed).toMatchObject({ doubts: [expect.stringMatching(why)] });
    expect(changes.filter((one) => !one.startsWith('corrected'))).toEqual([]);
    // Nor the second time.
    await blazar.round();
    expect(await blazar.open()).toHaveLength(3);
  });

  it('when our account sees only its own project', async () => {
    const blazar = await followedWorld();
    blazar.now = '2026-11-22T12:00:00Z';
    blazar.answers.set('/v1/leases', recorded('leases-of-a-project'));
    blazar.answers.set('/v1/os-hosts/allocations', '{"allocations": []}');
    const keystone = headerKeystone(await blazar.keystone.endpoint('reservation'), 'physics/carol');
    const { followed, changes } = await blazar.round({ keystone });
    await keystone.close();
    expect(followed).toMatchObject({ doubts: expect.arrayContaining([expect.stringMatching(/role admin/)]) });
    expect(changes).toEqual([]);
  });

  it('when [keystone] names another region than the ledger has', async () => {
    const blazar = await RecordedBlazar.asked();
    blazar.now = '2026-11-22T12:00:00Z';
    blazar.leases.splice(0, 2);
    const { followed, changes } = await blazar.round({ region: 'RegionTwo' });
    expect(followed).toMatchObject({
      doubts: expect.arrayContaining([expect.stringMatching(/"RegionTwo"/)]),
    });
    expect(changes).toEqual([]);
  });

  it('where another Blazar has leases of the same region, by either of them', async () => {
    const blazar = await followedWorld();
    const other = await RecordedBlazar.start();
    for (const [path, name] of [
      ['/v1/leases', 'leases'],
      ['/v1/os-hosts/allocations', 'allocations'],
    ] as const) {
      const answer = JSON.stringify(recorded(name)).replaceAll('"0000000', '"1000000');
      other.answers.set(path, JSON.parse(answer) as Answer);
    }
    for (const lease of other.leases) {
      await blazar.ask(lease, `${lease.created_at.slice(0, 19).replace(' ', 'T')}Z`);
    }
    blazar.now = other.now = '2026-11-22T12:00:00Z';
    const there = await blazar.round({ keystone: other.keystone });
    expect(there.changes).toContain('identified #4: null');
    for (const { followed } of [there, await blazar.round(), await blazar.round()]) {
      expect(followed).toMatchObject({
        doubts: [expect.stringMatching(/"RegionOne" were also found at http/)],
      });
    }
    expect(await blazar.open()).toHaveLength(6);
  });

  it('at once, when it is most of the ledger: a second list must say the same', async () => {
    const blazar = await RecordedBlazar.asked();
    const [lease] = blazar.leases;
    for (let index = 0; index < 30; index += 1) {
      await blazar.ask(lease, LONG_AGO, { id: `own-${index}` });
    }
    const first = await blazar.round();
    expect(first.followed).toMatchObject({
      doubts: [expect.stringMatching(/30 of 33 leases would be released/)],
    });
    expect(await blazar.open()).toHaveLength(33);
    expect((await blazar.round()).changes.filter((one) => one.startsWith('released'))).toHaveLength(30);
  });
});

describe('a round fails and changes nothing', () => {
  const whole = JSON.stringify(recorded('leases').body);
  it.each<[string, string, Answer | string]>([
    ['when the list is cut off', '/v1/leases', whole.slice(0, -40)],
    [
      'when it is cut off between two leases',
      '/v1/leases',
      `${whole.slice(0, whole.indexOf('"leases": [') + 400)}]}`,
    ],
    ['when it is one page of several', '/v1/leases', '{"leases": [], "leases_links": [{"rel": "next"}]}'],
    ['when a lease has no reservations', '/v1/leases', whole.replace('"reservations"', '"none"')],
    ['when a lease is listed twice', '/v1/leases', whole.replaceAll(/0000000[18](?=-)/g, '00000001')],
    ['when we may not see allocations', '/v1/os-hosts/allocations', recorded('allocations-as-a-member')],
  ])('%s', async (_, path, answer) => {
    const blazar = await RecordedBlazar.asked();
    blazar.now = '2026-11-22T12:00:00Z';
    blazar.answers.set(path, answer);
    await expect(blazar.round()).rejects.toMatchObject({ name: 'BlazarError' });
    expect(await blazar.taken()).toBe(AT_MOST);
    blazar.answers.set('/v1/leases', recorded('leases'));
    blazar.answers.set('/v1/os-hosts/allocations', recorded('allocations'));
    blazar.answers.set('/v1/os-hosts', recorded('hosts'));
    // The seat is free again.
    expect((await blazar.round()).followed).toMatchObject({ kind: 'done', doubts: [] });
  });

  it('asks an endpoint without its version', async () => {
    const blazar = await RecordedBlazar.asked();
    const endpoint = (await blazar.keystone.endpoint('reservation')).replace('/v1', '/');
    expect((await blazar.round({ endpoint })).followed).toMatchObject({ kind: 'done', doubts: [] });
  });
});
