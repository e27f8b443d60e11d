/** Users who log in to the console with a real Keystone. */
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { RealKeystone } from '../../peers/keystone.ts';
import { runService } from '../../support/running-service.ts';
import { visitor } from '../console/visitor.ts';

const keystone = await RealKeystone.start();
afterAll(() => keystone?.remove());

/** A role that Keystone does not have yet, for a user in a project. */
async function roleId(real: RealKeystone, name: string): Promise<string> {
  const { body } = await real.ask('GET', `/roles?name=${name}`);
  const [known] = (body as { roles: { id: string }[] }).roles;
  if (known !== undefined) {
    return known.id;
  }
  const made = await real.ask('POST', '/roles', { role: { name } });
  return (made.body as { role: { id: string } }).role.id;
}

const grant = async (real: RealKeystone, path: string, role: string) =>
  expect((await real.ask('PUT', `${path}/roles/${await roleId(real, role)}`)).status).toBe(204);
const revoke = async (real: RealKeystone, path: string, role: string) =>
  expect((await real.ask('DELETE', `${path}/roles/${await roleId(real, role)}`)).status).toBe(204);

async function newUser(real: RealKeystone, name: string, more: object = {}): Promise<string> {
  const user = { name, password: 'right', domain_id: 'default', ...more };
  const { body } = await real.ask('POST', '/users', { user });
  const { id } = (body as { user: { id: string } }).user;
  onTestFinished(async () => {
    await real.ask('DELETE', `/users/${id}`);
  });
  return id;
}

