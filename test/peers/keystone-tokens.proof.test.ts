/** The policy service beside a real Keystone, and a real Blazar that asks with a token of its service user. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { metric } from '../support/metric.ts';
import { peerProgram } from '../support/peers.ts';
import { createLasting } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';
import { hostReservation, RealBlazar } from './blazar.ts';
import { RealKeystone } from './keystone.ts';

const HOUR = 3600;

const real = await RealKeystone.start();
const program = peerProgram('BLAZAR_PEER');

afterAll(() => real?.remove());

describe.skipIf(real === undefined)('with a real Keystone', () => {
  let peer: RealKeystone;
  beforeAll(() => {
    peer = real as RealKeystone;
  });

  async function guarded(service: Readonly<Record<string, unknown>> = {}) {
    const running = await runService({
      enforcement: { max_lease_duration: 2 * HOUR },
      service: { keystone_auth: true, tokens: ['fixed-0123456789abcdef'], deadline: 600, ...service },
      keystone: {
        auth_url: peer.url,
        username: 'blazar',
        password: 'blazar',
        project_name: 'service',
        // For a Keystone on a busy machine.
        timeout: 600,
      },
    });
    const check = async (token: string) =>
      (await running.post('/v1/check-create', createLasting(HOUR), { 'X-Auth-Token': token })).status;
    const validated = async (outcome: string) =>
      metric((await running.request('/metrics')).text, 'blazar_enforcement_keystone_validations_total', {
        outcome,
      });
    return { ...running, check, validated };
  }

  const ofBlazar = () => peer.token('blazar', { project: 'service' });

  it('the service user and an administrator may ask, members and readers may not', async () => {
    const { check } = await guarded();
    expect(await check(await ofBlazar())).toBe(204);
    expect(await check(await peer.adminToken())).toBe(204);
    expect(await check(await peer.token('alice'))).toBe(403);
    expect(await check(await peer.token('carol'))).toBe(403);
    expect(await check(await peer.token('carol', { project: 'physics' }))).toBe(403);
    expect(await check(await peer.token('dave', { domain: 'other' }))).toBe(403);
    expect(await check(await peer.token('alice', { project: null }))).toBe(403);
    expect(await check('fixed-0123456789abcdef')).toBe(204);
    expect(await check('gAAAAABnonsense')).toBe(401);
    expect(await check('nonsense')).toBe(401);
  });

  it('two hundred requests with the same token are one request to Keystone', async () => {
    const { check, validated } = await guarded({ token_cache_time: 3600 });
    const token = await ofBlazar();
    const statuses = await Promise.all(Array.from({ length: 200 }, () => check(token)));
    expect(new Set(statuses)).toEqual(new Set([204]));
    expect(await validated('valid')).toBe(1);
  });

  it('a revoked token stops within the cache time', async () => {
    const { check } = await guarded({ token_cache_time: 1 });
    const token = await ofBlazar();
    expect(await check(token)).toBe(204);
    await peer.revoke(token);
    await expect.poll(() => check(token), { timeout: 120_000 }).toBe(401);
  });

  it('a role that is taken away stops within the cache time', async () => {
    const { check } = await guarded({ token_cache_time: 1, service_roles: ['member'] });
    const token = await peer.token('bob');
    expect(await check(token)).toBe(204);
    const roles = (await peer.ask('GET', '/roles?name=member')).body as { roles: { id: string }[] };
    const grant = `/projects/${peer.ids.projects.climate}/users/${peer.ids.users.bob}/roles/${roles.roles[0]?.id}`;
    await peer.ask('DELETE', grant);
    await expect.poll(() => check(token), { timeout: 120_000 }).toBe(401);
    await peer.ask('PUT', grant);
    await expect.poll(async () => check(await peer.token('bob'))).toBe(204);
  });

  it.each(['users', 'projects'] as const)(
    'a token of %s that are disabled stops within the cache time',
    async (what) => {
      const { check } = await guarded({ token_cache_time: 1, service_roles: ['member'] });
      const { users, projects } = peer.ids;
      const path = what === 'users' ? `/users/${users.bob}` : `/projects/${projects.climate}`;
      const enable = (enabled: boolean) =>
        peer.ask('PATCH', path, { [what === 'users' ? 'user' : 'project']: { enabled } });
      const seen = await peer.token('bob');
      const unseen = await peer.token('bob');
      expect(await check(seen)).toBe(204);
      expect((await enable(false)).status).toBe(200);
      try {
        expect(await check(unseen)).toBe(401);
        await expect.poll(() => check(seen), { timeout: 120_000 }).toBe(401);
      } finally {
        await enable(true);
      }
      expect([await check(seen), await check(unseen)]).toEqual([401, 401]);
      // Keystone keeps times in whole seconds: a token of the second in which others were revoked counts as revoked.
      await expect.poll(async () => check(await peer.token('bob'))).toBe(204);
    },
  );

  it('a fixed token that is wrong opens nothing', async () => {
    const { check } = await guarded({ tokens: ['another-0123456789abcdef'] });
    expect(await check('fixed-0123456789abcdef')).toBe(401);
    expect(await check('')).toBe(401);
    expect(await check('anotherr')).toBe(401);
    expect(await check(await peer.token('alice'))).toBe(403);
    expect(await check(await peer.token('dave', { domain: 'other', project: null }))).toBe(403);
  });

  it.skipIf(program === undefined)(
    'a real Blazar asks with its token, and its user reads our reason',
    async () => {
      const { url } = await guarded();
      const options = ['--policy-token', await ofBlazar(), '--keystone', peer.url];
      const blazar = await RealBlazar.start(program ?? '', `${url}/v1/`, options);
      try {
        const lease = (hours: number) => ({
          name: `of ${hours} hours`,
          start_date: '2037-01-01 10:00',
          end_date: `2037-01-01 ${10 + hours}:00`,
          reservations: [hostReservation(1, 1)],
          events: [],
        });
        const alice = await peer.token('alice');
        expect(await blazar.ask('POST', '/v1/leases', alice, lease(1))).toMatchObject({ status: 201 });
        expect(await blazar.ask('POST', '/v1/leases', alice, lease(3))).toMatchObject({
          status: 400,
          text: expect.stringContaining('the longest allowed'),
        });
      } finally {
        await blazar.stop();
      }
    },
  );

  it('while Keystone is stopped, known tokens go on until they expire; then it is as before', async () => {
    const { check, validated } = await guarded({ token_cache_time: 0 });
    const known = await ofBlazar();
    const unknown = await peer.token('admin', { project: 'admin' });
    expect(await check(known)).toBe(204);
    await peer.stop();
    expect(await check(known)).toBe(204);
    expect(await check(unknown)).toBe(503);
    expect(await check('fixed-0123456789abcdef')).toBe(204);
    expect(await validated('failed')).toBeGreaterThan(0);
    const stopped = Date.now();
    vi.useFakeTimers({ toFake: ['Date'] });
    vi.setSystemTime(stopped + 50 * 60_000);
    expect(await check(known)).toBe(204);
    vi.setSystemTime(stopped + 60 * 60_000);
    expect(await check(known)).toBe(401);
    vi.useRealTimers();
    await peer.restart();
    const later = await ofBlazar();
    await expect.poll(() => check(later), { timeout: 120_000 }).toBe(204);
    expect(await check(await peer.token('alice'))).toBe(403);
  });
});
