/** What commands print and take with `[keystone] resolve_names`. */
import { describe, expect, it } from 'vitest';
import { decisionsCommand } from '../../../src/cli/decisions.ts';
import { recordLease } from '../../ledger/recorded-leases.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { aRecord } from '../../support/decision-logs.ts';
import { confFile, sectionText } from '../../support/files.ts';
import { ledgerAt, newLedger } from '../../support/ledgers.ts';
import { IDS, recorded, recordedKeystone } from '../../support/recorded-identities.ts';
import { refusedWith } from '../../support/run-command.ts';
import { COMING, commandsWith } from '../ledger/setup.ts';

const YEAR = ['--from', '2100-01-01', '--until', '2101-01-01'];
const NAMED = `climate@Default (${IDS.climate})`;

async function setup(lines = '') {
  const keystone = await recordedKeystone();
  const connection = await newLedger();
  const ledger = await ledgerAt(connection);
  await recordLease(ledger, {
    projectId: IDS.climate,
    userId: IDS.alice,
    name: 'ocean',
    leaseId: 'l1',
    ...COMING,
  });
  await ledger.close();
  const { resolve_names: _, ...options } = keystone.options;
  const commands = commandsWith(
    `[enforcement]\nenabled_filters = UsageBudgetFilter\n[ledger]\nconnection = ${connection}\n${sectionText('keystone', options)}${lines || 'resolve_names = true'}\n`,
  );
  return { keystone, ...commands };
}

describe('budget', () => {
  it('set takes a name@domain, and show and list print names with their ids', async () => {
    const { budget } = await setup();
    const set = await budget('set', 'climate@Default', '--amount', '1', ...YEAR);
    expect(set).toMatchObject({ code: 0, stderr: '' });
    expect(set.stdout).toContain(`1       ${NAMED} `);
    expect((await budget('show', 'climate@Default')).stdout).toContain(NAMED);
    expect(JSON.parse((await budget('list', '--format', 'json')).stdout)).toMatchObject([
      {
        project_id: IDS.climate,
        project_name: 'climate',
        project_domain: 'Default',
        user_id: null,
        user_name: null,
      },
    ]);
    const byId = await budget('set', IDS.climate, '--amount', '2', ...YEAR);
    expect(byId.stdout).toContain('2 node-hours');
    expect(byId.stdout).not.toContain('1 node-hours');
  });

  it.each(['nobody@Default', 'climate@nobody', 'Climate@Default', 'climate@default', '@', 'a@'])(
    'set refuses %s, which Keystone does not have',
    async (name) => {
      const { budget } = await setup();
      const result = await budget('set', name, '--amount', '1', ...YEAR);
      expect(result).toEqual(refusedWith(`Keystone has no project ${name}`));
      expect(JSON.parse((await budget('list', '--format', 'json')).stdout)).toEqual([]);
    },
  );

  it('set refuses a name that cannot be looked up; an id needs no Keystone', async () => {
    const { budget, keystone } = await setup();
    keystone.answer('GET /v3/projects?name=climate&domain_id=default', recorded('projects-list-forbidden'));
    const forbidden = await budget('set', 'climate@Default', '--amount', '1', ...YEAR);
    expect(forbidden).toEqual(refusedWith('may not list projects (403)'));
    await keystone.stop();
    const away = await budget('set', 'climate@Default', '--amount', '1', ...YEAR);
    expect(away).toEqual(refusedWith('its id is not known'));
    const byId = await budget('set', IDS.climate, '--amount', '1', ...YEAR);
    expect(byId).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('warning: Keystone did not return all names'),
    });
    expect(byId.stdout).toContain(IDS.climate);
  });

  it('takes every text as an id without resolve_names, and warns of what looks like a name', async () => {
    const { budget, keystone } = await setup('resolve_names = false');
    const { code, stdout, stderr } = await budget('set', 'climate@Default', '--amount', '1', ...YEAR);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^1 +climate@Default +2100/m);
    expect(stderr).toMatch(/^warning: project climate@Default is taken for an id: names need/);
    expect(keystone.asked).toEqual([]);
  });
});

it('ledger list prints names, and selects by them', async () => {
  const { ledger } = await setup();
  const { stdout, stderr } = await ledger('list', '--project', 'climate@Default');
  expect(stderr).toBe('');
  expect(stdout).toContain(`${NAMED}  alice@Default (${IDS.alice})  ocean`);
  expect(JSON.parse((await ledger('list', '--format', 'json')).stdout)).toMatchObject([
    { user_name: 'alice', user_domain: 'Default', project_name: 'climate' },
  ]);
});

it('decisions tail shows the names of records, and selects by them', async () => {
  const names = { project_name: 'climate', project_domain: 'Default', user_name: 'alice', user_domain: null };
  const records = [aRecord({ project_id: 'p1', user_id: 'u1', ...names }), aRecord({ project_id: 'p2' })];
  const file = confFile(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
  const { stdout } = await runInProcess(decisionsCommand(), ['tail', '--project', 'climate@Default', file]);
  expect(stdout).toContain('climate@Default (p1)  alice (u1)');
  expect(stdout).not.toContain('p2');
  expect((await runInProcess(decisionsCommand(), ['tail', '--project', 'p2', file])).stdout).toContain('p2');
});
