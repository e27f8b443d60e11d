/** Reports of usage: sums over projects and months, exact whatever happened to leases, on both databases. */
import { describe, expect, it } from 'vitest';
import { formatUnitHours } from '../../../../src/filter/claim.ts';
import { listBudgets } from '../../../../src/ledger/budgets/budgets.ts';
import { usageCsv, usageFocus } from '../../../../src/ledger/reports/usage/formats.ts';
import { reportSpan, reportUsage } from '../../../../src/ledger/reports/usage/report.ts';
import {
  USAGE_KEYS,
  type UsageKey,
  type UsageReport,
  type UsageReportQuery,
} from '../../../../src/ledger/reports/usage/sums.ts';
import { openSqlite } from '../../../../src/ledger/storage/sqlite-driver.ts';
import { DIALECTS, giveBudget, NO_WAIT, newLedgers, openedLedger } from '../../../support/ledgers.ts';
import { type LedgerFixture, leaseOf, newFixtures } from '../../fixture.ts';
import { fold } from '../../folding/folded-ledgers.ts';
import { recordMany } from '../../many-leases.ts';
import { recordLease } from '../../recorded-leases.ts';

const newGround = newFixtures(true);
const newLedger = newLedgers();

const second = (date: string) => BigInt(Date.parse(date) / 1000);
const YEAR = ['2026-01-01', '2028-01-01'] as const;

function report(
  { ledger, project }: Pick<LedgerFixture, 'ledger' | 'project'>,
  by: UsageKey,
  [from, until]: readonly [string, string] = YEAR,
  more: Partial<UsageReportQuery> = {},
): Promise<UsageReport> {
  const query = { projectIds: [project], from: second(from), until: second(until), by, ...more };
  return reportUsage(ledger, query, NO_WAIT);
}

const hours = (seconds: bigint) => Number(seconds) / 3600;

/** `alice 48+0 (48 h, 1)`: of budgets of projects and of users, hours of resources, leases; `-2 5 h` = two ended early, with hours left. */
function shown({ rows }: UsageReport, by: UsageKey): string[] {
  return rows.map((row) => {
    const key = {
      project: row.projectId,
      user: row.userId,
      resource_type: row.resourceType,
      month: new Date(Number(row.from) * 1000).toISOString().slice(0, 7),
    }[by];
    const amounts = `${formatUnitHours(row.amount)}+${formatUnitHours(row.userAmount)}`;
    const early = row.endedEarly === 0 ? '' : ` -${row.endedEarly} ${hours(row.unusedSeconds)} h`;
    return `${by === 'project' ? 'all' : key} ${amounts} (${hours(row.resourceSeconds)} h, ${row.leases})${early}`;
  });
}

async function textOf(text: AsyncIterable<string>): Promise<string> {
  let all = '';
  for await (const piece of text) {
    all += piece;
  }
  return all;
}

/** What is taken of all budgets of the project. */
async function taken({ ledger, project }: LedgerFixture): Promise<[bigint, bigint]> {
  const budgets = await listBudgets(ledger, project, NO_WAIT);
  const sum = (isOfUser: boolean) =>
    budgets.reduce((total, one) => total + ((one.userId !== null) === isOfUser ? one.taken : 0n), 0n);
  return [sum(false), sum(true)];
}

async function expectTaken(fixture: LedgerFixture): Promise<void> {
  for (const by of ['project', 'user', 'month'] as const) {
    const { rows } = await report(fixture, by);
    const sums = [
      rows.reduce((sum, { amount }) => sum + amount, 0n),
      rows.reduce((sum, { userAmount }) => sum + userAmount, 0n),
    ];
    expect({ by, sums }).toEqual({ by, sums: await taken(fixture) });
  }
}

/** A report that keeps totals, and has kept some before, says the same as one that does not. */
async function expectKept(fixture: LedgerFixture, span: readonly [string, string] = YEAR): Promise<void> {
  for (const by of USAGE_KEYS) {
    for (const isDetailed of [false, true]) {
      const told = await report(fixture, by, span, { isDetailed });
      for (const _ of [1, 2]) {
        expect(await report(fixture, by, span, { isDetailed, cachesTotals: true })).toEqual(told);
      }
    }
  }
}

