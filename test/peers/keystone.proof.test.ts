/** Our account at a real Keystone. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createHttpClient } from '../../src/http/client.ts';
import { UsageEnforcement } from '../../src/index.ts';
import type { Keystone } from '../../src/openstack/contract.ts';
import { createKeystone } from '../../src/openstack/keystone.ts';
import { type KeystoneOptions, keystoneOptions } from '../../src/openstack/keystone-options.ts';
import { temporaryFile, valuesOnly } from '../support/files.ts';
import { type RecordingLogger, recordingLogger } from '../support/logger.ts';
import { policyServer } from '../support/policy-server.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { RealKeystone } from './keystone.ts';

/** For how long tokens are valid. */
const TOKEN_SECONDS = 3600;
const real = await RealKeystone.start();

afterAll(() => real?.remove());

/** `ahead`: of our clock, in seconds. */
function connect(
  options: Partial<KeystoneOptions> = {},
  ahead = () => 0,
): Keystone & { logger: RecordingLogger } {
  const logger = recordingLogger();
  const account = { username: 'blazar', password: 'blazar', project_name: 'service', timeout: 60 };
  const keystone = createKeystone(keystoneOptions.parse({ auth_url: real?.url, ...account, ...options }), {
    http: { createClient: createHttpClient },
    clock: { now: () => new Date(Date.now() + ahead() * 1000) },
    logger,
  });
  onTestFinished(() => keystone.close());
  return Object.assign(keystone, { logger });
}

