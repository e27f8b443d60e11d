/** What one worker follows for all, over the sockets between workers. */
import { createServer, type RequestListener, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createApiClient } from '../../../src/kubernetes/cluster/api/api-client.ts';
import type { ApiObject } from '../../../src/kubernetes/cluster/api/contract.ts';
import { elapsed } from '../../../src/kubernetes/cluster/api/elapsed.ts';
import { ListWatch } from '../../../src/kubernetes/cluster/api/list-watch.ts';
import { Desk } from '../../../src/server/workers/desk.ts';
import { FollowedByOne } from '../../../src/server/workers/followed-by-one.ts';
import { type ApiServerDouble, startApiServerDouble } from '../../support/api-server-double.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

const POLICIES = '/apis/scheduling.blazar-enforcement/v1alpha1/schedulingpolicies';
const until = (holds: () => void) => vi.waitFor(holds, { interval: 2, timeout: 30_000 });

function policy(name: string, spec: object = {}) {
  return { kind: 'SchedulingPolicy', metadata: { name }, spec };
}

/** Workers of one service beside one API server. The number of the one that follows for all may change. */
async function crew(server: ApiServerDouble) {
  const folder = temporaryFolder();
  const kubeconfig = server.kubeconfig();
  let chosen: number | undefined = 1;
  const workers = new Map<number, FollowedByOne>();
  const start = async (number: number) => {
    const link = {
      get isDesk() {
        return chosen === number;
      },
      get deskPath() {
        return chosen === undefined ? undefined : join(folder, String(chosen));
      },
    };
    const followed = new FollowedByOne(link);
    const answer: RequestListener = (_, response) => response.end(`worker ${number}`);
    const desk = await Desk.open({
      ...{ ownPath: join(folder, String(number)), isDesk: () => link.isDesk, deskPath: () => link.deskPath },
      ...{
        isForEach: () => false,
        answer,
        prepare: async () => {},
        tell: (url, to) => followed.tell(url, to),
      },
    });
    const client = createApiClient({ kubeconfig, timeoutMs: 30_000 });
    const known = new Map<string, string>();
    const keep = ({ metadata: { name, resourceVersion = '' } }: ApiObject) =>
      void known.set(name, resourceVersion);
    const listener = {
      replaced: (objects: readonly ApiObject[]) => {
        known.clear();
        objects.forEach(keep);
      },
      changed: keep,
      removed: ({ metadata: { name } }: ApiObject) => void known.delete(name),
    };
    const shared = followed.share(POLICIES, listener, (hears) => {
      const times = { watchSeconds: [60, 60], backoffMs: [1, 20] } as const;
      return new ListWatch({ client, path: POLICIES, listener: hears, times });
    });
    shared.start();
    workers.set(number, followed);
    const end = async () => {
      workers.delete(number);
      await Promise.all([shared.close(), desk.close(0)]);
      await client.close();
    };
    onTestFinished(end);
    return { known, shared, end, answer: desk.answer };
  };
  return {
    start,
    choose: (number: number | undefined) => {
      chosen = number;
      workers.get(number ?? 0)?.lead();
    },
  };
}

/** What the server has: name → version. */
function stored({ store }: ApiServerDouble): Map<string, string | undefined> {
  const { body } = store.serve('GET', POLICIES, new URLSearchParams(), '');
  const { items } = body as { readonly items: readonly ApiObject[] };
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
}

describe('objects that one worker follows for all', () => {
  it('are known to all, by one watch, also to one that comes later', async () => {
    const server = await startApiServerDouble();
    // A line of JSON has line breaks of Unicode in it.
    server.store.put(POLICIES, policy('a', { description: 'one\u2028two\u2029three' }));
    const { start } = await crew(server);
    const one = await start(1);
    const other = await start(2);
    await until(() => expect(other.shared.following).toMatchObject({ hasList: true, problem: undefined }));
    server.store.put(POLICIES, policy('b'));
    server.store.put(POLICIES, policy('a', { required: {} }));
    const late = await start(3);
    await until(() => expect(late.known).toEqual(stored(server)));
    server.store.remove(POLICIES, 'b');
    await until(() => {
      for (const { known } of [one, other, late]) {
        expect([...known]).toEqual([...stored(server)]);
      }
    });
    await until(() => expect(server.watches).toBe(1));
    expect(elapsed() - (late.shared.following.currentAt ?? 0)).toBeGreaterThan(0);
  });

  it('stay known, as of before, when that worker ends, until the next one has read a list', async () => {
    const server = await startApiServerDouble();
    server.store.put(POLICIES, policy('a'));
    const { start, choose } = await crew(server);
    const one = await start(1);
    const [next, other] = [await start(2), await start(3)];
    await until(() => {
      expect(next.known).toEqual(stored(server));
      expect(other.known).toEqual(stored(server));
      expect(next.shared.following.currentAt).toBeDefined();
    });
    choose(undefined);
    await one.end();
    const problem = 'no worker of this service follows the cluster now';
    await until(() => expect(next.shared.following).toMatchObject({ hasList: true, problem }));
    const { currentAt = 0 } = next.shared.following;
    server.store.put(POLICIES, policy('b'));
    server.freeze();
    choose(2);
    expect(next.shared.following).toMatchObject({ hasList: true, currentAt });
    expect([...next.known.keys()]).toEqual(['a']);
    server.thaw();
    await until(() => {
      expect(next.known).toEqual(stored(server));
      expect(other.known).toEqual(stored(server));
      expect(other.shared.following).toMatchObject({ hasList: true, problem: undefined });
    });
    expect(next.shared.following.currentAt).toBeGreaterThan(currentAt);
    await until(() => expect(server.watches).toBe(1));
  });

  it('are not known to a worker that has heard no list, however current others are', async () => {
    const server = await startApiServerDouble();
    const { start } = await crew(server);
    const one = await start(1);
    await until(() => expect(one.shared.following.hasList).toBe(true));
    // No further list.
    server.fault = ({ query }) => (query.get('watch') === null ? { status: 500 } : undefined);
    const other = await start(2);
    await until(() => expect(other.shared.following.problem).toContain('500'));
    expect(other.shared.following).toMatchObject({ hasList: false, currentAt: undefined });
    server.store.put(POLICIES, policy('a'));
    server.fault = () => undefined;
    await until(() => expect(other.known).toEqual(stored(server)));
    expect(other.shared.following.hasList).toBe(true);
  });

  it('cannot be asked for by a client', async () => {
    const server = await startApiServerDouble();
    const { start } = await crew(server);
    const one = await start(1);
    await until(() => expect(one.shared.following.hasList).toBe(true));
    const { answer } = await start(2);
    const edge = createServer(answer);
    await new Promise<void>((listening) => edge.listen(0, '127.0.0.1', listening));
    onTestFinished(() => void edge.close());
    const got = await new Promise((resolve, reject) => {
      const { port } = edge.address() as AddressInfo;
      const headers = { Connection: 'Upgrade', Upgrade: 'blazar-enforcement-objects' };
      request({ port, path: `/${encodeURIComponent(POLICIES)}`, headers, agent: false })
        .on('upgrade', (_, socket) => resolve(socket.destroy()))
        .on('response', (response) => resolve(text(response)))
        .on('error', reject)
        .end();
    });
    expect(got).toBe('worker 1');
  });
});