describe.each(DIALECTS)('a report of usage on %s', (dialect) => {
  it('adds up leases by project, user, month and type, and splits those that cross a border', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf({ hosts: 2, from: '2026-12-01 12:00', until: '2026-12-03 06:00' }));
    await fixture.create(leaseOf({ name: 'b', from: '2026-12-30', until: '2027-01-02' }), 'bob');
    await fixture.create(leaseOf({ name: 'c', from: '2026-12-30', until: '2027-01-02' }), 'bob');
    expect(shown(await report(fixture, 'project'), 'project')).toEqual(['all 228+0 (228 h, 3)']);
    expect(shown(await report(fixture, 'user'), 'user')).toEqual([
      'bob 144+0 (144 h, 2)',
      'alice 84+0 (84 h, 1)',
    ]);
    expect(shown(await report(fixture, 'month'), 'month')).toEqual([
      '2026-12 180+0 (180 h, 3)',
      '2027-01 48+0 (48 h, 2)',
    ]);
    expect(shown(await report(fixture, 'resource_type'), 'resource_type')).toEqual([
      'physical:host 0+0 (228 h, 3)',
    ]);
    expect(shown(await report(fixture, 'user', ['2026-12-02T12:00Z', '2026-12-31']), 'user')).toEqual([
      'bob 48+0 (48 h, 2)',
      'alice 36+0 (36 h, 1)',
    ]);
    expect((await report(fixture, 'project', ['2027-01-02', '2027-02-01'])).rows).toEqual([]);
    await expectTaken(fixture);
  });

  it('splits what cannot be divided so that the parts add up to the whole', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    const lease = { id: 'A', from: '2026-11-22 00:00:01', until: '2027-02-01 00:00:07' };
    await fixture.create(leaseOf(lease));
    fixture.now = '2026-12-03T00:00:05Z';
    await fixture.update(leaseOf(lease), leaseOf({ ...lease, hosts: 3, until: '2027-01-13 07:13:11' }));
    await expectTaken(fixture);
    const within = ['2026-12-03T00:00:06Z', '2026-12-24T01:02:03Z', '2026-12-24T01:02:04Z'];
    const edges = ['2026-01-01', ...within, '2028-01-01'];
    let sum = 0n;
    for (const [index, until] of edges.slice(1).entries()) {
      const { rows } = await report(fixture, 'project', [edges[index] ?? '', until]);
      sum += rows[0]?.amount ?? 0n;
    }
    expect([sum]).toEqual((await taken(fixture)).slice(0, 1));
  });

  it('counts a lease that ended early up to its end, and what was left of it; not one that was taken back', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    const first = leaseOf({ id: 'A', hosts: 2, from: '2026-12-01', until: '2026-12-11' });
    const later = leaseOf({ id: 'B', from: '2026-12-20', until: '2026-12-21' });
    await fixture.create(first);
    await fixture.create(later, 'bob');
    const { undo } = await fixture.create(
      leaseOf({ id: 'C', from: '2026-12-22', until: '2026-12-23' }),
      'eve',
    );
    await fixture.takeBack(undo);
    fixture.now = '2026-12-05T12:00:00Z';
    await fixture.end(first);
    await fixture.end(later, 'bob');
    const expected = ['alice 216+0 (216 h, 1) -1 264 h', 'bob 0+0 (0 h, 1) -1 24 h'];
    expect(shown(await report(fixture, 'user'), 'user')).toEqual(expected);
    // Over the edges of the time.
    expect(shown(await report(fixture, 'user', ['2026-12-05', '2026-12-06']), 'user')).toEqual([
      'alice 24+0 (24 h, 1) -1 24 h',
    ]);
    expect(shown(await report(fixture, 'resource_type'), 'resource_type')).toEqual([
      'physical:host 0+0 (216 h, 2) -2 288 h',
    ]);
    await expectTaken(fixture);
  });

  it('keeps apart what budgets of projects and of users have paid', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.give({ userId: 'bob', amount: '100', until: '2026-12-02' });
    await fixture.give({ userId: 'bob', amount: '100', from: '2026-12-02' });
    await fixture.create(leaseOf({ from: '2026-12-01', until: '2026-12-03' }), 'bob');
    await fixture.create(leaseOf(), 'alice');
    expect(shown(await report(fixture, 'user'), 'user')).toEqual([
      'bob 48+48 (48 h, 1)',
      'alice 24+0 (24 h, 1)',
    ]);
    await expectTaken(fixture);
  });

  it('says of how many leases nobody knows what they reserve', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf());
    await fixture.forgetResources();
    const told = await report(fixture, 'project');
    expect(told.leasesOfUnknownResources).toBe(1);
    expect(shown(told, 'project')).toEqual(['all 24+0 (0 h, 1)']);
  });

  it('knows of a lease that was asked for without reservations that it reserves nothing', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create({ ...leaseOf({ id: 'A' }), reservations: [] });
    const told = await report(fixture, 'project');
    expect(told.leasesOfUnknownResources).toBe(0);
    expect(shown(told, 'project')).toEqual(['all 0+0 (0 h, 1)']);
    await expectKept(fixture);
  });

  it('refuses more rows than are wanted, and has none of an empty ledger or of no project', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    expect(await report(fixture, 'month')).toEqual({
      rows: [],
      leasesOfUnknownResources: 0,
      folded: undefined,
      undated: { amount: 0n, userAmount: 0n },
    });
    await fixture.create(leaseOf());
    await fixture.create(leaseOf({ name: 'b' }), 'bob');
    await expect(report(fixture, 'user', YEAR, { most: 1 })).rejects.toThrow('there are more than 1 rows');
    expect((await report(fixture, 'user', YEAR, { most: 2 })).rows).toHaveLength(2);
    expect((await report(fixture, 'user', YEAR, { projectIds: [] })).rows).toEqual([]);
  });

  it('takes what it has kept only while leases and budgets are what they were', async () => {
    const fixture = await newGround(dialect, { budget: '9000' });
    const running = { id: 'A', hosts: 1, from: '2026-12-30', until: '2027-01-03' };
    await expectKept(fixture);
    await fixture.create(leaseOf(running));
    const { undo } = await fixture.create(leaseOf({ id: 'B', from: '2026-12-29', until: '2027-02-02' }));
    await expectKept(fixture);
    await fixture.takeBack(undo);
    await expectKept(fixture);
    fixture.now = '2027-01-01T12:00:00Z';
    await fixture.update(leaseOf(running), leaseOf({ ...running, hosts: 3 }));
    await expectKept(fixture);
    await fixture.give({ amount: '9000', until: '2026-12-31' });
    await expectKept(fixture);
    await fixture.create(leaseOf({ id: 'C', from: '2027-02-01', until: '2027-02-03' }));
    await expectKept(fixture);
    await fixture.end(leaseOf({ id: 'C', from: '2027-02-01', until: '2027-02-03' }));
    await fixture.end(leaseOf({ ...running, hosts: 3 }));
    await expectKept(fixture);
    await expectKept(fixture, ['2026-12-30T12:00:00Z', '2027-01-01']);
    await expectKept(fixture, ['2026-12-01', '2027-02-02']);
    await expectKept(fixture);
  });

  it.each([
    ['2027-03', '2027-05'],
    ['2027-05', '2027-03'],
  ])(
    'keeps nothing of a lease that may use something outside of the time: of %s, moved to %s',
    async (month, later) => {
      const fixture = await newGround(dialect, { budget: '9000' });
      const moved = leaseOf({ id: 'M', from: `${month}-01`, until: `${month}-03` });
      await fixture.create(moved);
      await fixture.update(moved, { start_date: `${later}-10 00:00`, end_date: `${later}-11 00:00` });
      for (const span of [['2027-03-01', '2027-04-01'], ['2027-05-01', '2027-06-01'], YEAR] as const) {
        await expectKept(fixture, span);
      }
    },
  );

  it('reads leases again only if their revisions have changed, or they are cut', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    const { undo } = await fixture.create(leaseOf({ id: 'A' }));
    const unknown = async (span: readonly [string, string] = YEAR) =>
      (await report(fixture, 'project', span, { cachesTotals: true })).leasesOfUnknownResources;
    expect(await unknown()).toBe(0);
    // As nobody does: the revision stays.
    await fixture.forgetResources();
    expect(await unknown()).toBe(0);
    expect(await unknown(['2026-11-30', '2026-12-03'])).toBe(0);
    expect(await unknown(['2026-12-01T12:00:00Z', '2027-12-03'])).toBe(1);
    expect(await unknown()).toBe(0);
    await fixture.takeBack(undo);
    await fixture.create(leaseOf({ id: 'B', from: '2026-12-05', until: '2026-12-06' }));
    await fixture.forgetResources();
    expect(await unknown()).toBe(1);
  });

  it('counts folded leases where their time is known, and says what it cannot tell', async () => {
    let now = '2026-11-21T09:00:30Z';
    const ledger = await openedLedger(await newLedger(dialect), { now: () => now });
    // The budget to which test leases are charged.
    await giveBudget(ledger, { amount: '1000', from: '2026-12-01', until: '2027-06-01' });
    await recordLease(ledger, { name: 'a' });
    await recordLease(ledger, { name: 'b', userId: 'bob', end: '2026-12-05' });
    await recordLease(ledger, { name: 'o', projectId: 'ocean' });
    now = '2027-02-01T00:00:00Z';
    await recordLease(ledger, { name: 'now', start: '2027-03-01', end: '2027-03-02' });
    const told = (by: UsageKey, span: readonly [string, string]) =>
      report({ ledger, project: 'climate' }, by, span);
    expect(shown(await told('project', ['2026-12-01', '2027-06-01']), 'project')).toEqual([
      'all 144+0 (0 h, 3)',
    ]);
    await fold(ledger, '2027-01-01');
    // All of the time of the budget, up to the date: exact, though nobody knows whose it was.
    const whole = await told('user', ['2026-12-01', '2027-06-01']);
    expect(whole.rows.map(({ userId, amount, leases }) => [userId, formatUnitHours(amount), leases])).toEqual(
      [
        [null, '120', 0],
        ['alice', '24', 1],
      ],
    );
    expect(whole.folded?.leases).toBe(2n);
    expect(whole.undated.amount).toBe(0n);
    const months = await told('month', ['2026-12-01', '2027-06-01']);
    expect(months.rows.map(({ amount }) => formatUnitHours(amount))).toEqual(['120', '24']);
    // A part of it: not known.
    const part = await told('project', ['2026-12-03', '2027-06-01']);
    expect(part.rows.map(({ amount }) => formatUnitHours(amount))).toEqual(['24']);
    expect(formatUnitHours(part.undated.amount)).toBe('120');
    // After it, and before it.
    const later = await told('project', ['2027-01-01', '2027-06-01']);
    expect([later.folded, later.undated.amount, later.rows.length]).toEqual([undefined, 0n, 1]);
    const before = await told('project', ['2026-01-01', '2026-12-01']);
    expect([before.undated.amount, before.rows]).toEqual([0n, []]);
    const all = { projectIds: undefined, from: second('2026-01-01'), until: second('2028-01-01') };
    const everything = await reportUsage(ledger, { ...all, by: 'project' }, NO_WAIT);
    expect(everything.folded?.leases).toBe(2n);
    expect(everything.rows.find(({ projectId }) => projectId === 'climate')?.amount).toBe(
      144n * 3_600_000_000n,
    );
  });
});

