/** Lists and watches beside an API server that restarts, forgets, lies and hangs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createApiClient } from '../../../../src/kubernetes/cluster/api/api-client.ts';
import type { ApiObject } from '../../../../src/kubernetes/cluster/api/contract.ts';
import { ListWatch, type ListWatchOptions } from '../../../../src/kubernetes/cluster/api/list-watch.ts';
import { type ApiServerDouble, startApiServerDouble } from '../../../support/api-server-double.ts';
import { recordingLogger } from '../../../support/logger.ts';

const POLICIES = '/apis/scheduling.blazar-enforcement/v1alpha1/schedulingpolicies';

/** What a listener knows: name → version; and what it was told. */
class Known {
  readonly versions = new Map<string, string>();
  readonly told: string[] = [];

  replaced(objects: readonly ApiObject[]): void {
    this.told.push(`replaced ${objects.length}`);
    this.versions.clear();
    for (const object of objects) {
      this.versions.set(object.metadata.name, object.metadata.resourceVersion ?? '');
    }
  }
  changed({ metadata }: ApiObject): void {
    this.told.push(`changed ${metadata.name}`);
    this.versions.set(metadata.name, metadata.resourceVersion ?? '');
  }
  removed({ metadata }: ApiObject): void {
    this.told.push(`removed ${metadata.name}`);
    this.versions.delete(metadata.name);
  }
}

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) {
    await close();
  }
});

async function follow(
  options: Partial<ListWatchOptions> & { readonly prepare?: (server: ApiServerDouble) => void } = {},
) {
  const server = await startApiServerDouble();
  const { prepare = (one) => one.store.put(POLICIES, policy('a')), ...rest } = options;
  prepare(server);
  const client = createApiClient({ kubeconfig: server.kubeconfig(), timeoutMs: 30_000 });
  const known = new Known();
  const logger = recordingLogger();
  const restarts: string[] = [];
  const watch = new ListWatch({
    client,
    path: POLICIES,
    listener: known,
    logger,
    times: { watchSeconds: [60, 60], backoffMs: [1, 20] },
    ...rest,
    observer: { restarted: (reason) => restarts.push(reason) },
  });
  closing.push(async () => {
    await watch.close();
    await client.close();
  });
  watch.start();
  return { server, known, logger, restarts, watch, client };
}

function policy(name: string, spec: object = {}) {
  return {
    apiVersion: 'scheduling.blazar-enforcement/v1alpha1',
    kind: 'SchedulingPolicy',
    metadata: { name },
    spec,
  };
}

