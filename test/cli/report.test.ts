/** `report usage`: what was used, as a table and in files. */
import { describe, expect, it } from 'vitest';
import { fold } from '../ledger/folding/folded-ledgers.ts';
import { copiedLedgers, recordLease } from '../ledger/recorded-leases.ts';
import { rows } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile } from '../support/files.ts';
import { giveBudget, ledgerAt } from '../support/ledgers.ts';
import { printed, refusedWith } from '../support/run-command.ts';

const newLedger = copiedLedgers(async (connection) => {
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { amount: '1000' });
  await recordLease(ledger, { name: 'a', end: '2026-12-03' });
  await recordLease(ledger, { name: 'b', userId: 'bob', start: '2026-12-31', end: '2027-01-02' });
  await recordLease(ledger, { name: 'c', projectId: '=1+1', userId: '__proto__' });
  await ledger.close();
});

function reportOn(connection: string) {
  const file = confFile(
    `[enforcement]\nenabled_filters = UsageBudgetFilter\n[ledger]\nconnection = ${connection}\n`,
  );
  return (...args: string[]) => runProgramInProcess(['report', 'usage', ...args, '--config-file', file]);
}

const WINTER = ['--from', '2026-12-01', '--until', '2027-02-01'];

describe('report usage', () => {
  it('prints a table by project, user, month and resource type', async () => {
    const report = reportOn(await newLedger());
    const stdout = printed(await report(...WINTER));
    expect(rows(stdout)).toEqual([
      [
        'PROJECT',
        'NODE-HOURS',
        'OF BUDGETS OF USERS',
        'RESOURCE HOURS',
        'LEASES',
        'ENDED EARLY',
        'UNUSED HOURS',
      ],
      ['climate', '96', '0', '0', '2', '0', '0'],
      ['=1+1', '24', '0', '0', '1', '0', '0'],
    ]);
    const table = async (...flags: string[]) => rows((await report(...flags)).stdout).slice(1);
    expect(await table(...WINTER, '--by', 'user', '--project', 'climate')).toEqual([
      ['climate', 'alice', '48', '0', '0', '1', '0', '0'],
      ['climate', 'bob', '48', '0', '0', '1', '0', '0'],
    ]);
    expect(await table(...WINTER, '--by', 'month')).toEqual([
      ['2026-12', '96', '0', '0', '3', '0', '0'],
      ['2027-01', '24', '0', '0', '1', '0', '0'],
    ]);
    expect(await table(...WINTER, '--by', 'resource_type')).toEqual([]);
    expect(await table('--from', '2020-01-01', '--until', '2021-01-01')).toEqual([]);
  });

  it('prints JSON, CSV and FOCUS', async () => {
    const report = reportOn(await newLedger());
    const told = JSON.parse((await report(...WINTER, '--by', 'user', '--format', 'json')).stdout);
    expect(told).toMatchObject({
      from: '2026-12-01T00:00:00Z',
      until: '2027-02-01T00:00:00Z',
      by: 'user',
      unit: 'node-hours',
      undated: { amount: '0' },
      folded: null,
      leases_of_unknown_resources: 0,
    });
    expect(
      told.rows.map((row: Record<string, unknown>) => [row.project_id, row.user_id, row.amount]),
    ).toEqual([
      ['climate', 'alice', '48'],
      ['climate', 'bob', '48'],
      ['=1+1', '__proto__', '24'],
    ]);
    expect(told.rows[0].exact).toEqual({ amount: '172800000000', user_amount: '0' });
    const csv = (await report(...WINTER, '--by', 'user', '--format', 'csv')).stdout.split('\r\n');
    expect(csv.slice(1)).toEqual([
      'climate,alice,48,0,node-hours,0,1,0,0,172800000000,0',
      'climate,bob,48,0,node-hours,0,1,0,0,172800000000,0',
      "'=1+1,__proto__,24,0,node-hours,0,1,0,0,86400000000,0",
      '',
    ]);
    const focus = (await report(...WINTER, '--format', 'focus')).stdout.trim().split('\r\n');
    expect(focus.map((line) => line.split(',').length)).toEqual([27, 27, 27, 27]);
    expect(focus[0]).toMatch(/^BilledCost,BillingAccountId,.*,x_ExactQuantity,x_ResourceType$/);
  });

  it('is empty for an empty ledger', async () => {
    const empty = copiedLedgers(async () => {});
    const report = reportOn(await empty());
    expect(rows((await report(...WINTER)).stdout)).toHaveLength(1);
    expect(JSON.parse((await report('--format', 'json')).stdout).rows).toEqual([]);
    expect((await report('--format', 'csv')).stdout).toMatch(/^project_id,[a-z_,]+\r\n$/);
  });

  it('warns of what folded leases leave out', async () => {
    const connection = await newLedger();
    const ledger = await ledgerAt(connection, { now: () => '2027-05-01T00:00:00Z' });
    await recordLease(ledger, { name: 'later', start: '2027-06-01', end: '2027-06-02' });
    await fold(ledger, '2027-01-15');
    await ledger.close();
    const { code, stderr } = await reportOn(connection)('--from', '2026-12-02', '--until', '2027-07-01');
    expect(code).toBe(0);
    expect(stderr.split('\n')).toEqual([
      'warning: 2 leases that ended before 2027-01-15T00:00:00Z are folded into totals: only amounts count them',
      'warning: folded leases have taken 96 node-hours in this period or outside it: no row counts it',
      '',
    ]);
  });

  it('refuses wrong times and words, and takes a date without an offset for UTC', async () => {
    const report = reportOn(await newLedger());
    for (const [flags, message] of [
      [
        ['--by', 'day'],
        "option '--by <what>' argument 'day' is invalid. Allowed choices are project, user, month, resource_type.",
      ],
      [['--from', '2027-01-01', '--until', '2026-01-01'], '--until: expected a time after from'],
      [['--from', 'soon'], '--from: expected an ISO 8601 date'],
      [['--until', '2026-01-01T00:00:00.5Z'], '--until: expected an ISO 8601 date, to the second'],
      [['--from', '1990-01-01', '--until', '2026-01-01'], '--from: expected at most 3660 days before until'],
    ] as const) {
      expect(await report(...flags)).toEqual(refusedWith(message));
    }
    const csv = async (from: string) =>
      (await report('--from', from, '--until', '2026-12-02', '--format', 'csv')).stdout;
    expect(await csv('2026-12-01T06:00')).toBe(await csv('2026-12-01T07:00:00+01:00'));
    expect(await csv('2026-12-01T06:00')).toContain('climate,18,');
  });
});
