/** `budget --endpoint` does and prints what the command does on the ledger itself. Against a real service. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { budgetCommand } from '../../../src/cli/budget.ts';
import { copiedLedgers } from '../../ledger/recorded-leases.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { policyServer } from '../../support/policy-server.ts';
import { refused, refusedWith } from '../../support/run-command.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { commandsOn, fill } from '../ledger/setup.ts';

const newLedger = copiedLedgers(fill);
const YEAR = ['--from', '2100-01-01', '--until', '2101-01-01'];

/** The command on a ledger, and the same at a service that has it. */
async function both() {
  const connection = await newLedger();
  const { url } = await runServiceOf({
    service: {
      operator_tokens: ['of-an-operator-0123456789abcdef'],
      reader_tokens: ['of-a-reader-0123456789abcdef'],
    },
    ledger: { connection },
    enforcement: {
      enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'],
      max_leases_per_project: 1000,
    },
  });
  vi.stubEnv('BLAZAR_ENFORCEMENT_TOKEN', 'of-an-operator-0123456789abcdef');
  const remote = (...args: string[]) => runInProcess(budgetCommand(), [...args, '--endpoint', url]);
  return { url, local: commandsOn(connection).budget, remote };
}

describe('budget --endpoint', () => {
  it('prints what the command prints on the ledger itself', async () => {
    const { local, remote } = await both();
    for (const args of [
      ['list'],
      ['list', '--format', 'json'],
      ['show', 'climate'],
      ['show', 'climate', '--format', 'json'],
      ['history'],
      ['history', 'climate', '--format', 'json'],
      ['export'],
      ['export', '--format', 'json'],
      ['export', 'climate'],
    ]) {
      expect({ args, ...(await remote(...args)) }).toEqual({ args, ...(await local(...args)) });
    }
  });

  it('sets, changes, removes and refuses as on the ledger itself', async () => {
    const one = await both();
    const other = await both();
    const why = ['--reason', 'why'];
    for (const args of [
      ['set', 'climate', '--amount', '12.5', ...YEAR, ...why],
      ['set', 'climate', '--user', 'bob', '--amount', '0.000001', ...YEAR, ...why],
      ['set', 'climate', '--amount', '5', '--from', '2026-01-01', '--until', '2099-01-01', ...why],
      ['set', 'climate', '--amount', '1', '--from', '2027-01-01', '--until', '2099-06-01', ...why],
      ['set', 'climate', '--amount', '1', '--from', 'soon', '--until', '2100-01-01', ...why],
      ['remove', 'climate', '--user', 'bob', '--from', '2100-01-01', ...why],
      ['remove', 'climate', '--user', 'bob', '--from', '2100-01-01', ...why],
    ]) {
      expect({ args, ...(await one.remote(...args)) }).toEqual({ args, ...(await other.local(...args)) });
    }
    const history = await one.local('history', '--format', 'json');
    expect(JSON.parse(history.stdout).at(-1)).toMatchObject({ who: 'operator token', reason: 'why' });
  });

  it('imports and exports files as on the ledger itself', async () => {
    const one = await both();
    const other = await both();
    const file = join(temporaryFolder(), 'budgets.csv');
    const head = 'project_id,user_id,valid_from,valid_until,amount\n';
    const why = ['--reason', 'why'];
    for (const [text, ...args] of [
      [`${head}ocean,,2027-01-01,2028-01-01,7\nclimate,,2026-01-01,2098-01-01,5\n`, '--dry-run'],
      [`${head}ocean,,2027-01-01,2028-01-01,7\nclimate,,2026-01-01,2098-01-01,5\n`],
      [`${head}ocean,,2027-01-01,2028-01-01,7\n`, '--format', 'json'],
      [`${head}ocean,,soon,2028-01-01,7\nocean,,2027-06-01,2028-06-01,-7\n`],
      ['project\n'],
    ] as const) {
      writeFileSync(file, text);
      const told = await one.remote('import', file, ...args, ...why);
      expect({ text, ...told }).toEqual({ text, ...(await other.local('import', file, ...args, ...why)) });
    }
    const exported = await one.remote('export');
    writeFileSync(file, exported.stdout);
    expect((await one.remote('import', file, ...why)).stdout).toBe('done: 0 set, 0 changed, 2 unchanged\n');
  });

  it('shows a token from a file that others cannot read, and needs a reason', async () => {
    const { remote } = await both();
    const file = temporaryFile('token', 'of-a-reader-0123456789abcdef\n');
    expect(await remote('list', '--token-file', file)).toMatchObject({ code: 0 });
    const set = ['set', 'climate', '--amount', '1', ...YEAR];
    expect(await remote(...set, '--reason', 'x', '--token-file', file)).toEqual(
      refusedWith('expected a caller with more rights'),
    );
    chmodSync(file, 0o644);
    expect(await remote('list', '--token-file', file)).toMatchObject({ code: 2 });
    expect(await remote(...set)).toEqual(refused(/--reason/));
    expect(await remote(...set, '--reason', 'x', '--who', 'me')).toMatchObject({ code: 2 });
    expect(await remote('import', '/nowhere.csv', '--dry-run', '--who', 'me')).toEqual(
      refusedWith('--who: a service records'),
    );
    vi.stubEnv('BLAZAR_ENFORCEMENT_TOKEN', 'wrong');
    expect(await remote('list')).toEqual(refused('expected a valid token in the header X-Auth-Token'));
  });

  it('says in one line what is wrong with an endpoint', async () => {
    vi.stubEnv('BLAZAR_ENFORCEMENT_TOKEN', 'a-secret-token');
    for (const [answer, message] of [
      [
        { status: 200, headers: { 'Content-Type': 'text/html' } },
        /^error: http:.* not as blazar-enforcement/,
      ],
      [
        { status: 503, headers: { 'Retry-After': '7' } },
        /^error: .* answered 503 \(it asks to wait 7 s\)\n$/,
      ],
    ] as const) {
      const { url } = await policyServer({ ...answer, body: 'busy' });
      const told = await runInProcess(budgetCommand(), ['list', '--endpoint', url]);
      expect(told).toEqual(refused(message, 3));
      expect(told.stderr).not.toContain('a-secret-token');
    }
    expect(await runInProcess(budgetCommand(), ['list', '--endpoint', 'http://user:secret@x/'])).toEqual(
      refused('--endpoint: expected the address of a service, such as https://enforcement.example.org'),
    );
  });
});