it('reads a ledger, and keeps totals, in pieces: no lease is left out or counted twice, whatever gaps there are', async () => {
  const connection = await newLedger('sqlite');
  const ledger = await openedLedger(connection);
  await giveBudget(ledger, { amount: '1000' });
  await recordMany(connection, 6000);
  const file = openSqlite(connection.slice('sqlite://'.length));
  file.exec('DELETE FROM entries WHERE lease BETWEEN 2000 AND 2600');
  file.exec('DELETE FROM leases WHERE id BETWEEN 2000 AND 2600');
  file.exec('UPDATE leases SET resources = \'[[null,[["physical:host",2]]]]\' WHERE id > 1000');
  file.exec("UPDATE leases SET state = 'ended', ended_at = ends_at - 3600000000 WHERE id % 3 = 0");
  file.exec("UPDATE leases SET project_id = 'climate'");
  // More numbers than are kept together.
  file.exec('PRAGMA foreign_keys = OFF');
  file.exec('UPDATE leases SET id = -10 * id');
  file.exec('UPDATE leases SET id = -id');
  file.exec('UPDATE entries SET lease = lease * 10');
  file.close();
  const all = { from: second('2026-01-01'), until: second('2028-01-01') };
  for (const projectIds of [undefined, ['climate']]) {
    for (const [by, cachesTotals] of [
      ...(['project', 'month', 'user', 'user'] as const).map((key) => [key, true] as const),
      ['user', false] as const,
    ]) {
      const { rows } = await reportUsage(ledger, { ...all, projectIds, by, cachesTotals }, NO_WAIT);
      const sum = (of: (row: (typeof rows)[number]) => bigint) =>
        rows.reduce((total, row) => total + of(row), 0n);
      expect({
        amount: sum(({ amount }) => amount),
        leases: sum(({ leases }) => BigInt(leases)),
        early: sum(({ endedEarly }) => BigInt(endedEarly)),
        unused: sum(({ unusedSeconds }) => unusedSeconds),
      }).toEqual({ amount: 5400n * 86_400_000_000n, leases: 5400n, early: 1800n, unused: 1467n * 7200n });
    }
  }
});

