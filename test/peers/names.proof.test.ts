/** Limits by name and tag beside a real Keystone: renames, a second domain, missing rights, and Keystone stopped in between. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, UsageEnforcement } from '../../src/index.ts';
import { valuesOnly } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';
import { RealKeystone } from './keystone.ts';

const real = await RealKeystone.start();

afterAll(() => real?.remove());

const DAY = 86_400;
/** Keystone is slow when it has just started, or others are busy; until then, what was known before counts. */
const LATE = { timeout: 60_000, interval: 200 };

async function load(
  enforcement: Readonly<Record<string, unknown>>,
  keystone: Readonly<Record<string, unknown>> = {},
) {
  const logger = recordingLogger();
  const offset = { ms: 0 };
  const loaded = await UsageEnforcement.load(
    valuesOnly({
      enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], ...enforcement },
      keystone: {
        auth_url: real?.url,
        username: 'blazar',
        password: 'blazar',
        project_name: 'service',
        resolve_names: true,
        ...keystone,
      },
    }),
    { logger, clock: { now: () => new Date(Date.now() + offset.ms) } },
  );
  onTestFinished(() => loaded.close());
  const create = (project_id: string, user_id: string, days: number): Promise<Decision> =>
    loaded.checkCreate({
      context: { project_id, user_id },
      lease: {
        start_date: '2030-01-01 00:00',
        end_date: new Date(Date.UTC(2030, 0, 1 + days)).toISOString(),
        reservations: [],
      },
    });
  /** Asks until Keystone has told the name of the project. */
  const createNamed = async (...request: Parameters<typeof create>): Promise<Decision> => {
    for (;;) {
      const decision = await create(...request);
      if (decision.names?.project?.domain) {
        return decision;
      }
      await pause(200);
    }
  };
  /** But for what was not told in time. */
  const warnings = () =>
    logger.lines.flatMap(({ fields }) =>
      fields.reason === 'unavailable' ? [] : [`${fields.kind} ${fields.reason}`],
    );
  return { create, createNamed, warnings, pass: (seconds: number) => (offset.ms += seconds * 1000) };
}