/** What the server has: name → version. */
function stored({ store }: ApiServerDouble) {
  const { body } = store.serve('GET', POLICIES, new URLSearchParams(), '');
  const { items } = body as { readonly items: readonly ApiObject[] };
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

const until = (holds: () => void) => vi.waitFor(holds, { interval: 2, timeout: 120_000 });
const watched = (server: ApiServerDouble, watches = 1) => until(() => expect(server.watches).toBe(watches));

describe('following the objects of a kind', () => {
  it('tells of what there is, and of each change', async () => {
    const { server, known, watch } = await follow();
    await watched(server);
    server.store.put(POLICIES, policy('b'));
    server.store.put(POLICIES, policy('a', { required: {} }));
    server.store.remove(POLICIES, 'b');
    await until(() => expect(known.told).toEqual(['replaced 1', 'changed b', 'changed a', 'removed b']));
    expect(known.versions).toEqual(stored(server));
    expect(watch.following).toEqual({ hasList: true, currentAt: expect.any(Number), problem: undefined });
  });

  it('lists anew if the kubeconfig names another cluster, however high its versions are', async () => {
    const other = await startApiServerDouble();
    for (let version = 0; version < 50; version += 1) {
      other.store.put(POLICIES, policy('b', { version }));
    }
    const server = await startApiServerDouble();
    server.store.put(POLICIES, policy('a'));
    const kubeconfig = server.kubeconfig();
    const client = createApiClient({ kubeconfig });
    const { known, watch } = await follow({ client, times: { watchSeconds: [1, 1], backoffMs: [1, 20] } });
    closing.push(() => client.close());
    await until(() => expect([...known.versions.keys()]).toEqual(['a']));
    writeFileSync(kubeconfig, readFileSync(other.kubeconfig(), 'utf8'));
    await until(() => expect(known.versions).toEqual(stored(other)));
    await until(() => expect(watch.following.problem).toBeUndefined());
  });

  it('knows nothing before the first list', async () => {
    const { watch, server, known } = await follow({ prepare: (one) => one.freeze() });
    await until(() => expect(server.requests).toHaveLength(1));
    expect(watch.following).toEqual({ hasList: false, currentAt: undefined, problem: undefined });
    expect(known.told).toEqual([]);
  });

  it('keeps no object of a list while it watches', async () => {
    const seen: WeakRef<ApiObject>[] = [];
    const listener = {
      replaced: (objects: readonly ApiObject[]) => {
        seen.push(...objects.map((object) => new WeakRef(object)));
      },
      changed: () => {},
      removed: () => {},
    };
    const { server } = await follow({ listener });
    await watched(server);
    expect(seen).toHaveLength(1);
    // What a WeakRef was made for stays until the turn is over.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(seen[0]?.deref()).toBeUndefined();
  });

  it('begins anew where a list expires in the middle, and shows no half of it', async () => {
    let pages = 0;
    const { known, server } = await follow({
      prepare: (one) => {
        for (let number = 0; number < 600; number += 1) {
          one.store.put(POLICIES, policy(`p${number}`));
        }
        one.fault = ({ query }) => {
          pages += 1;
          if (query.has('continue') && pages === 2) {
            one.store.remove(POLICIES, 'p1');
            one.store.compact();
          }
          return undefined;
        };
      },
    });
    await watched(server);
    expect(known.told).toEqual(['replaced 599']);
    expect(known.versions).toEqual(stored(server));
  });

  it('goes on from its version where a watch ends on time', async () => {
    const { server, known, restarts } = await follow({
      times: { watchSeconds: [0.1, 0.1], backoffMs: [1, 20] },
    });
    await until(() => expect(restarts[0]).toBe('ended'));
    server.store.put(POLICIES, policy('b'));
    await until(() => expect(known.told).toEqual(['replaced 1', 'changed b']));
  });

  it.each([
    ['ends before its time', 'failed', (server: ApiServerDouble) => server.endWatches()],
    ['is cut off in the middle of an event', 'failed', (server: ApiServerDouble) => server.cutWatches()],
    ['says what is not JSON', 'failed', (server: ApiServerDouble) => server.writeToWatches('Bad Gateway\n')],
    [
      'says what is no event',
      'failed',
      (server: ApiServerDouble) => server.writeToWatches('{"type":"ADDED"}\n'),
    ],
    [
      'says that it has expired',
      'expired',
      (server: ApiServerDouble) =>
        server.writeToWatches('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'),
    ],
    [
      'goes back in time',
      'failed',
      (server: ApiServerDouble) =>
        server.writeToWatches('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n'),
    ],
    [
      'tells an older change',
      'failed',
      (server: ApiServerDouble) =>
        server.writeToWatches(
          '{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}\n',
        ),
    ],
  ])('lists again where a watch %s', async (_name, reason, harm) => {
    const { server, known, restarts } = await follow();
    await watched(server);
    harm(server);
    await until(() => expect(restarts).toEqual([reason]));
    await until(() => expect(known.told).toEqual(['replaced 1', 'replaced 1']));
    await watched(server);
    server.store.put(POLICIES, policy('b'));
    await until(() => expect(known.versions).toEqual(stored(server)));
  });

  it('is not current after etcd was restored, until the API server was restarted', async () => {
    const { server, known, restarts, watch } = await follow({
      times: { watchSeconds: [0.1, 0.1], backoffMs: [1, 20] },
    });
    await until(() => expect(restarts).toContain('ended'));
    server.store.version = 50;
    server.store.put(POLICIES, policy('restored'));
    await until(() => expect(watch.following.problem).toContain('its versions have gone back'));
    const { currentAt } = watch.following;
    const { length } = known.told;
    // It still tells the changes of before: each list is followed by them.
    await until(() => expect(known.told.length).toBeGreaterThan(length + 4));
    expect(watch.following).toMatchObject({
      currentAt,
      problem: expect.stringContaining('restart all API servers'),
    });
    server.store.compact();
    await until(() => expect(watch.following.problem).toBeUndefined());
    expect(known.versions).toEqual(stored(server));
    expect(watch.following.currentAt).toBeGreaterThan(currentAt ?? Number.NaN);
  });

  it('is not current where the API server serves watches but cannot read from etcd', async () => {
    const { server, watch } = await follow({ times: { watchSeconds: [0.1, 0.1], backoffMs: [1, 20] } });
    await watched(server);
    server.fault = ({ query }) => (query.has('watch') ? undefined : { status: 500 });
    await until(() => expect(watch.following.problem).toContain('500 Faulty'));
    const { currentAt } = watch.following;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(watch.following.currentAt).toBe(currentAt);
    server.fault = () => undefined;
    await until(() => expect(watch.following.problem).toBeUndefined());
    expect(watch.following.currentAt).toBeGreaterThan(currentAt ?? Number.NaN);
  });

  it('gives up a watch that is silent beyond its time, and says so', async () => {
    const { server, known, restarts, watch, logger } = await follow({
      times: { watchSeconds: [0.1, 0.1], graceMs: 50, backoffMs: [1, 20] },
    });
    await watched(server);
    server.freeze();
    await until(() => expect(restarts).toContain('silent'));
    expect(watch.following.problem).toMatch(/^https:\/\/127\.0\.0\.1:\d+: silent for up to 0 s$/);
    server.store.put(POLICIES, policy('b'));
    server.thaw();
    await until(() => expect(known.versions).toEqual(stored(server)));
    expect(watch.following.problem).toBeUndefined();
    expect(logger.lines.map(({ level }) => level)).toEqual(['warn', 'info']);
  });

  it('says why it has no list', async () => {
    const { server, watch, known } = await follow({
      prepare: (one) => {
        one.fault = () => 'closed';
      },
      hints: { forbidden: 'bind the role', notFound: 'apply the definition' },
    });
    for (const [fault, words] of [
      ['closed', 'the connection was closed'],
      [{ status: 403 }, 'the account may not list and watch schedulingpolicies: bind the role'],
      [{ status: 404 }, 'does not know schedulingpolicies: apply the definition'],
      [{ status: 401 }, 'does not accept the credentials (401)'],
      [{ status: 500 }, 'refuses to list or watch schedulingpolicies: 500 Faulty'],
      [{ status: 302, location: 'https://elsewhere.example/' }, 'a redirect (302)'],
      ['html', 'a page of HTML'],
      ['empty', 'the answer is empty'],
      ['garbled', 'not JSON, or was cut off'],
      ['cut', 'the connection was closed'],
    ] as const) {
      server.fault = () => fault;
      await until(() => expect(watch.following.problem).toContain(words));
    }
    expect(watch.following).toMatchObject({ hasList: false, currentAt: undefined });
    server.fault = () => undefined;
    await watched(server);
    expect(watch.following.problem).toBeUndefined();
    expect(known.told).toEqual(['replaced 0']);
  });

  it('tells everything again to a listener that has thrown', async () => {
    const known = new Known();
    let isDeaf = true;
    const { server, watch, logger } = await follow({
      listener: {
        replaced: (objects) => known.replaced(objects),
        removed: (object) => known.removed(object),
        changed: (object) => {
          if (isDeaf) {
            throw new Error('out of order');
          }
          known.changed(object);
        },
      },
    });
    await watched(server);
    server.store.put(POLICIES, policy('b'));
    await until(() => expect(known.told).toEqual(['replaced 1', 'replaced 2']));
    isDeaf = false;
    await watched(server);
    server.store.put(POLICIES, policy('c'));
    await until(() => expect(known.versions).toEqual(stored(server)));
    expect(watch.following.problem).toBeUndefined();
    expect(logger.lines.map(({ message }) => message)).toContain(
      'a change in the cluster could not be taken over',
    );
  });

  it('tells nothing after it was closed', async () => {
    const { server, known, watch } = await follow();
    await watched(server);
    await watch.close();
    server.store.put(POLICIES, policy('b'));
    await watched(server, 0);
    expect(known.told).toEqual(['replaced 1']);
  });
});
