/** Live pages of the console over real connections: what they are told, and when they are let go. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Listeners } from '../../../../src/server/console/live/listeners.ts';
import type { Caller } from '../../../../src/server/users/caller.ts';
import { createLasting } from '../../../support/requests.ts';
import { runService } from '../../../support/running-service.ts';
import { member } from '../../served-generation.ts';
import { listen } from './listen.ts';

const SECRET = 's3cret-0123456789abcdef';
const memberOf = (project: string) => member('m', { [project]: false });

function newListeners(): Listeners {
  const listeners = new Listeners();
  onTestFinished(() => listeners.close());
  return listeners;
}

/** Listens without a connection. */
function hearing(listeners: Listeners, caller: Caller, more: Partial<Parameters<Listeners['open']>[0]> = {}) {
  const stream = listeners.open({
    caller,
    key: caller.who,
    identity: caller.who,
    askEvery: 1000,
    isStillThere: async () => true,
    ...more,
  });
  let heard = '';
  let isOver = false;
  stream?.on('data', (chunk: Buffer) => {
    heard += chunk;
  });
  stream?.once('end', () => {
    isOver = true;
  });
  return {
    changes: () => heard.split('event: change').length - 1,
    isOver: () => isOver,
    isOpen: stream !== undefined,
  };
}

const reader: Caller = { ...member('reader', {}), kind: 'reader', who: 'reader' };

