import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createHttpClient } from '../../src/http/client.ts';
import type { Keystone } from '../../src/openstack/contract.ts';
import { createKeystone } from '../../src/openstack/keystone.ts';
import { type KeystoneOptions, keystoneOptions } from '../../src/openstack/options.ts';
import { recordingLogger } from '../support/logger.ts';
import { RealKeystone } from './keystone.ts';

const real = RealKeystone.start();

afterAll(() => real?.remove());

function connect(options: Partial<KeystoneOptions> = {}): Keystone {
  const keystone = createKeystone(
    keystoneOptions.parse({
      auth_url: real?.url,
      username: 'blazar',
      password: 'blazar',
      project_name: 'service',
      ...options,
    }),
    {
      http: { createClient: createHttpClient },
      clock: { now: () => new Date() },
      logger: recordingLogger(),
    },
  );
  onTestFinished(() => keystone.close());
  return keystone;
}

describe.skipIf(real === undefined)('Keystone', () => {
  let peer: RealKeystone;
  beforeAll(() => {
    peer = real as RealKeystone;
  });

  it('gives one token to all who ask at the same time', async () => {
    const keystone = connect();
    const tokens = await Promise.all(Array.from({ length: 20 }, () => keystone.token()));
    expect(new Set(tokens).size).toBe(1);
    expect(await keystone.endpoint('reservation')).toBe('http://127.0.0.1:1234/v1');
    expect(await keystone.endpoint('identity')).toBe(peer.url);
  });

  it('validates the tokens of others', async () => {
    const keystone = connect({ auth_url: `${peer.url.replace('/v3', '')}/` });
    const token = await peer.token('alice');
    expect(await keystone.validate(token)).toMatchObject({
      user: { id: peer.ids.users.alice, name: 'alice', domain: 'Default' },
      project: { id: peer.ids.projects.climate, name: 'climate', domain: 'Default' },
      roles: expect.arrayContaining(['member', 'reader']),
    });
    expect(await keystone.validate('nonsense')).toBeUndefined();
    await peer.revoke(token);
    expect(await keystone.validate(token)).toBeUndefined();
  });
});
