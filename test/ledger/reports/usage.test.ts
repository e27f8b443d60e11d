/** Usage by user, day and resource type, and the course of budgets, on both databases. */
import { describe, expect, it } from 'vitest';
import { formatUnitHours } from '../../../src/filter/claim.ts';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { type UsageQuery, type UsageReport, usageOf } from '../../../src/ledger/reports/usage.ts';
import { budgetsOverTime } from '../../../src/ledger/reports/usage-over-time.ts';
import { DIALECTS, NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixture, leaseOf, newFixtures } from '../fixture.ts';

const newGround = newFixtures(true);

const second = (date: string) => BigInt(Date.parse(date) / 1000);

function usage(
  fixture: LedgerFixture,
  groupBy: UsageQuery['groupBy'],
  from = '2026-11-21',
  until = '2027-11-21',
): Promise<UsageReport> {
  const query = { projectId: fixture.project, from: second(from), until: second(until), groupBy };
  return usageOf(fixture.ledger, query, NO_WAIT);
}

/** `alice 48 (48 h, 1)`: unit-hours, hours of resources, leases. */
function shown({ groups }: UsageReport): string[] {
  return groups.map(
    ({ key, amount, resourceSeconds, leases }) =>
      `${key} ${amount === null ? '-' : formatUnitHours(amount)} (${Number(resourceSeconds) / 3600} h, ${leases})`,
  );
}

async function course(fixture: LedgerFixture, from: string, until: string, points = 4): Promise<string[][]> {
  const query = { projectId: fixture.project, from: second(from), until: second(until), points };
  const overTime = await budgetsOverTime(fixture.ledger, query, NO_WAIT);
  return overTime.map((one) =>
    one.points.map(
      ({ at, used }) => `${new Date(Number(at) * 1000).toISOString().slice(5, 16)} ${formatUnitHours(used)}`,
    ),
  );
}