describe('a page that listens', () => {
  it('is told of the next decision, and is let go when the service stops', async () => {
    const service = await runService({ service: { tokens: [SECRET] } });
    const token = { 'X-Auth-Token': SECRET };
    const { status, headers, events, ended } = await listen(service.url, token);
    expect({ status, type: headers.get('Content-Type'), kept: headers.get('Cache-Control') }).toEqual({
      status: 200,
      type: 'text/event-stream; charset=utf-8',
      kept: 'no-store',
    });
    await expect.poll(events).toEqual(['hello']);
    await service.post('/check-create', createLasting(60), token);
    await expect.poll(events).toEqual(['hello', 'change']);
    // At once, not after the time that requests are given.
    await service.service.close();
    await ended;
  });

  it('is not let go with a short deadline, after which silent connections are closed', async () => {
    const { url } = await runService({ service: { deadline: 1 } });
    const { heartbeats, ended } = await listen(url);
    let isOver = false;
    ended
      .catch(() => {})
      .finally(() => {
        isOver = true;
      });
    await expect.poll(() => isOver || heartbeats() >= 3).toBe(true);
    expect(isOver).toBe(false);
  });

  it('of nobody hears nothing', async () => {
    const { url } = await runService({ service: { tokens: [SECRET] } });
    expect((await listen(url)).status).toBe(401);
    expect((await listen(url, { 'X-Auth-Token': 'wrong' })).status).toBe(401);
    expect((await listen(url, { Cookie: 'blazar-enforcement-session=made-up' })).status).toBe(401);
  });

  it('is let go when there is a new configuration, which may say otherwise who may see what', async () => {
    const service = await runService({ service: { tokens: [SECRET] } });
    const token = { 'X-Auth-Token': SECRET };
    const { events, ended } = await listen(service.url, token);
    await expect.poll(events).toEqual(['hello']);
    await service.service.reload();
    await ended;
    expect(events()).toEqual(['hello', 'change']);
    expect((await listen(service.url, token)).status).toBe(200);
  });

  it('is one of a few of the same session', async () => {
    const { url } = await runService();
    const open = await Promise.all([1, 2, 3, 4].map(() => listen(url)));
    expect(open.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const { status, headers } = await listen(url);
    expect({ status, again: headers.get('Retry-After') }).toEqual({ status: 503, again: '30' });
    open[0]?.leave();
    await expect.poll(async () => (await listen(url)).status).toBe(200);
  });
});

describe('a member', () => {
  it('is told of their projects alone', async () => {
    const listeners = newListeners();
    const [mine, theirs, all] = [memberOf('mine'), memberOf('theirs'), reader].map((one) =>
      hearing(listeners, one, { key: one.memberships[0]?.projectId ?? 'all' }),
    );
    listeners.changed('mine');
    await expect.poll(() => [mine?.changes(), theirs?.changes(), all?.changes()]).toEqual([1, 0, 1]);
    listeners.changed(undefined);
    await expect.poll(() => [mine?.changes(), theirs?.changes(), all?.changes()]).toEqual([1, 0, 2]);
  });

  it('is not told of what is only called like their project', async () => {
    const listeners = newListeners();
    const one = hearing(listeners, memberOf('mine'));
    const all = hearing(listeners, reader);
    const record = { operation: 'kubernetes.CREATE', project_id: 'mine' };
    listeners.decided(record as unknown as Parameters<Listeners['decided']>[0]);
    await expect.poll(() => [one.changes(), all.changes()]).toEqual([0, 1]);
  });

  it('is let go when they are not who they were, or when nobody can say', async () => {
    for (const isStillThere of [async () => false, () => Promise.reject(new Error('Keystone is away'))]) {
      const listeners = new Listeners();
      const one = hearing(listeners, memberOf('mine'), { isStillThere });
      listeners.tick(performance.now() + 900);
      expect(listeners.isEmpty).toBe(false);
      listeners.tick(performance.now() + 1000);
      await expect.poll(one.isOver).toBe(true);
      expect(listeners.isEmpty).toBe(true);
    }
  });

  it('is asked about when it is time, though the clock was set back', async () => {
    const listeners = newListeners();
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-11-21T09:00:00Z') });
    const isStillThere = vi.fn(async () => true);
    hearing(listeners, memberOf('mine'), { askEvery: 0, isStillThere });
    for (const time of ['2026-11-21T09:02:00Z', '2026-11-21T09:01:00Z']) {
      vi.setSystemTime(time);
      listeners.tick();
    }
    expect(isStillThere).toHaveBeenCalledTimes(2);
  });

  it('is let go after a while, and asked again who they are', async () => {
    const listeners = new Listeners();
    const one = hearing(listeners, memberOf('mine'));
    listeners.tick(performance.now() + 600_000);
    await expect.poll(one.isOver).toBe(true);
  });
});

it('as many may listen as there are connections to spare, and none after the end', () => {
  const listeners = new Listeners();
  const open = Array.from({ length: 201 }, (_, index) =>
    hearing(listeners, reader, { key: String(index), identity: String(index) }),
  );
  expect(open.filter(({ isOpen }) => isOpen)).toHaveLength(200);
  listeners.close();
  expect(listeners.isEmpty).toBe(true);
  expect(hearing(listeners, reader).isOpen).toBe(false);
});

it('several pages of one session are asked about once, and end together', async () => {
  const listeners = newListeners();
  const isStillThere = vi.fn(async () => false);
  const ofSession = (key: string, answers = isStillThere) =>
    hearing(listeners, reader, { key, isSession: true, askEvery: 0, isStillThere: answers });
  const pages = [ofSession('one'), ofSession('one'), ofSession('one')];
  const other = ofSession(
    'other',
    vi.fn(async () => true),
  );
  listeners.tick();
  await expect.poll(() => pages.map(({ isOver }) => isOver())).toEqual([true, true, true]);
  expect(isStillThere).toHaveBeenCalledTimes(1);
  expect(other.isOver()).toBe(false);
});

it.each([
  ['user', 'keystone', 12],
  ['token of the configuration', 'token', 60],
] as const)('one %s listens with so many pages at most, whatever the sessions are', (_, provenBy, most) => {
  const listeners = newListeners();
  const open = Array.from({ length: most + 5 }, (_, index) =>
    hearing(listeners, { ...reader, provenBy }, { key: String(index) }),
  );
  expect(open.map(({ isOpen }) => isOpen)).toEqual(open.map((_, index) => index < most));
});

it('of two hundred streams, those of whoever has most give way, the newest first', async () => {
  const listeners = newListeners();
  const of = (identity: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      hearing(listeners, reader, { identity, key: `${identity} ${index}` }),
    );
  const busy = Array.from({ length: 16 }, (_, index) => of(`busy ${index}`, 12));
  const calm = of('calm', 8);
  const [late] = of('late', 1);
  expect(late?.isOpen).toBe(true);
  await expect.poll(() => busy.flat().filter(({ isOver }) => isOver()).length).toBe(1);
  expect(busy[0]?.[11]?.isOver()).toBe(true);
  expect(calm.some(({ isOver }) => isOver())).toBe(false);
  // It comes back, and is the one that has most again.
  expect(of('busy 0', 1)[0]?.isOpen).toBe(false);
});

it('thousands of decisions are told at once', async () => {
  const listeners = newListeners();
  const all = hearing(listeners, reader);
  for (let index = 0; index < 20_000; index += 1) {
    listeners.changed(`p${index}`);
  }
  await expect.poll(all.changes).toBe(1);
});