describe.skipIf(real === undefined)('beside a real Keystone', () => {
  let peer: RealKeystone;
  beforeAll(() => {
    peer = real as RealKeystone;
  });
  const project = async (name: string, domain_id = 'default', tags: string[] = []) => {
    const { body } = await peer.ask('POST', '/projects', { project: { name, domain_id, tags } });
    return (body as { project: { id: string } }).project.id;
  };
  const change = (id: string, changes: object) => peer.ask('PATCH', `/projects/${id}`, { project: changes });

  it('limits by name are those of one domain, and tags count', async () => {
    const { climate, other, physics } = peer.ids.projects;
    const { alice, dave } = peer.ids.users;
    const { createNamed, warnings } = await load({
      max_lease_duration: 30 * DAY,
      max_lease_duration_project_limits: { 'climate@other': 3 * DAY },
      max_lease_duration_tag_limits: { hpc: 21 * DAY, 'lease-days=14': 14 * DAY },
    });
    expect((await createNamed(climate, alice, 14)).allowed).toBe(true);
    expect((await createNamed(climate, alice, 15)).message).toContain(
      `for project climate@Default (${climate}) with the tag lease-days=14 is 1209600 seconds (14 days)`,
    );
    expect((await createNamed(other, dave, 3)).allowed).toBe(true);
    expect((await createNamed(other, dave, 4)).message).toContain(`for project climate@other (${other}) is`);
    expect((await createNamed(physics, alice, 30)).allowed).toBe(true);
    expect((await createNamed(physics, alice, 31)).message).toContain('for any lease is');
    expect(warnings()).toEqual([]);
  });

  it('no project gets the limit of another by being called nearly so', async () => {
    const { createNamed } = await load({
      max_lease_duration: DAY,
      max_lease_duration_project_limits: { 'rich@Default': -1, 'a@b-c:d@Default': -1 },
      max_lease_duration_exempt_project_ids: ['free@Default'],
    });
    const { domain } = (await peer.ask('POST', '/domains', { domain: { name: 'b-c:d@Default' } })).body as {
      domain: { id: string };
    };
    const may = async (id: string) => (await createNamed(id, peer.ids.users.alice, 9)).allowed;
    expect(await may(await project('rich'))).toBe(true);
    expect(await may(await project('a@b-c:d'))).toBe(true);
    expect(await may(await project('free'))).toBe(true);
    // SQLite tells capitals apart; MySQL would refuse the second project.
    for (const name of ['Rich', 'RICH', 'rich.', ' rich', 'rich ', 'rich@Default', 'Free', 'free@Default']) {
      const id = await project(name).catch(() => undefined);
      expect(id === undefined || !(await may(id)), name).toBe(true);
    }
    expect(await may(await project('rich', peer.ids.domains.other))).toBe(false);
    expect(await may(await project('free', peer.ids.domains.other))).toBe(false);
    expect(await may(await project('a', domain.id))).toBe(false);
  });

  it('a renamed project, changed tags and a renamed domain apply within the cache time', async () => {
    const id = await project('before', peer.ids.domains.other, ['gold']);
    const { create, createNamed, pass } = await load({
      max_lease_duration: DAY,
      max_lease_duration_tag_limits: { gold: 2 * DAY },
      max_lease_duration_project_limits: { 'after@other': 3 * DAY, 'after@moved': 4 * DAY },
    });
    /** By the names that are known: those of before, where Keystone was late. */
    const most = async () => {
      for (let days = 6; days > 0; days -= 1) {
        if ((await create(id, peer.ids.users.alice, days)).allowed) {
          return days;
        }
      }
      return 0;
    };
    await createNamed(id, peer.ids.users.alice, 1);
    expect(await most()).toBe(2);
    await change(id, { tags: [] });
    expect(await most()).toBe(2);
    pass(301);
    await expect.poll(most, LATE).toBe(1);
    await change(id, { name: 'after' });
    pass(301);
    await expect.poll(most, LATE).toBe(3);
    const rename = (name: string) =>
      peer.ask('PATCH', `/domains/${peer.ids.domains.other}`, { domain: { name } });
    await rename('moved');
    pass(301);
    await expect.poll(most, LATE).toBe(4);
    await rename('other');
    pass(301);
    await expect.poll(most, LATE).toBe(3);
    await peer.ask('PATCH', `/projects/${id}`, { project: { enabled: false } });
    await peer.ask('DELETE', `/projects/${id}`);
    pass(301);
    await expect.poll(most, LATE).toBe(1);
  });

  it('an account that may not read others is a warning once, and no reason to refuse', async () => {
    const { climate, other } = peer.ids.projects;
    const { alice, bob } = peer.ids.users;
    const { create, createNamed, warnings } = await load(
      { max_lease_duration: DAY, max_lease_duration_tag_limits: { hpc: 9 * DAY } },
      { username: 'alice', password: 'alice', project_name: 'climate' },
    );
    // Keystone lets everyone read the own project, the own user and the own domain.
    await expect
      .poll(() => create(climate, alice, 9), LATE)
      .toMatchObject({
        allowed: true,
        names: { project: { name: 'climate', domain: 'Default' }, user: { name: 'alice' } },
      });
    expect((await createNamed(climate, bob, 9)).allowed).toBe(true);
    expect((await create(other, bob, 1)).allowed).toBe(true);
    expect((await create(other, bob, 2)).message).toContain('for any lease is');
    const askedAgain = async () => {
      await create(climate, bob, 9);
      await create(other, bob, 1);
      return warnings().sort();
    };
    await expect.poll(askedAgain, LATE).toEqual(['project forbidden', 'user forbidden']);
  });
});