describe('the files of a report', () => {
  const HOSTILE = [
    '=cmd()',
    '+1',
    '-1',
    '@a',
    '\t=1',
    '__proto__',
    'é\u{1f600}\u202e',
    'a\r\nb,"c"',
    "'=1",
    ' x ',
  ];

  it('open in a spreadsheet without running anything, and are CSV whatever ids there are', async () => {
    const fixture = await newGround('sqlite', { budget: '1000' });
    for (const user of HOSTILE) {
      await fixture.create(leaseOf({ name: user }), user);
    }
    const text = await textOf(usageCsv(await report(fixture, 'user'), 'user', '=unit'));
    const { parse } = await import('csv-parse/sync');
    const [head, ...rows] = parse(text) as string[][];
    expect(head).toEqual([
      'project_id',
      'user_id',
      'amount',
      'user_amount',
      'unit',
      'resource_hours',
      'leases',
      'ended_early',
      'unused_hours',
      'amount_exact',
      'user_amount_exact',
    ]);
    const shown = ["'=cmd()", "'+1", "'-1", "'@a", "'\t=1", '__proto__', 'é\u{1f600}\u202e', 'a\r\nb,"c"'];
    expect(rows.map((cells) => cells[1]).sort()).toEqual([...shown, "''=1", ' x '].sort());
    expect(new Set(rows.map(([, , ...cells]) => cells.join()))).toEqual(
      new Set([`24,0,'=unit,24,1,0,0,86400000000,0`]),
    );
    expect(rows.flat().filter((cell) => /^[=+\-@\t]/.test(cell))).toEqual([]);
  });

  it('have the columns of FOCUS 1.2: one row for each project and month, without a price', async () => {
    const fixture = await newGround('sqlite', { budget: '1000' });
    await fixture.create(leaseOf({ from: '2026-12-31 12:00', until: '2027-01-02' }));
    const detailed = await report(fixture, 'user', ['2026-12-05', '2027-01-20'], { isDetailed: true });
    const text = await textOf(usageFocus(detailed, 'user', 'node-hours', (id) => `=${id}`));
    const { parse } = await import('csv-parse/sync');
    const rows = parse(text, { columns: true }) as Record<string, string>[];
    expect(rows.map((row) => [row.ChargePeriodStart, row.ChargePeriodEnd, row.ConsumedQuantity])).toEqual([
      ['2026-12-05T00:00:00Z', '2027-01-01T00:00:00Z', '12'],
      ['2027-01-01T00:00:00Z', '2027-01-20T00:00:00Z', '24'],
    ]);
    expect(rows[0]).toMatchObject({
      BillingAccountId: fixture.project,
      BillingAccountName: `'=${fixture.project}`,
      SubAccountId: 'alice',
      BillingPeriodStart: '2026-12-01T00:00:00Z',
      BillingPeriodEnd: '2027-01-01T00:00:00Z',
      BilledCost: '0',
      EffectiveCost: '0',
      ListCost: '0',
      ContractedCost: '0',
      BillingCurrency: 'XXX',
      ChargeCategory: 'Usage',
      ChargeClass: '',
      ConsumedUnit: 'Node-Hours',
      PricingUnit: 'Node-Hours',
      PricingQuantity: '12',
      x_ExactQuantity: '43200000000',
      x_ResourceType: '',
    });
    expect(await textOf(usageFocus({ ...detailed, rows: [] }, 'user', 'x', () => null))).toBe(
      `${Object.keys(rows[0] ?? {}).join(',')}\r\n`,
    );
    const types = await report(fixture, 'resource_type', YEAR, { isDetailed: true });
    const ofTypes = parse(await textOf(usageFocus(types, 'resource_type', 'x', () => null)), {
      columns: true,
    }) as Record<string, string>[];
    expect(ofTypes.map((row) => [row.x_ResourceType, row.ConsumedQuantity, row.ConsumedUnit])).toEqual([
      ['physical:host', '12', 'Resource-Hours'],
      ['physical:host', '24', 'Resource-Hours'],
    ]);
  });
});

describe('the time of a report', () => {
  const now = second('2026-12-15') * 1_000_000n;
  const span = (from?: string, until?: string) => {
    const told = reportSpan({ from: from && second(from), until: until && second(until) } as never, now);
    return [told.from, told.until].map((one) => new Date(Number(one) * 1000).toISOString().slice(0, 10));
  };

  it('is by default the month up to now', () => {
    expect(span()).toEqual(['2026-12-01', '2026-12-15']);
    expect(span(undefined, '2026-12-01')).toEqual(['2026-11-01', '2026-12-01']);
    expect(span('2024-02-29')).toEqual(['2024-02-29', '2026-12-15']);
  });

  it('ends after it begins, and is no longer than ten years', () => {
    expect(() => span('2026-12-02', '2026-12-01')).toThrow('until: expected a time after from');
    expect(() => span('2027-12-02')).toThrow('from: expected a time before now, or until');
    expect(() => span('2006-12-02', '2026-12-01')).toThrow('from: expected at most 3660 days before until');
  });
});
