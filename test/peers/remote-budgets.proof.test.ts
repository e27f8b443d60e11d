/** `budget … --endpoint` at a service beside a real Keystone: whose token it is decides what may be done. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { budgetCommand } from '../../src/cli/budget.ts';
import { runInProcess } from '../support/command-in-process.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { newLedger } from '../support/ledgers.ts';
import { runServiceOf } from '../support/running-service.ts';
import { RealKeystone } from './keystone.ts';

const YEAR = ['--from', '2100-01-01', '--until', '2101-01-01'];
const WHY = ['--reason', 'why'];
const keystone = await RealKeystone.start();
afterAll(() => keystone?.remove());
afterEach(() => vi.unstubAllEnvs());

describe.skipIf(keystone === undefined)('budgets at a service beside a real Keystone', () => {
  const real = keystone as RealKeystone;

  beforeAll(async () => {
    const made = await real.ask('POST', '/roles', { role: { name: 'manager' } });
    const { id } = (made.body as { role: { id: string } }).role;
    const { users, projects } = real.ids;
    for (const [project, user] of [
      [projects.climate, users.bob],
      [projects.physics, users.carol],
    ]) {
      await real.ask('PUT', `/projects/${project}/users/${user}/roles/${id}`);
    }
  });

  async function serving() {
    const { url, logger } = await runServiceOf({
      service: { keystone_auth: true, token_cache_time: 1 },
      keystone: {
        auth_url: real.url,
        username: 'blazar',
        password: 'blazar',
        project_name: 'service',
      },
      ledger: { connection: await newLedger() },
      enforcement: { enabled_filters: ['UsageBudgetFilter'] },
    });
    const budget = (...args: string[]) => runInProcess(budgetCommand(), [...args, '--endpoint', url]);
    /** With a token of Keystone, pasted. */
    const as = async (user: string, project: string) => {
      const token = await real.token(user, { project });
      return (...args: string[]) => {
        vi.stubEnv('BLAZAR_ENFORCEMENT_TOKEN', token);
        return budget(...args);
      };
    };
    const api = async (token: string, method: string, path: string, body?: object) => {
      const answer = await fetch(url + path, {
        method,
        headers: { 'X-Auth-Token': token, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, json: text === '' ? undefined : JSON.parse(text) };
    };
    return { url, logger, budget, as, api };
  }

  /** The variables that an OpenRC file sets. */
  function openRc(user: string, project: string, password = user) {
    for (const [name, value] of Object.entries({
      OS_AUTH_URL: real.url,
      OS_USERNAME: user,
      OS_PASSWORD: password,
      OS_PROJECT_NAME: project,
      OS_USER_DOMAIN_NAME: 'Default',
      OS_PROJECT_DOMAIN_NAME: 'Default',
    })) {
      vi.stubEnv(name, value);
    }
  }

  it('are given, changed and removed by managers in their project, also to users of other domains', async () => {
    const { as, budget } = await serving();
    const operator = await as('admin', 'admin');
    const bob = await as('bob', 'climate');
    const carol = await as('carol', 'physics');
    const alice = await as('alice', 'climate');
    const done = { code: 0, stderr: '' };
    const { climate, physics } = real.ids.projects;
    for (const project of ['climate@Default', physics]) {
      expect(await operator('set', project, '--amount', '100', ...YEAR, ...WHY)).toMatchObject(done);
    }
    const dave = ['climate', '--user', 'dave@other'];
    for (const project of [climate, 'climate@Default']) {
      dave[0] = project;
      expect(await bob('set', ...dave, '--amount', '50', ...YEAR, ...WHY)).toMatchObject({
        ...done,
        stdout: expect.stringContaining(real.ids.users.dave),
      });
      // The same budget, found again by the name.
      expect(await bob('set', ...dave, '--amount', '60', ...YEAR, ...WHY)).toMatchObject({
        ...done,
        stdout: expect.stringMatching(/ 60 [a-z-]+ .*\n$/),
      });
      const removed = await bob('remove', ...dave, '--from', '2100-01-01', ...WHY);
      expect(removed).toMatchObject(done);
      expect(removed.stdout).not.toContain(real.ids.users.dave);
    }
    const history = JSON.parse((await operator('history', climate, '--format', 'json')).stdout);
    const whose = `bob@Default (${real.ids.users.bob})`;
    expect(history.slice(1, 4)).toMatchObject([
      { operation: 'set', who: whose, reason: 'why' },
      { operation: 'set', who: whose },
      { operation: 'removed', who: whose },
    ]);

    // What is not theirs.
    const no = { code: 2, stdout: '', stderr: expect.stringMatching(/^error: .*more rights/) };
    const small = ['--amount', '1', ...YEAR, ...WHY];
    expect(await bob('set', physics, '--user', 'dave@other', ...small)).toMatchObject(no);
    expect(await bob('set', 'physics@Default', '--user', 'dave@other', ...small)).toMatchObject(no);
    expect(await carol('set', climate, '--user', 'dave@other', ...small)).toMatchObject(no);
    expect(await bob('set', climate, ...small)).toMatchObject(no);
    expect(await alice('set', climate, '--user', 'alice@Default', ...small)).toMatchObject(no);
    expect((await carol('list')).stdout).not.toContain(climate);
    expect((await alice('list')).stdout).not.toContain(physics);
    expect((await carol('show', climate)).stdout).toBe('');
    expect((await carol('history')).stdout).not.toContain('bob');
    // More than the project has, and users and domains that are not there.
    const much = ['--amount', '101', ...YEAR, ...WHY];
    expect(await bob('set', climate, '--user', 'dave@other', ...much)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('at most the budget of the project'),
    });
    for (const nobody of [
      'dave@Default',
      'dave@nowhere',
      'nobody@other',
      'nobody',
      'f'.repeat(32),
      '@',
      '',
    ]) {
      expect({ nobody, ...(await bob('set', climate, '--user', nobody, ...small)) }).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: [^\n]*\n$/),
      });
    }
    for (const nowhere of ['climate@nowhere', 'nowhere@Default', 'climate', 'Climate Research']) {
      expect({ nowhere, ...(await operator('set', nowhere, ...small)) }).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/Keystone has no project/),
      });
    }
    expect((await budget('list')).code).toBe(0);
  });

  it('are asked for with OS_*, a cloud of clouds.yaml, and a pasted token', async () => {
    const { budget } = await serving();
    expect(await budget('list')).toMatchObject({
      code: 2,
      stderr: 'error: expected a valid token in the header X-Auth-Token\n',
    });
    openRc('alice', 'climate');
    expect(await budget('list')).toMatchObject({ code: 0, stderr: '' });
    openRc('alice', 'climate', 'wrong-s3cret');
    const wrong = await budget('list');
    expect(wrong).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/^error: .*\n$/) });
    expect(wrong.stderr).not.toContain('s3cret');
    vi.unstubAllEnvs();
    const clouds = join(temporaryFolder(), 'clouds.yaml');
    const auth = {
      auth_url: real.url,
      username: 'alice',
      password: 'alice',
      project_name: 'climate',
      user_domain_name: 'Default',
      project_domain_name: 'Default',
    };
    writeFileSync(clouds, JSON.stringify({ clouds: { mine: { auth } } }), { mode: 0o600 });
    vi.stubEnv('OS_CLIENT_CONFIG_FILE', clouds);
    expect(await budget('list', '--os-cloud', 'mine')).toMatchObject({ code: 0, stderr: '' });
    expect(await budget('list', '--os-cloud', 'other')).toMatchObject({ code: 2, stdout: '' });
    vi.stubEnv('BLAZAR_ENFORCEMENT_TOKEN', await real.token('alice', { project: null }));
    expect(await budget('list')).toMatchObject({ code: 2, stdout: '' });
  });

  it('are not shown to a token that was revoked, nor while Keystone is stopped to one that is new', async () => {
    const { api, budget, logger } = await serving();
    const token = await real.token('bob');
    const fresh = await real.token('bob');
    expect(await api(token, 'GET', '/v1/budgets')).toMatchObject({ status: 200, json: { items: [] } });
    await real.revoke(token);
    await expect
      .poll(async () => (await api(token, 'GET', '/v1/budgets')).status, { timeout: 120_000 })
      .toBe(401);
    const other = await real.token('bob');
    expect((await api(other, 'GET', '/v1/budgets')).status).toBe(200);
    await real.stop();
    try {
      expect(await api(fresh, 'GET', '/v1/budgets')).toMatchObject({
        status: 503,
        json: { message: expect.stringContaining('Keystone does not answer') },
      });
      vi.stubEnv('BLAZAR_ENFORCEMENT_TOKEN', fresh);
      const told = await budget('list');
      expect(told).toMatchObject({
        code: 3,
        stdout: '',
        stderr: expect.stringMatching(/Keystone does not answer/),
      });
      vi.unstubAllEnvs();
      openRc('bob', 'climate');
      expect(await budget('list')).toMatchObject({
        code: 3,
        stdout: '',
        stderr: expect.stringMatching(/^error: no token of Keystone: [^\n]*\n$/),
      });
      expect(JSON.stringify(logger.lines)).not.toContain(fresh);
    } finally {
      await real.restart();
    }
    await expect
      .poll(async () => (await api(fresh, 'GET', '/v1/budgets')).status, { timeout: 120_000 })
      .toBe(200);
  });
});
