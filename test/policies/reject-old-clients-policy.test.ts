import { describe, expect, it } from 'vitest';
import { askTwice, chainOf, problemsOf } from './helpers.ts';

const POLICY = ['RejectOldClientsPolicy'];

/** What SkyPilot 0.13 sends when it launches: its workers do not know the client. */
const UNKNOWN = { clientApiVersion: null, clientVersion: 'unknown' };

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

  it('allows what SkyPilot 0.13 sends to validate and then to launch', async () => {
    const { ask } = await chainOf(POLICY, { reject_old_clients: 56, reject_old_clients_version: '0.13.0' });
    expect((await ask({ name: 'validate' })).allowed).toBe(true);
    expect((await ask({ name: 'launch', ...UNKNOWN })).allowed).toBe(true);
  });

  it('orders versions, and refuses what it cannot read', async () => {
    const { ask } = await chainOf(POLICY, { reject_old_clients_version: '0.12.0' });
    for (const [clientVersion, allowed] of [
      ['0.12.0', true],
      ['0.12.3', true],
      ['0.13', true],
      ['1.0', true],
      ['v0.12.0', true],
      ['0.12.0.post1', true],
      ['0.12.1rc1', true],
      ['0.12.0+local.1', true],
      ['0.11.9', false],
      ['0.9.10', false],
      ['0.12.0rc1', false],
      ['0.12.0b2', false],
      ['0.11.0.post9', false],
      ['1.0.0-dev0', false],
      ['1.0.0-dev0 (commit: 8a3f1c2d)', false],
      ['1.0.0.dev20260801', false],
      ['', false],
      ['latest', false],
      ['12', false],
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

  it('needs a minimum, and one that it can read', async () => {
    expect(await problemsOf('RejectOldClientsPolicy', {})).toEqual([
      expect.stringContaining('needs reject_old_clients or reject_old_clients_version'),
    ]);
    for (const version of ['new', '0', '0.12.0 ', '']) {
      const [problem] = await problemsOf('RejectOldClientsPolicy', { reject_old_clients_version: version });
      expect(problem).toContain('expected a version such as 0.12.0');
    }
    for (const api of [0, -1, 1.5]) {
      expect(await problemsOf('RejectOldClientsPolicy', { reject_old_clients: api })).toHaveLength(1);
    }
  });
});