describe.each(DIALECTS)('what a project uses, on %s', (dialect) => {
  it('is what leases take within the time, by user, by type and by day', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf({ hosts: 2, from: '2026-12-01 12:00', until: '2026-12-03 06:00' }));
    await fixture.create(leaseOf({ name: 'b', from: '2026-12-02', until: '2026-12-05' }), 'bob');
    expect(shown(await usage(fixture, 'user'))).toEqual(['alice 84 (84 h, 1)', 'bob 72 (72 h, 1)']);
    expect(shown(await usage(fixture, 'resource_type'))).toEqual(['physical:host - (156 h, 2)']);
    const days = [
      '2026-12-01 24 (24 h, 1)',
      '2026-12-02 72 (72 h, 2)',
      '2026-12-03 36 (36 h, 2)',
      '2026-12-04 24 (24 h, 1)',
    ];
    expect(shown(await usage(fixture, 'day'))).toEqual(days);
    // Over the edges of the time.
    expect(shown(await usage(fixture, 'user', '2026-12-02T12:00Z', '2026-12-03T03:00Z'))).toEqual([
      'alice 30 (30 h, 1)',
      'bob 15 (15 h, 1)',
    ]);
    expect(shown(await usage(fixture, 'day', '2026-12-02T12:00Z', '2026-12-03T03:00Z'))).toEqual([
      '2026-12-02 36 (36 h, 2)',
      '2026-12-03 9 (9 h, 2)',
    ]);
    expect(shown(await usage(fixture, 'day', '2026-12-05', '2026-12-06'))).toEqual([]);
  });

  it('ends where a lease ended, and is as before up to the change of a running lease', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    const lease = { id: 'A', hosts: 2, from: '2026-12-01', until: '2026-12-11' };
    await fixture.create(leaseOf(lease));
    fixture.now = '2026-12-03T00:00:00Z';
    await fixture.update(leaseOf(lease), { end_date: '2026-12-21 00:00' });
    expect(shown(await usage(fixture, 'day', '2026-11-30', '2026-12-04'))).toEqual([
      '2026-12-01 48 (48 h, 1)',
      '2026-12-02 48 (48 h, 1)',
      '2026-12-03 48 (48 h, 1)',
    ]);
    fixture.now = '2026-12-05T12:00:00Z';
    await fixture.end(leaseOf({ ...lease, until: '2026-12-21' }));
    expect(await fixture.taken()).toEqual(['216']);
    expect(shown(await usage(fixture, 'user'))).toEqual(['alice 216 (216 h, 1)']);
    expect(shown(await usage(fixture, 'day', '2026-12-04', '2026-12-20'))).toEqual([
      '2026-12-04 48 (48 h, 1)',
      '2026-12-05 24 (24 h, 1)',
    ]);
  });

  it('is the most expensive that a lease may be until it is confirmed, and nothing of one that was taken back', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    const lease = leaseOf({ id: 'A', from: '2026-12-01', until: '2026-12-03' });
    await fixture.create(lease);
    await fixture.update(lease, { start_date: '2026-12-10 00:00', end_date: '2026-12-11 00:00' });
    expect(await fixture.taken()).toEqual(['48']);
    expect(shown(await usage(fixture, 'user'))).toEqual(['alice 48 (24 h, 1)']);
    expect(shown(await usage(fixture, 'user', '2026-12-01', '2026-12-03'))).toEqual(['alice 48 (0 h, 1)']);
    const { undo } = await fixture.create(leaseOf({ name: 'gone', from: '2026-11-21 09:00' }), 'bob');
    fixture.now = '2026-11-22T00:00:00Z';
    await fixture.takeBack(undo);
    const [alice, bob] = (await usage(fixture, 'user')).groups;
    expect([alice?.key, bob?.key, bob?.amount]).toEqual(['alice', 'bob', 0n]);
  });

  it('counts once where the budget of the project and that of a user pay', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.give({ userId: 'bob', amount: '100' });
    await fixture.create(leaseOf(), 'bob');
    expect(await fixture.taken()).toEqual(['24', '24']);
    expect(shown(await usage(fixture, 'user'))).toEqual(['bob 24 (24 h, 1)']);
    const own = await newGround(dialect);
    await own.give({ userId: 'bob', amount: '100' });
    await own.create(leaseOf(), 'bob');
    await own.create(leaseOf({ name: 'free' }), 'alice');
    expect(shown(await usage(own, 'user'))).toEqual(['bob 24 (24 h, 1)', 'alice 0 (24 h, 1)']);
  });

  it('says how many leases of older versions tell no resources', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf());
    await fixture.forgetResources();
    const report = await usage(fixture, 'resource_type');
    expect(report).toMatchObject({ groups: [], leasesOfUnknownResources: 1 });
    expect(shown(await usage(fixture, 'day'))).toEqual(['2026-12-01 24 (0 h, 1)']);
  });

  it('tells how many of a type there were before and after a change', async () => {
    const fixture = await newGround(dialect, { budget: '9000' });
    const lease = { id: 'A', from: '2026-12-01', until: '2026-12-05' };
    await fixture.create(leaseOf(lease));
    fixture.now = '2026-12-03T00:00:00Z';
    await fixture.update(leaseOf(lease), leaseOf({ ...lease, hosts: 3 }));
    expect(shown(await usage(fixture, 'resource_type'))).toEqual(['physical:host - (192 h, 1)']);
    expect(await fixture.taken()).toEqual(['192']);
    expect(shown(await usage(fixture, 'day', '2026-12-02', '2026-12-04'))).toEqual([
      '2026-12-02 24 (24 h, 1)',
      '2026-12-03 72 (72 h, 1)',
    ]);
  });
});

it.each(DIALECTS)(
  'the course of a budget on %s tells what was used by when, and what will be, up to what is taken',
  async (dialect) => {
    const fixture = await newGround(dialect);
    await fixture.give({ from: '2026-11-01', until: '2026-12-01', amount: '500' });
    await fixture.give({ from: '2026-12-01', until: '2027-01-01', amount: '500' });
    await fixture.give({ userId: 'alice', amount: '500' });
    await fixture.create(leaseOf({ id: 'A', hosts: 2, from: '2026-11-25', until: '2026-12-03' }));
    await fixture.create(leaseOf({ name: 'B', from: '2026-12-10', until: '2026-12-12' }));
    fixture.now = '2026-11-27T00:00:00Z';
    expect(await course(fixture, '2026-11-25', '2027-02-01', 2)).toEqual([
      ['11-25T00:00 0', '11-27T00:00 96', '11-28T00:00 144', '12-01T00:00 288'],
      ['12-01T00:00 0', '12-16T12:00 144', '01-01T00:00 144'],
    ]);
    const [first, second_] = await listBudgets(fixture.ledger, fixture.project, NO_WAIT);
    expect([first?.taken, second_?.taken].map((taken) => formatUnitHours(taken ?? 0n))).toEqual([
      '288',
      '144',
    ]);
    expect(await course(fixture, '2025-01-01', '2026-11-01')).toEqual([]);
    expect(await course(fixture, '2026-12-11', '2026-12-11T01:00:00Z', 1)).toEqual([
      ['12-11T00:00 120', '12-11T01:00 121'],
    ]);
  },
);
