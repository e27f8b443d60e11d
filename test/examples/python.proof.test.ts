/** examples/python, with the tokens of a real Keystone. */

import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { RealKeystone } from '../peers/keystone.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { newLedger } from '../support/ledgers.ts';
import { skipAloud } from '../support/peers.ts';
import { policyServer } from '../support/policy-server.ts';
import { runServiceOf } from '../support/running-service.ts';

const PYTHON = '/usr/bin/python3';
const OPERATOR = 'of-an-operator-0123456789abcdef';
const hasSdk = spawnSync(PYTHON, ['-c', 'import openstack, keystoneauth1']).status === 0;
if (!hasSdk) {
  skipAloud('openstacksdk', `${PYTHON} has no such module`);
}
const keystone = hasSdk ? await RealKeystone.start() : undefined;
afterAll(() => keystone?.remove());

describe.skipIf(keystone === undefined)('examples/python/budgets.py', () => {
  const real = keystone as RealKeystone;

  async function service() {
    return runServiceOf({
      service: { keystone_auth: true, operator_tokens: [OPERATOR] },
      keystone: {
        auth_url: real.url,
        username: 'blazar',
        password: 'blazar',
        project_name: 'service',
        resolve_names: true,
      },
      ledger: { connection: await newLedger() },
      enforcement: { enabled_filters: ['UsageBudgetFilter'] },
    });
  }

  /** As alice, in `climate`. */
  async function example(endpoint: string, password = 'alice') {
    const variables = {
      AUTH_URL: real.url,
      USERNAME: 'alice',
      PASSWORD: password,
      PROJECT_NAME: 'climate',
      USER_DOMAIN_NAME: 'Default',
      PROJECT_DOMAIN_NAME: 'Default',
    };
    const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [`OS_${name}`, value]));
    const folder = temporaryFolder();
    const started = promisify(execFile)(PYTHON, [projectFile('examples/python/budgets.py'), endpoint], {
      env: { PATH: process.env.PATH, HOME: folder, PYTHONNOUSERSITE: '1', PYTHONWARNINGS: 'ignore', ...env },
      cwd: folder,
    });
    const { stdout, stderr, code } = await started.then(
      (written) => ({ ...written, code: 0 }),
      (failed: { stdout: string; stderr: string; code: number }) => failed,
    );
    return { code, stdout, stderr };
  }

  it('shows what is left of all budgets, across pages, and what a lease would cost', async () => {
    const { url, post } = await service();
    const { climate, physics } = real.ids.projects;
    const year = new Date().getUTCFullYear();
    const budget = (project_id: string, from: number, amount: string, more: object = {}) =>
      post(
        '/v1/budgets',
        {
          project_id,
          amount,
          reason: 'a proof',
          valid_from: `${from}-01-01`,
          valid_until: `${from + 1}-01-01`,
          ...more,
        },
        { 'X-Auth-Token': OPERATOR },
      );
    // The lease is in it, also on the last day of the year.
    const long = { valid_until: `${year + 2}-01-01` };
    expect((await budget(climate, year, '40', long)).status).toBe(201);
    // More than a page.
    for (let later = 2; later < 56; later += 1) {
      expect((await budget(climate, year + later, '40')).status).toBe(201);
    }
    expect((await budget(climate, year, '30', { ...long, user_id: real.ids.users.alice })).status).toBe(201);
    expect((await budget(physics, year, '7')).status).toBe(201);
    const { code, stdout, stderr } = await example(url);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    const ofProject = lines.filter((line) => line.startsWith('the project: 40 of 40 node-hours left until '));
    expect(ofProject).toHaveLength(55);
    expect(lines).toContain(`alice: 30 of 30 node-hours left until ${year + 2}-01-01T00:00:00Z`);
    expect(stdout).not.toContain(' 7 ');
    expect(stdout).toMatch(
      /^two hosts for a day: The lease would cost 48 node-hours; .* has (30|40) node-hours left/m,
    );
    expect(stdout).toMatch(/^ {2}or: /m);
  });

  it.each([
    ['an error without a body of ours', { status: 502, body: 'no' }, /the service answered 502/],
    ['a redirect', { status: 302, headers: { Location: 'http://127.0.0.1:1/' } }, /answered 302/],
    ['a list where an object should be', { status: 200, body: '[]' }, /the service answered 200/],
    ['a problem', { status: 403, body: '{"detail":"not yours"}' }, /^error: not yours$/m],
  ])('says in one line what is wrong when it meets %s', async (_, answer, message) => {
    const { url } = await policyServer(answer);
    const { code, stdout, stderr } = await example(url);
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(message) });
    expect(stderr.trimEnd()).not.toContain('\n');
  });

  it('says in one line that Keystone refuses the account', async () => {
    const { requests, url } = await policyServer({ status: 200, body: '{}' });
    const { code, stdout, stderr } = await example(url, 'wrong');
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: .*401/),
    });
    expect(requests).toEqual([]);
  });
});
