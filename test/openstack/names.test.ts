/** The names of ids, from the recorded answers of a real Keystone. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpClient } from '../../src/http/client.ts';
import { createKeystone } from '../../src/openstack/keystone.ts';
import { keystoneOptions } from '../../src/openstack/keystone-options.ts';
import { Names } from '../../src/openstack/names.ts';
import { recordingLogger } from '../support/logger.ts';
import { changedAnswer, IDS, recorded, recordedKeystone } from '../support/recorded-identities.ts';

const of = (project_id: string, user_id: string = IDS.alice) => ({ project_id, user_id });
const CLIMATE = { name: 'climate', domain: 'Default', tags: ['hpc', 'lease-days=14'] };
const ALICE = { name: 'alice', domain: 'Default', tags: [] };
const projectRequest = (id: string) => `GET /v3/projects/${id}`;

async function setup(options: Readonly<Record<string, unknown>> = {}) {
  const keystone = await recordedKeystone();
  const logger = recordingLogger();
  const time = { ms: Date.parse('2026-11-21T09:00:00Z') };
  const clock = { now: () => new Date(time.ms) };
  const parsed = keystoneOptions.parse({ ...keystone.options, ...options });
  const http = { createClient: createHttpClient };
  const client = createKeystone(parsed, { http, clock, logger });
  onTestFinished(() => client.close());
  const missing: string[] = [];
  const observer = { nameMissing: (kind: string, reason: string) => missing.push(`${kind} ${reason}`) };
  const names = new Names(client, parsed, { logger, clock, observer });
  const count = (request: string) => keystone.asked.filter((one) => one === request).length;
  return { keystone, names, logger, missing, count, pass: (seconds: number) => (time.ms += seconds * 1000) };
}

/** Until the answers that nobody waits for are there. */
async function settled(isSo: () => boolean): Promise<void> {
  for (let turn = 0; turn < 2000 && !isSo(); turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(isSo()).toBe(true);
}

describe('names', () => {
  it('are those of project, domain and user, with the tags of the project', async () => {
    const { names, missing } = await setup();
    // A lease waits for two seconds; a machine that is busy elsewhere may need longer.
    await names.learn([IDS.climate, IDS.other], [IDS.alice, IDS.dave], 60_000);
    expect(await names.of(of(IDS.climate))).toEqual({ project: CLIMATE, user: ALICE });
    expect(await names.of(of(IDS.other, IDS.dave))).toEqual({
      project: { name: 'climate', domain: 'other', tags: [] },
      user: { name: 'dave', domain: 'other', tags: [] },
    });
    expect(missing).toEqual([]);
  });

  it('are asked for once, by however many wait for them', async () => {
    const { names, keystone } = await setup();
    const all = await Promise.all(Array.from({ length: 50 }, () => names.of(of(IDS.climate))));
    expect(all.every(({ project }) => project?.name === 'climate')).toBe(true);
    expect(keystone.asked.sort()).toEqual([
      'GET /v3/domains/default',
      projectRequest(IDS.climate),
      `GET /v3/users/${IDS.alice}`,
    ]);
  });

  it('that are known make nobody wait, and are asked for anew while they are used', async () => {
    const { names, pass, count } = await setup();
    await names.of(of(IDS.climate));
    pass(149);
    expect(names.of(of(IDS.climate))).toEqual({ project: CLIMATE, user: ALICE });
    expect(count(projectRequest(IDS.climate))).toBe(1);
    pass(2);
    expect(names.of(of(IDS.climate))).toEqual({ project: CLIMATE, user: ALICE });
    await settled(() => count(projectRequest(IDS.climate)) === 2);
  });

  it('that have changed apply within the cache time, those of domains too', async () => {
    const { names, keystone, pass } = await setup();
    await names.of(of(IDS.climate));
    const renamed = changedAnswer('projects-climate', { name: 'weather', tags: [] });
    keystone.answer(projectRequest(IDS.climate), renamed);
    keystone.answer('GET /v3/domains/default', changedAnswer('domains-default', { name: 'Main' }));
    pass(301);
    expect(await names.of(of(IDS.climate))).toMatchObject({
      project: { name: 'weather', domain: 'Main', tags: [] },
    });
  });

  it('stay known while Keystone is away, up to their greatest age; others are unknown', async () => {
    const { names, keystone, pass, missing, logger } = await setup({ names_max_age: 3600 });
    await names.of(of(IDS.climate));
    await keystone.stop();
    pass(3599);
    expect(await names.of(of(IDS.climate))).toEqual({ project: CLIMATE, user: ALICE });
    expect(await names.of(of(IDS.physics))).toEqual({ project: undefined, user: ALICE });
    expect(missing).toEqual(['project unavailable']);
    pass(2);
    expect(await names.of(of(IDS.climate))).toEqual({ project: undefined, user: undefined });
    expect(logger.lines.filter(({ message }) => message.includes('did not return'))).toMatchObject([
      { level: 'warn', fields: { kind: 'project', id: IDS.physics, reason: 'unavailable' } },
      { level: 'warn', fields: { kind: 'user', reason: 'unavailable' } },
    ]);
  });

  it('come again when Keystone does', async () => {
    const { names, keystone, pass } = await setup();
    keystone.answer(projectRequest(IDS.climate), { status: 503, contentType: 'text/html', body: '<html>' });
    expect(await names.of(of(IDS.climate))).toMatchObject({ project: undefined, user: ALICE });
    keystone.answer(projectRequest(IDS.climate), recorded('projects-climate'));
    expect(await names.of(of(IDS.climate))).toMatchObject({ project: undefined });
    pass(6);
    expect(await names.of(of(IDS.climate))).toMatchObject({ project: CLIMATE });
  });

  it('that come too late are waited for no longer than half of the time that is left', async () => {
    const { names, keystone, count, missing } = await setup();
    keystone.hold();
    const first = names.of(of(IDS.climate), { milliseconds: 40 });
    expect(await first).toEqual({ project: undefined, user: undefined });
    expect(missing).toEqual(['project unavailable', 'user unavailable']);
    // For a while nobody waits, although the answer is still wanted.
    expect(names.of(of(IDS.physics))).toEqual({ project: undefined, user: undefined });
    await settled(() => count(projectRequest(IDS.physics)) === 1);
    keystone.release();
    await settled(() => names.known(of(IDS.climate)).project !== undefined);
    names.of(of(IDS.climate));
    await settled(() => names.known(of(IDS.climate)).project?.domain === 'Default');
    expect(count(projectRequest(IDS.climate))).toBe(1);
  });

  it('of ids that Keystone does not have are not asked for again at once', async () => {
    const { names, count, missing, pass, logger } = await setup();
    const unknown = '0'.repeat(32);
    for (let turn = 0; turn < 5; turn += 1) {
      expect(await names.of(of(unknown))).toEqual({ project: undefined, user: ALICE });
    }
    expect(count(projectRequest(unknown))).toBe(1);
    expect(missing).toEqual(Array(5).fill('project unknown'));
    expect(logger.lines).toHaveLength(1);
    pass(61);
    await names.of(of(unknown));
    expect(count(projectRequest(unknown))).toBe(2);
    expect(logger.lines).toHaveLength(2);
  });

  it('of a project that was deleted are forgotten', async () => {
    const { names, keystone, pass } = await setup();
    await names.of(of(IDS.climate));
    keystone.answer(projectRequest(IDS.climate), recorded('projects-unknown'));
    pass(301);
    expect(await names.of(of(IDS.climate))).toMatchObject({ project: undefined });
  });

  it('that our account may not read are a warning once, and not asked for at each request', async () => {
    const { names, keystone, logger, pass, missing } = await setup();
    for (const id of [IDS.alice, IDS.dave]) {
      keystone.answer(`GET /v3/users/${id}`, recorded('users-forbidden'));
    }
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await names.of(of(IDS.climate))).toEqual({ project: CLIMATE, user: undefined });
      await names.of(of(IDS.climate, IDS.dave));
    }
    expect(keystone.asked.filter((one) => one.startsWith('GET /v3/users/'))).toHaveLength(2);
    pass(3600);
    await names.of(of(IDS.climate));
    expect(missing).toEqual(Array(7).fill('user forbidden'));
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { kind: 'user', reason: 'forbidden' } }]);
  });

  it('of a domain that our account may not read are missing; the tags of its projects count', async () => {
    const { names, keystone, missing } = await setup();
    keystone.answer('GET /v3/domains/default', recorded('domains-forbidden'));
    expect(await names.of(of(IDS.climate))).toMatchObject({
      project: { name: 'climate', domain: '', tags: ['hpc', 'lease-days=14'] },
    });
    expect(missing).toEqual(['domain forbidden', 'domain forbidden']);
  });

  it.each([
    ...['../users/x', 'a/b', 'a%2Fb', '..', '.', '', 'a b', 'a?b', 'a#b', 'ü'],
    'x'.repeat(65),
    'x'.repeat(1_000_000),
    'a\r\nb',
    '\u0000',
  ])('are not asked for by an id that is none: %j', async (id) => {
    const { names, keystone, missing } = await setup();
    expect(await names.of(of(id.slice(0, 2_000_000)))).toEqual({ project: undefined, user: ALICE });
    expect(keystone.asked.sort()).toEqual(['GET /v3/domains/default', `GET /v3/users/${IDS.alice}`]);
    expect(missing).toEqual(['project implausible']);
  });

  it.each([
    ['an HTML page', { status: 200, contentType: 'text/html', body: '<html>login</html>' }],
    ['the 404 of a proxy', { status: 404, contentType: 'text/html', body: '<html>' }],
    ['no route', recorded('projects-no-route')],
    ['a redirect', { status: 302, contentType: 'text/html', body: '' }],
    ['another project', recorded('projects-physics')],
    ['an id in capitals', changedAnswer('projects-climate', { id: IDS.climate.toUpperCase() })],
    ['a domain', changedAnswer('projects-climate', { domain_id: null })],
    ['no name', changedAnswer('projects-climate', { name: '' })],
    ['a name that is no text', changedAnswer('projects-climate', { name: ['climate'] })],
    ['an endless name', changedAnswer('projects-climate', { name: 'x'.repeat(100_000) })],
    ['endless tags', changedAnswer('projects-climate', { tags: Array(100_000).fill('x') })],
    ['tags that are no texts', changedAnswer('projects-climate', { tags: [{ a: 1 }] })],
    ['null', { status: 200, contentType: 'application/json', body: null }],
    ['a body of 3 MiB', changedAnswer('projects-climate', { description: 'x'.repeat(3 << 20) })],
  ])('are missing after an answer that is %s', async (_, answer) => {
    const { names, keystone, missing } = await setup();
    keystone.answer(projectRequest(IDS.climate), answer);
    expect(await names.of(of(IDS.climate))).toEqual({ project: undefined, user: ALICE });
    expect(missing[0]).toMatch(/^project un(usable|available)$/);
  });

  it('of random ids push out none that are known, and keep a bounded number of requests under way', async () => {
    const { names, keystone } = await setup();
    await names.of(of(IDS.climate));
    keystone.hold();
    for (let index = 0; index < 20_000; index += 1) {
      void names.of(of(index.toString(16).padStart(32, '0')), { milliseconds: 0 });
    }
    expect(names.of(of(IDS.climate))).toEqual({ project: CLIMATE, user: ALICE });
    keystone.release();
    await settled(() => keystone.asked.length <= 3 + 128);
  });

  it('cannot be changed by a filter', async () => {
    const { names } = await setup();
    const { project } = await names.of(of(IDS.climate));
    const tags = project?.tags as string[] | undefined;
    expect(() => tags?.push('free')).toThrow(TypeError);
    expect(() => Object.assign(project ?? {}, { name: 'physics' })).toThrow(TypeError);
  });
});
