import { describe, expect, it } from 'vitest';
import { askTwice, chainOf } from './helpers.ts';

const POLICY = ['RejectOldClientsPolicy'];

describe('RejectOldClientsPolicy', () => {
  it('lets clients of at least the minimum API version through, unchanged', async () => {
    const { ask } = await chainOf(POLICY, { reject_old_clients: 40 });
    for (const clientApiVersion of [40, 56]) {
      expect((await askTwice(ask, { name: 'validate', clientApiVersion })).changed).toBe(false);
    }
  });

  it('refuses older ones wherever they send a version, and says what to do', async () => {
    const { ask } = await chainOf(POLICY, { reject_old_clients: 40 });
    for (const name of ['validate', 'launch', 'jobs.launch', 'something.new']) {
      expect(await ask({ name, clientApiVersion: 39 })).toMatchObject({
        allowed: false,
        failed: false,
        message:
          'Your SkyPilot client has API version 39; at least 40 is needed. Upgrade it: pip install --upgrade skypilot',
      });
    }
  });

  it('says what the operator wants said', async () => {
    const { ask } = await chainOf(POLICY, {
      reject_old_clients: 57,
      reject_old_clients_help: 'See the wiki.',
    });
    expect((await ask()).message).toMatch(/needed\. See the wiki\.$/);
  });

  it('judges no client, which sends no version', async () => {
    const { ask } = await chainOf(POLICY, { reject_old_clients: 40, reject_old_clients_unknown: 'every' });
    expect((await ask({ atClientSide: true, clientApiVersion: null, clientVersion: null })).allowed).toBe(
      true,
    );
  });

  it.each([
    ['validate', 'validate', false],
    ['validate', 'launch', true],
    ['validate', 'jobs.launch', true],
    ['every', 'validate', false],
    ['every', 'launch', false],
    ['none', 'validate', true],
    ['none', 'launch', true],
  ])(
    'with reject_old_clients_unknown = %s, a %s without version is allowed: %s',
    async (unknown, name, allowed) => {
      for (const options of [{ reject_old_clients: 40 }, { reject_old_clients_version: '0.10.0' }]) {
        const { ask } = await chainOf(POLICY, { ...options, reject_old_clients_unknown: unknown });
        for (const clientVersion of ['unknown', null]) {
          expect(await ask({ name, clientApiVersion: null, clientVersion })).toMatchObject({
            allowed,
            message: allowed
              ? null
              : expect.stringContaining('The version of your SkyPilot client is not known.'),
          });
        }
      }
    },
  );

  it('orders versions, and refuses what it cannot read', async () => {
    const { ask } = await chainOf(POLICY, { reject_old_clients_version: '0.12.0' });
    for (const [clientVersion, allowed] of [
      ['0.12.0', true],
      ['0.13', true],
      ['v0.12.0', true],
      ['0.12.0.post1', true],
      ['0.12.0+local.1', true],
      ['0.11.9', false],
      ['0.12.0rc1', false],
      ['0.11.0.post9', false],
      ['1.0.0-dev0 (commit: 8a3f1c2d)', false],
      ['1.0.0.dev20260801', false],
      ['', false],
      ['0.12.0; rm', false],
      ['9'.repeat(10_000), false],
      ['０.１２.０', false],
    ] as const) {
      const answer = await ask({ clientVersion, name: 'validate' });
      expect(answer, clientVersion.slice(0, 40)).toMatchObject({ allowed, failed: false });
    }
  });

  it('judges development versions by their API version alone, where they are allowed', async () => {
    const { ask } = await chainOf(POLICY, {
      reject_old_clients: 50,
      reject_old_clients_version: '0.12.0',
      reject_old_clients_development: false,
    });
    const clientVersion = '1.0.0-dev0 (commit: 8a3f1c2d)';
    expect((await ask({ clientVersion, clientApiVersion: 50 })).allowed).toBe(true);
    expect((await ask({ clientVersion, clientApiVersion: 49 })).allowed).toBe(false);
    // The other limit counts too.
    expect((await ask({ clientVersion: '0.11.0', clientApiVersion: 56 })).allowed).toBe(false);
    expect((await ask({ name: 'validate', clientVersion, clientApiVersion: null })).allowed).toBe(false);
  });

  it('cuts what a client calls itself', async () => {
    const { ask } = await chainOf(POLICY, { reject_old_clients_version: '0.12.0' });
    const { message } = await ask({ clientVersion: `x\u001b[2J\n${'y'.repeat(5000)}` });
    expect(message).not.toContain('\u001b');
    expect(message?.length).toBeLessThan(400);
  });
});
