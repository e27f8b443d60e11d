/** `report usage`, `ledger` and `project` at a real service. `budget --endpoint` has its own file. */

import { describe, expect, it } from 'vitest';
import { fold } from '../ledger/folding/folded-ledgers.ts';
import { copiedLedgers } from '../ledger/recorded-leases.ts';
import { rows } from '../support/check-command.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile } from '../support/files.ts';
import { ledgerAt } from '../support/ledgers.ts';
import { policyServer } from '../support/policy-server.ts';
import { createLasting } from '../support/requests.ts';
import { refused } from '../support/run-command.ts';
import { runServiceOf } from '../support/running-service.ts';
import { startService } from '../support/services.ts';
import { fill } from './ledger/setup.ts';

const newLedger = copiedLedgers(fill);
/** With leases of which only totals are left. */
const foldedLedger = copiedLedgers(async (connection) => {
  await fill(connection);
  const ledger = await ledgerAt(connection);
  await fold(ledger, '2020-01-01');
  await ledger.close();
});
const OPERATOR = 'of-an-operator-0123456789abcdef';
const FILTERS = ['MaxLeaseDurationFilter', 'UsageBudgetFilter'];

/** A command on a ledger, and at a service that has it. */
async function both(make: () => Promise<string> = newLedger) {
  const connection = await make();
  const { url, post } = await runServiceOf({
    service: { operator_tokens: [OPERATOR], decision_store: 'all' },
    ledger: { connection },
    enforcement: { enabled_filters: FILTERS, max_lease_duration: 86_400 },
  });
  const file = confFile(
    `[enforcement]\nenabled_filters = ${FILTERS.join(', ')}\nmax_lease_duration = 86400\n[ledger]\nconnection = ${connection}\n`,
  );
  return {
    post,
    local: (...args: string[]) => runProgramInProcess([...args, '--config-file', file]),
    remote: (...args: string[]) =>
      runProgramInProcess([...args, '--endpoint', url], { env: { BLAZAR_ENFORCEMENT_TOKEN: OPERATOR } }),
  };
}

describe('report usage --endpoint', () => {
  it.each([
    ['leases', newLedger],
    ['totals', foldedLedger],
  ])('prints what the command prints on the ledger itself, of %s', async (_, make) => {
    const { local, remote } = await both(make);
    const all = ['report', 'usage', '--from', '2016-01-01', '--until', '2017-01-01'];
    const to = ['report', 'usage', '--from', '2096-01-01', '--until', '2097-01-01'];
    for (const args of [
      ...['project', 'user', 'month', 'resource_type'].flatMap((by) => [
        [...all, '--by', by],
        [...all, '--by', by, '--format', 'json'],
        [...to, '--by', by, '--format', 'csv'],
        [...to, '--by', by, '--format', 'focus'],
      ]),
      [...to, '--project', 'ocean', '--format', 'json'],
      ['report', 'usage', '--from', 'soon'],
    ]) {
      expect({ args, ...(await remote(...args)) }).toEqual({ args, ...(await local(...args)) });
    }
    // A service refuses what no flag shows to be wrong.
    expect(await remote('report', 'usage', '--from', '2000-01-01')).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('ledger --endpoint', () => {
  it.each([
    ['leases', newLedger],
    ['totals', foldedLedger],
  ])('lists the leases of a project as on the ledger itself, of %s', async (_, make) => {
    const { local, remote } = await both(make);
    for (const more of [
      [],
      ['--format', 'json'],
      ['--state', 'open'],
      ['--state', 'ended', '--user', 'bob'],
      ['--limit', '1'],
    ]) {
      const args = ['ledger', 'list', '--project', 'climate', ...more];
      expect({ args, ...(await remote(...args)) }).toEqual({ args, ...(await local(...args)) });
    }
  });

  it('finds a project by the name that the service shows', async () => {
    const project = { id: '4f1d0c2b', name: 'climate', domain: 'Default' };
    const { url, requests } = await startService((response) => {
      const isList = requests.at(-1)?.path.startsWith('/v1/projects?') ?? false;
      const page = isList ? { items: [{ project }] } : { items: [], folded: null };
      response
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ ...page, next: null }));
    });
    const endpoint = ['--endpoint', new URL(url).origin];
    const list = (name: string) => runProgramInProcess(['ledger', 'list', '--project', name, ...endpoint]);
    expect(await list('climate@Default')).toMatchObject({ code: 0, stderr: '' });
    expect(requests.at(-1)?.path).toMatch(/^\/v1\/projects\/4f1d0c2b\/leases\?/);
    expect(await list('ocean@Default')).toEqual(
      refused('the service shows no project ocean@Default: expected an id, or name@domain'),
    );
  });

  it('says in one line what a service cannot do', async () => {
    const { remote } = await both();
    expect(await remote('ledger', 'list')).toEqual(
      refused('--project: required with --endpoint: a service lists the leases of one project'),
    );
    for (const args of [['upgrade'], ['show', 'x'], ['export'], ['verify'], ['reconcile'], ['compact']]) {
      expect({ args, ...(await remote('ledger', ...args)) }).toEqual({
        args,
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: --endpoint: only ledger list asks a service; [^\n]+\n$/),
      });
    }
  });
});