describe.skipIf(real === undefined)('a real Keystone', () => {
  let peer: RealKeystone;
  beforeAll(() => {
    peer = real as RealKeystone;
  });

  it('gives one token to all who ask at the same time, and says where services are', async () => {
    const keystone = connect();
    const tokens = await Promise.all(Array.from({ length: 20 }, () => keystone.token()));
    expect(new Set(tokens).size).toBe(1);
    expect(await keystone.endpoint('reservation')).toBe('http://127.0.0.1:1234/v1');
    expect(await keystone.endpoint('identity')).toBe(peer.url);
    await expect(keystone.endpoint('compute')).rejects.toThrow(/it has identity, reservation$/);
    await expect(connect({ region_name: 'RegionTwo' }).endpoint('reservation')).rejects.toThrow(
      /in the region RegionTwo; it has public in RegionOne$/,
    );
  });

  it.each(['', '/', '/v3', '/v3/'])('is found at an auth_url that ends in "%s"', async (end) => {
    const keystone = connect({ auth_url: peer.url.replace('/v3', end) });
    expect(await keystone.getIdentity(`/projects/${peer.ids.projects.climate}`)).toMatchObject({
      status: 200,
      body: expect.stringContaining('"lease-days=14"'),
    });
  });

  it('is not found at another auth_url, and the error says so', async () => {
    const keystone = connect({ auth_url: peer.url.replace('/v3', '/identity') });
    await expect(keystone.token()).rejects.toThrow(
      /^POST http:\S+\/identity\/v3\/auth\/tokens: expected an answer of Keystone's version 3, got 404: check \[keystone\] auth_url$/,
    );
  });

  it('validates tokens until they are revoked', async () => {
    const keystone = connect();
    const token = await peer.token('alice');
    const before = Date.now();
    const valid = await keystone.validate(token);
    expect(valid).toMatchObject({
      user: { id: peer.ids.users.alice, name: 'alice', domain: 'Default' },
      project: { id: peer.ids.projects.climate, name: 'climate', domain: 'Default' },
      roles: expect.arrayContaining(['member', 'reader']),
    });
    expect(valid?.expiresAt).toBeLessThanOrEqual(before + (TOKEN_SECONDS + 2) * 1000);
    const dave = await keystone.validate(await peer.token('dave', { domain: 'other' }));
    expect(dave).toMatchObject({
      project: { id: peer.ids.projects.other, name: 'climate', domain: 'other' },
    });
    const unscoped = await keystone.validate(await peer.token('alice', { project: null }));
    expect(unscoped).toMatchObject({ project: undefined, roles: [] });
    await peer.revoke(token);
    expect(await keystone.validate(token)).toBeUndefined();
    expect(await keystone.validate('nonsense')).toBeUndefined();
    expect(await keystone.validate(`${token}x`)).toBeUndefined();
    expect(await keystone.validate('t'.repeat(8000))).toBeUndefined();
  });

  it('validates nothing for an account without a role for that', async () => {
    const keystone = connect({ username: 'alice', password: 'alice', project_name: 'climate' });
    await expect(keystone.validate(await peer.token('bob'))).rejects.toThrow(/may not do this \(403\)/);
  });

  const expiry = async (token: string) => {
    const { body } = await peer.ask('GET', '/auth/tokens', undefined, undefined, {
      'X-Subject-Token': token,
    });
    return Date.parse((body as { token: { expires_at: string } }).token.expires_at) / 1000;
  };

  it('renews our token before it expires: no call ever sees an expired one', async () => {
    let ahead = 0;
    const keystone = connect({}, () => ahead);
    const tokens = new Map<string, number>();
    for (; ahead < TOKEN_SECONDS + 600; ahead += ahead < TOKEN_SECONDS - 600 ? 600 : 30) {
      const now = Date.now();
      const token = await keystone.token();
      if (!tokens.has(token)) {
        // Keystone's own clock is not ahead.
        tokens.set(token, (await expiry(token)) + ahead);
      }
      expect(tokens.get(token)).toBeGreaterThan(now / 1000 + ahead);
      const { status } = await keystone.getIdentity('/projects');
      expect(status).toBe(200);
    }
    expect(tokens.size).toBeGreaterThanOrEqual(2);
  });

  it('revokes our token, and gets asked for another one', async () => {
    const keystone = connect();
    const first = await keystone.token();
    await peer.revoke(first);
    expect((await keystone.validate(await peer.token('alice')))?.user.name).toBe('alice');
    expect(await keystone.token()).not.toBe(first);
  });

  it('knows our account by an application credential', async () => {
    const token = await peer.token('blazar', { project: 'service' });
    const path = `/users/${peer.ids.users.blazar}/application_credentials`;
    const { body } = await peer.ask('POST', path, { application_credential: { name: 'ours' } }, token);
    const { id, secret } = (body as { application_credential: { id: string; secret: string } })
      .application_credential;
    const file = temporaryFile('secret', `${secret}\n`);
    const keystone = connect({
      username: undefined,
      password: undefined,
      project_name: undefined,
      application_credential_id: id,
      application_credential_secret_file: file,
    });
    expect(await keystone.validate(await peer.token('alice'))).toMatchObject({ user: { name: 'alice' } });
    await peer.ask('DELETE', `${path}/${id}`, undefined, await peer.token('blazar', { project: 'service' }));
    keystone.refused(await keystone.token());
    await expect(keystone.token()).rejects.toThrow(/refuses the account of \[keystone\]/);
  });

  it('gets a new password, which counts as soon as it is in the file', async () => {
    const file = temporaryFile('password', 'bob\n');
    const keystone = connect({
      username: 'bob',
      password: undefined,
      password_file: file,
      project_name: 'climate',
    });
    const first = await keystone.token();
    await peer.setPassword('bob', 'another');
    // Keystone revokes the tokens of the old password.
    const project = `/projects/${peer.ids.projects.climate}`;
    await expect(keystone.getIdentity(project)).rejects.toThrow(/refuses the account of \[keystone\]/);
    writeFileSync(file, 'another\n');
    // Keystone also refuses the tokens that it issues within the second of the change.
    const answered = async () => expect((await keystone.getIdentity(project)).status).toBe(200);
    await vi.waitFor(answered, { timeout: 120_000, interval: 200 });
    expect(await keystone.token()).not.toBe(first);
  });

  it('is stopped and started: our token goes on until it expires, and then there is none', async () => {
    let ahead = 0;
    const keystone = connect({}, () => ahead);
    const alice = await peer.token('alice');
    const first = await keystone.token();
    await peer.stop();
    ahead = TOKEN_SECONDS - 60;
    expect(await keystone.token()).toBe(first);
    await expect(keystone.validate(alice)).rejects.toThrow(/ECONNREFUSED/);
    ahead = TOKEN_SECONDS + 1;
    await expect(keystone.token()).rejects.toThrow(/ECONNREFUSED|not sent/);
    await peer.restart();
    const named = async () => (await keystone.validate(await peer.token('alice')))?.user.name;
    // The breaker of the connection lets a call through again after a while.
    await vi.waitFor(async () => expect(await named()).toBe('alice'), { timeout: 120_000, interval: 200 });
  });

  it('guards a service that our filter asks: another token is sent as soon as one is refused', async () => {
    const guard = connect();
    const service = await policyServer(async ({ headers }, response) => {
      const who = await guard.validate(String(headers['x-auth-token']));
      response.writeHead(who?.roles.includes('service') === true ? 204 : 401).end();
    });
    const values = {
      enforcement: {
        enabled_filters: ['ExternalServiceFilter'],
        external_service_base_endpoint: service.url,
        external_service_auth: 'keystone',
        external_service_timeout: 60,
      },
      keystone: { auth_url: peer.url, username: 'blazar', password: 'blazar', project_name: 'service' },
    };
    const enforcement = await UsageEnforcement.load(valuesOnly(values), { logger: recordingLogger() });
    onTestFinished(() => enforcement.close());
    const used = () => service.requests.map(({ headers }) => String(headers['x-auth-token']));
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject({ allowed: true });
    const last = used().at(-1) ?? '';
    await peer.revoke(last);
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject({ allowed: true });
    expect(used().at(-1)).not.toBe(last);
  });
});
