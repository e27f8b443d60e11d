/** Our account at a real Keystone. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { SYSTEM_CLOCK } from '../../src/filter/services.ts';
import { createHttpClient } from '../../src/http/client.ts';
import type { Keystone } from '../../src/openstack/contract.ts';
import { createKeystone } from '../../src/openstack/keystone.ts';
import { type KeystoneOptions, keystoneOptions } from '../../src/openstack/keystone-options.ts';
import { temporaryFile } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';
import { RealKeystone } from './keystone.ts';

/** For how long tokens are valid. */
const TOKEN_SECONDS = 3600;
const real = await RealKeystone.start();

afterAll(() => real?.remove());

function connect(options: Partial<KeystoneOptions> = {}): Keystone {
  const account = { username: 'blazar', password: 'blazar', project_name: 'service', timeout: 60 };
  const keystone = createKeystone(keystoneOptions.parse({ auth_url: real?.url, ...account, ...options }), {
    http: { createClient: createHttpClient },
    clock: SYSTEM_CLOCK,
    logger: recordingLogger(),
  });
  onTestFinished(() => keystone.close());
  return keystone;
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
});