describe('project', () => {
  it('lists projects, and shows the budgets, leases and decisions of one', async () => {
    const { remote, post } = await both();
    const list = await remote('project', 'list');
    expect({ ...list, stdout: rows(list.stdout) }).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        ['PROJECT', 'OPEN LEASES', 'BUDGET', 'TAKEN', 'LEFT', 'UNTIL'],
        ['climate', '1', '1000', '48', '952', '2098-01-01T00:00:00Z'],
        ['ocean', '1'],
      ],
    });
    expect(rows((await remote('project', 'list', '--search', 'OCE')).stdout).slice(1)).toEqual([
      ['ocean', '1'],
    ]);
    const { stdout } = await remote('project', 'show', 'climate');
    expect(stdout).toMatch(/^USER +FROM +UNTIL +NODE-HOURS +TAKEN +PLANNED +LEFT\n.* 1000 +48 +24 +952\n\n/);
    expect(stdout).toMatch(/\n#1 +lease-1 +alice +first .* pending +24\n$/);
    const shown = JSON.parse((await remote('project', 'show', 'climate', '--format', 'json')).stdout);
    expect(shown).toMatchObject({ project: { id: 'climate' }, limits: expect.any(Array) });

    const { context, lease } = createLasting(86_401, { project_id: 'climate' });
    expect((await post('/check-create', { context, lease }, { 'X-Auth-Token': OPERATOR })).status).toBe(403);
    const decisions = () => remote('project', 'decisions', 'climate', '--outcome', 'refused', '--limit', '1');
    await expect
      .poll(async () => rows((await decisions()).stdout).slice(1), { timeout: 20_000 })
      .toHaveLength(1);
    expect((await decisions()).stdout).toMatch(/rejected +create +alice .*MaxLeaseDurationFilter +The lease/);
    const json = await remote('project', 'decisions', 'climate', '--format', 'json');
    expect(JSON.parse(json.stdout)).toMatchObject([{ outcome: 'rejected', project: { id: 'climate' } }]);
  });

  it('needs a service, and says in one line what is wrong with it', async () => {
    expect(await runProgramInProcess(['project', 'list'])).toEqual(
      refused("required option '--endpoint <url>' not specified"),
    );
    const server = await policyServer({
      status: 200,
      headers: { 'Content-Type': 'application/json' },
      body: '{"items":[{"__proto__":5}],"next":null}',
    });
    for (const args of [['list'], ['show', 'a/../b'], ['decisions', 'x']]) {
      expect(await runProgramInProcess(['project', ...args, '--endpoint', server.url])).toEqual(
        refused(/^error: the service answered something else than expected[^\n]+\n$/, 3),
      );
    }
    expect(server.requests.map(({ url }) => url)).toContain('/v1/projects/a%2F..%2Fb');
  });
});