describe.skipIf(keystone === undefined)('beside a real Keystone', () => {
  const real = keystone as RealKeystone;

  async function console(service: Readonly<Record<string, unknown>> = {}) {
    const running = await runService({
      service: { keystone_auth: true, token_cache_time: 0, ...service },
      keystone: {
        auth_url: real.url,
        username: 'blazar',
        password: 'blazar',
        project_name: 'service',
      },
    });
    const visit = visitor(running.url);
    const logIn = (username: string, password = username, more: Record<string, string> = {}) =>
      visit.send('/login/keystone', { username, password, domain: 'Default', ...more });
    /** The project that the session is in, as the page to switch it says. */
    const current = async (by = visit) =>
      /value="([^"]*)" aria-current="true"/.exec((await by.get('/login/project')).html)?.[1];
    const csrf = async () =>
      /name="csrf" value="([^"]*)"/.exec((await visit.get('/login/project')).html)?.[1] ?? '';
    return { ...running, visit, logIn, current, csrf };
  }

  it('alice logs in with her password, and is in her project', async () => {
    const { logIn, current, visit, logger } = await console();
    const { status, headers } = await logIn('alice', 'alice', { next: '/budgets' });
    expect([status, headers.get('Location')]).toEqual([303, '/budgets']);
    expect(visit.cookie()).toMatch(/^blazar-enforcement-session=[\w-]{43}$/);
    expect(await current()).toBe(real.ids.projects.climate);
    const { html } = await visit.get('/login/project');
    expect(html).toContain(real.ids.projects.climate);
    expect(html).not.toContain(real.ids.projects.physics);
    expect(JSON.stringify(logger.lines)).not.toMatch(/"alice"|gAAAA/);
  });

  it('carol switches from one project to the other, and to none of others', async () => {
    const { logIn, current, csrf, visit } = await console();
    await logIn('carol', 'carol', { project: 'physics' });
    expect(await current()).toBe(real.ids.projects.physics);
    const before = visit.cookie();
    const sent = { csrf: await csrf(), project: real.ids.projects.climate };
    expect((await visit.send('/login/project', sent)).status).toBe(303);
    expect(await current()).toBe(real.ids.projects.climate);
    expect(visit.cookie()).not.toBe(before);
    const stale = await visit.send('/login/project', { ...sent, project: real.ids.projects.physics });
    expect(stale.status, 'the csrf of the session before').toBe(403);
    for (const project of [
      real.ids.projects.service,
      real.ids.projects.other,
      'nonsense',
      '',
      'system:all',
      '../x',
    ]) {
      const refused = await visit.send('/login/project', { csrf: await csrf(), project });
      expect(refused.status, project).toBe(403);
      expect(await current(), project).toBe(real.ids.projects.climate);
    }
    expect((await visit.send('/login/project', { project: real.ids.projects.physics })).status).toBe(403);
  });

  it('says in a sentence why somebody cannot log in, and shows no password', async () => {
    const { visit, logIn, logger } = await console();
    await newUser(real, 'none');
    await newUser(real, 'off', { enabled: false });
    for (const [user, password, status, sentence] of [
      ['alice', 'wr<ong', 401, 'Keystone does not accept this.'],
      ['nobody-at-all', 'x', 401, 'Keystone does not accept this.'],
      ['dave', 'dave', 401, 'Keystone does not accept this.'],
      ['off', 'right', 401, 'Keystone does not accept this.'],
      [
        'none',
        'right',
        403,
        'You have none of the roles that count here, in a project or in the system: admin, manager, reader, member.',
      ],
      ['alice', '', 400, 'Expected a user name and a password'],
    ] as const) {
      const answer = await logIn(user, password);
      expect([user, answer.status]).toEqual([user, status]);
      expect(answer.text).toContain(sentence);
      expect(answer.html).not.toMatch(/wr<ong|wr&lt;ong|value="right"/);
      expect(visit.cookie()).toBe('');
    }
    const project = await logIn('alice', 'alice', { project: 'physics' });
    expect([project.status, project.text.includes('You have no project with this name or id.')]).toEqual([
      403,
      true,
    ]);
    const dave = await logIn('dave', 'dave', { domain: 'other' });
    expect(dave.status).toBe(303);
    expect(JSON.stringify(logger.lines)).not.toMatch(/wr<ong/);
  });

  it('asks for the project if the first 20 give no role here, and others were not tried', async () => {
    const { logIn, current } = await console({ deadline: 300 });
    const user = await newUser(real, 'busy');
    const [domain_id, names] = ['default', Array.from({ length: 21 }, (_, number) => `busy-${number}`)];
    for (const name of names) {
      const { body } = await real.ask('POST', '/projects', { project: { name, domain_id } });
      const { id } = (body as { project: { id: string } }).project;
      onTestFinished(async () => {
        await real.ask('DELETE', `/projects/${id}`);
      });
      await grant(real, `/projects/${id}/users/${user}`, 'guest');
    }
    const { status, text } = await logIn('busy', 'right');
    expect([status, text]).toEqual([
      403,
      expect.stringContaining('None of the first 20 of your 21 projects'),
    ]);
    expect(await current()).toBeUndefined();
  });

  it('says above all ways to log in that the session of a form has ended, and blames no field', async () => {
    const { logIn, csrf, visit } = await console();
    await logIn('alice');
    const form = { csrf: await csrf(), project_id: real.ids.projects.climate, amount: '5' };
    await visit.send('/logout', {});
    const { status, html } = await visit.send('/budgets/requests/new', form);
    expect(status).toBe(401);
    expect(html).toMatch(/<h1>blazar-enforcement<\/h1><p class="error"[^>]*><bdi>Nothing was changed/);
    expect(html).not.toMatch(/<details open|aria-invalid="true"/);
    expect(html).toContain('<input type="hidden" name="next" value="/budgets/requests/new"');
  });

  it('ends the session when the role is removed, the user disabled, the password changed or the token revoked', async () => {
    const inClimate = (id: string) => `/projects/${real.ids.projects.climate}/users/${id}`;
    for (const [name, end] of [
      ['role', (id: string) => revoke(real, inClimate(id), 'member')],
      ['disabled', (id: string) => real.ask('PATCH', `/users/${id}`, { user: { enabled: false } })],
      ['password', (id: string) => real.ask('PATCH', `/users/${id}`, { user: { password: 'new' } })],
      ['deleted', (id: string) => real.ask('DELETE', `/users/${id}`)],
    ] as const) {
      const id = await newUser(real, `ends-${name}`);
      await grant(real, inClimate(id), 'member');
      const { logIn, current, visit } = await console();
      expect((await logIn(`ends-${name}`, 'right')).status).toBe(303);
      expect(await current(), name).toBe(real.ids.projects.climate);
      const kept = { Cookie: visit.cookie() };
      await end(id);
      expect((await visit.get('/login/project', kept)).status, name).toBe(303);
      await grant(real, inClimate(id), 'member').catch(() => undefined);
      expect((await visit.get('/login/project', kept)).status, 'it has ended for good').toBe(303);
    }
  });

  it('follows roles while a session runs: a manager who becomes a member is one', async () => {
    const id = await newUser(real, 'mona');
    const path = `/projects/${real.ids.projects.climate}/users/${id}`;
    await grant(real, path, 'admin');
    const { logIn, visit } = await console();
    await logIn('mona', 'right');
    expect((await visit.get('/configuration')).status).toBe(200);
    await grant(real, path, 'member');
    await revoke(real, path, 'admin');
    expect((await visit.get('/configuration')).status).toBe(403);
    expect((await visit.get('/login/project')).status).toBe(200);
  });

  it('keeps sessions while Keystone is away, and nobody new gets in', async () => {
    const { logIn, visit, url } = await console();
    await logIn('alice');
    await real.stop();
    try {
      expect((await visit.get('/login/project')).status).toBe(503);
      const stranger = visitor(url);
      const sent = { username: 'bob', password: 'bob', domain: 'Default' };
      const answer = await stranger.send('/login/keystone', sent);
      expect([answer.status, answer.text.includes('Keystone does not answer now.')]).toEqual([503, true]);
      expect(stranger.cookie()).toBe('');
    } finally {
      await real.restart();
    }
    await expect.poll(async () => (await visit.get('/login/project')).status).toBe(200);
  });

  it('limits wrong passwords, however the account is written', async () => {
    const { logIn } = await console();
    for (let count = 0; count < 10; count += 1) {
      const domain = ['', 'Default', 'default'][count % 3] ?? '';
      expect((await logIn('bob', `guess-${count}`, { domain })).status).toBe(401);
    }
    const { status, headers } = await logIn('bob', 'bob');
    expect([status, Number(headers.get('Retry-After')) > 0]).toEqual([429, true]);
  });

  it('takes a token that somebody has got from Keystone', async () => {
    const { visit } = await console();
    const token = await real.token('alice');
    expect((await visit.send('/login', { token })).status).toBe(303);
    expect((await visit.get('/')).html).not.toContain(token);
    await real.revoke(token);
    expect((await visit.get('/')).status).toBe(401);
    const unscoped = await real.token('alice', { project: null });
    expect((await visit.send('/login', { token: unscoped })).status).toBe(403);
    expect((await visit.send('/login', { token: 'gAAAAAnonsense' })).status).toBe(401);
  });

  it('gives nobody a role by a token of a domain, and an operator one of the system', async () => {
    const id = await newUser(real, 'sysadmin');
    await grant(real, `/domains/default/users/${id}`, 'admin');
    const { logIn, visit } = await console();
    expect((await logIn('sysadmin', 'right')).status).toBe(403);
    await grant(real, `/system/users/${id}`, 'reader');
    expect((await logIn('sysadmin', 'right')).status).toBe(303);
    expect((await visit.get('/configuration')).status).toBe(200);
    const identity = {
      methods: ['password'],
      password: { user: { name: 'sysadmin', domain: { id: 'default' }, password: 'right' } },
    };
    const ofDomain = await real.tokenFor({ identity, scope: { domain: { id: 'default' } } });
    expect((await visit.send('/login', { token: ofDomain })).status).toBe(403);
    const ofSystem = await real.tokenFor({ identity, scope: { system: { all: true } } });
    expect((await visit.send('/login', { token: ofSystem })).status).toBe(303);
  });

  it('switches from a project to the system and back whoever has roles in both', async () => {
    const id = await newUser(real, 'both');
    await grant(real, `/projects/${real.ids.projects.climate}/users/${id}`, 'member');
    const { logIn, current, csrf, visit } = await console();
    await logIn('both', 'right');
    expect((await visit.get('/login/project')).html).not.toContain('The system');
    await grant(real, `/system/users/${id}`, 'admin');
    expect((await visit.get('/configuration')).status).toBe(403);
    const { html } = await visit.get('/login/project');
    const [, project = ''] = /value="([^"]+)">The system/.exec(html) ?? [];
    expect((await visit.send('/login/project', { csrf: await csrf(), project })).status).toBe(303);
    expect((await visit.get('/configuration')).status).toBe(200);
    const back = { csrf: await csrf(), project: real.ids.projects.climate };
    expect((await visit.send('/login/project', back)).status).toBe(303);
    expect(await current()).toBe(real.ids.projects.climate);
  });
});
