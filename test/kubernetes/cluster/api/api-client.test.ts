import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Deadline } from '../../../../src/base/deadline.ts';
import { type ApiClientOptions, createApiClient } from '../../../../src/kubernetes/cluster/api/api-client.ts';
import { REVIEWS_PATH } from '../../../../src/kubernetes/cluster/live/access-review.ts';
import {
  type ApiServerDouble,
  type Fault,
  startApiServerDouble,
} from '../../../support/api-server-double.ts';
import { temporaryFolder } from '../../../support/filter-folder.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { tlsFixture } from '../../../support/tls.ts';
import { stoppedClocks } from '../stopped-clocks.ts';

const MAPS = '/api/v1/namespaces/research/configmaps';
const review = { method: 'POST', path: REVIEWS_PATH, body: { spec: {} } } as const;

async function connected(options: ApiClientOptions = {}) {
  const server = await startApiServerDouble();
  const client = createApiClient({ kubeconfig: server.kubeconfig(), timeoutMs: 30_000, ...options });
  onTestFinished(() => client.close());
  return { server, client };
}

/** Answers the first calls with these faults. */
function first(server: ApiServerDouble, ...faults: readonly Fault[]): void {
  const left = [...faults];
  server.fault = () => left.shift();
}

const get = { method: 'GET', path: `${MAPS}/a` } as const;

describe('the client of an API server', () => {
  it('creates, reads, changes and deletes objects', async () => {
    const { client } = await connected();
    const made = await client.request({
      method: 'POST',
      path: MAPS,
      body: { metadata: { name: 'a' }, data: { x: '1' } },
    });
    expect(made).toMatchObject({ metadata: { name: 'a', generation: 1 } });
    const patched = await client.request({ method: 'PATCH', path: `${MAPS}/a`, body: { data: { y: '2' } } });
    expect(patched).toMatchObject({ data: { x: '1', y: '2' } });
    expect(await client.request({ ...get, query: { pretty: 'false' } })).toEqual(patched);
    await expect(
      client.request({ method: 'PUT', path: `${MAPS}/a`, body: made as object }),
    ).rejects.toMatchObject({ name: 'ApiError', status: 409, reason: 'Conflict' });
    await client.request({ method: 'DELETE', path: `${MAPS}/a` });
    await expect(client.request(get)).rejects.toMatchObject({
      status: 404,
      reason: 'NotFound',
      message: 'configmaps "a" not found',
    });
  });

  it('has the time of the API server, from its latest answer', async () => {
    const { client } = await connected();
    expect(client.serverTime).toBeUndefined();
    await expect(client.request(get)).rejects.toThrow();
    expect(new Date(client.serverTime ?? Number.NaN).getMilliseconds()).toBe(0);
  });

  it('says what is wrong with an answer, and does not ask again for a change', async () => {
    const { server, client } = await connected();
    const faults: readonly [fault: Fault, message: RegExp][] = [
      ['html', /^https:\/\/127\.0\.0\.1:\d+: the answer is a page of HTML: something else answers/],
      ['empty', /: the answer is empty$/],
      ['garbled', /: the answer is not JSON, or was cut off$/],
      ['cut', /: the connection was closed/],
      ['closed', /: the connection was closed/],
      [
        { status: 302, location: 'https://elsewhere.example/' },
        /: the answer is a redirect \(302\), which is not/,
      ],
    ];
    for (const [fault, message] of faults) {
      server.fault = () => fault;
      await expect(client.request({ method: 'PUT', path: `${MAPS}/a`, body: {} })).rejects.toMatchObject({
        name: 'ApiUnreachableError',
        message: expect.stringMatching(message),
      });
    }
    expect(server.requests).toHaveLength(faults.length);
  });

  it.each<[fault: Fault]>([['silent'], [{ delayMs: 60_000 }]])(
    'waits no longer than it may: %j',
    async (fault) => {
      const { server, client } = await connected({ timeoutMs: 50 });
      server.fault = () => fault;
      await expect(client.request(get)).rejects.toThrow(/: no answer within 0\.05 s$/);
    },
  );

  it('tries again where the API server asks for it and nothing can change twice', async () => {
    const { server, client } = await connected();
    server.store.put(MAPS, { metadata: { name: 'a' } });
    first(server, { status: 429, retryAfter: '0' }, { status: 503, retryAfter: '0' });
    expect(await client.request(get)).toMatchObject({ metadata: { name: 'a' } });
    first(server, { status: 503, retryAfter: '0' }, 'closed');
    expect(await client.request(review)).toMatchObject({ status: { allowed: false } });
    expect(server.requests).toHaveLength(6);
  });

  it.each<
    [
      what: string,
      request: Parameters<ReturnType<typeof createApiClient>['request']>[0],
      fault: Fault,
      tries: number,
    ]
  >([
    ['for ever', get, { status: 429, retryAfter: '0' }, 3],
    ['if the pause would take longer than there is time', get, { status: 429, retryAfter: '60' }, 1],
    ['if it is not asked to', get, { status: 503 }, 1],
    ['what it is forbidden', review, { status: 403, retryAfter: '0' }, 1],
    [
      'what may have changed something',
      { method: 'POST', path: MAPS, body: {} },
      { status: 503, retryAfter: '0' },
      1,
    ],
    ['what may have been done', { method: 'DELETE', path: `${MAPS}/a` }, 'closed', 1],
  ])('does not try again %s', async (_what, request, fault, tries) => {
    const { server, client } = await connected();
    server.fault = () => fault;
    await expect(client.request(request)).rejects.toThrow();
    expect(server.requests).toHaveLength(tries);
  });

  it('ends a call when nobody waits for it any more', async () => {
    const { server, client } = await connected();
    server.fault = () => 'silent';
    const wait = new Deadline(0.05);
    await expect(client.request({ ...get, wait })).rejects.toThrow('no answer within 0.05 s');
    const given = new AbortController();
    const asked = client.request({ ...get, signal: given.signal });
    given.abort(new Error('stopped'));
    await expect(asked).rejects.toThrow(/: stopped$/);
    await expect(client.request({ ...get, signal: given.signal })).rejects.toThrow('stopped');
    expect(server.requests.length).toBeLessThanOrEqual(2);
  });

  it('ends calls when it is closed, and takes no more', async () => {
    const { server, client } = await connected();
    server.fault = () => 'silent';
    const asked = client.request(get);
    asked.catch(() => undefined);
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), { interval: 2, timeout: 120_000 });
    await client.close();
    await expect(asked).rejects.toThrow('the client was closed');
    await expect(client.request(get)).rejects.toThrow('the client was closed');
  });

  it('takes a new token at once, and after a 401 asks once more', async () => {
    const server = await startApiServerDouble();
    const folder = temporaryFolder();
    rotate(folder, 'token');
    stoppedClocks();
    const client = createApiClient({ environment: environmentOf(server), serviceAccountFolder: folder });
    onTestFinished(() => client.close());
    expect(client.namespace).toBe('research');
    await client.request(review);
    rotate(folder, 'second');
    server.tokens.clear();
    server.tokens.add('second');
    // The files were looked at a moment ago: only the 401 makes it look again.
    await client.request(review);
    expect(server.requests.map(({ authorization }) => authorization)).toEqual([
      'Bearer token',
      'Bearer token',
      'Bearer second',
    ]);
    server.tokens.clear();
    await expect(client.request(review)).rejects.toMatchObject({ status: 401, reason: 'Unauthorized' });
    expect(server.requests).toHaveLength(5);
  });

  it('keeps the last good credentials while the new ones are half written', async () => {
    const server = await startApiServerDouble();
    const logger = recordingLogger();
    const file = server.kubeconfig();
    const client = createApiClient({ kubeconfig: file, logger });
    onTestFinished(() => client.close());
    await client.request(review);
    const good = readFileSync(file, 'utf8');
    const clocks = stoppedClocks();
    clocks.advance(5_000);
    writeFileSync(file, good.slice(0, good.length / 2));
    await client.request(review);
    clocks.advance(5_000);
    await client.request(review);
    expect(logger.lines).toMatchObject([
      { level: 'warn', fields: { problem: expect.stringContaining(file) } },
    ]);
    expect(JSON.stringify(logger.lines)).not.toContain('"token"');
    clocks.advance(5_000);
    writeFileSync(file, good.replace('"token":"token"', '"token":"second"'));
    server.tokens.add('second');
    await client.request(review);
    expect(server.requests.at(-1)?.authorization).toBe('Bearer second');
    expect(logger.lines.map(({ level }) => level)).toEqual(['warn', 'info']);
  });

  it('calls another API server once the kubeconfig names it, and lets calls to the first one end', async () => {
    const one = await startApiServerDouble();
    const other = await startApiServerDouble();
    const file = one.kubeconfig();
    const client = createApiClient({ kubeconfig: file });
    onTestFinished(() => client.close());
    await client.request(review);
    one.fault = () => ({ delayMs: 100 });
    const slow = client.request(review);
    await vi.waitFor(() => expect(one.requests).toHaveLength(2), { interval: 2, timeout: 120_000 });
    writeFileSync(file, readFileSync(other.kubeconfig(), 'utf8'));
    stoppedClocks().advance(5_000);
    await client.request(review);
    expect(client.server).toBe(other.url);
    expect(other.requests).toHaveLength(1);
    await expect(slow).resolves.toMatchObject({ status: { allowed: false } });
  });

  it('trusts no other authority, whatever the environment says', async () => {
    const { server } = await connected();
    const kubeconfig = server.kubeconfig();
    const text = readFileSync(kubeconfig, 'utf8').replace(tlsFixture('ca.pem'), tlsFixture('second-ca.pem'));
    writeFileSync(kubeconfig, text);
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    const client = createApiClient({ kubeconfig });
    onTestFinished(() => client.close());
    await expect(client.request(get)).rejects.toThrow(
      'its certificate is not from the authority of the cluster',
    );
    expect(server.requests).toEqual([]);
  });

  it('expects the name that the kubeconfig says', async () => {
    const { server } = await connected();
    const kubeconfig = server.kubeconfig();
    const text = readFileSync(kubeconfig, 'utf8');
    const named = async (name: string) => {
      writeFileSync(kubeconfig, text.replace('"server":', `"tls-server-name":"${name}","server":`));
      const client = createApiClient({ kubeconfig });
      onTestFinished(() => client.close());
      return client.request(review);
    };
    await expect(named('localhost')).resolves.toBeDefined();
    await expect(named('api.example')).rejects.toThrow('its certificate is for another name');
  });

  it('bounds answers, and shows of their messages only what can be seen', async () => {
    const { server, client } = await connected();
    server.store.put(MAPS, { metadata: { name: 'a' }, data: 'x'.repeat(5 * 1024 * 1024) });
    await expect(client.request(get)).rejects.toThrow(/^https:\S+: the answer is longer than 4194304 bytes$/);
    expect(await client.request({ method: 'GET', path: MAPS, query: { limit: '500' } })).toBeDefined();
    const asked = client.request({ method: 'GET', path: `${MAPS}/%1b%5b31m${'a'.repeat(5_000)}` });
    await expect(asked).rejects.toMatchObject({ message: expect.not.stringMatching(/.{600}/) });
  });

  it('sends nothing to paths that lead elsewhere', async () => {
    const { server, client } = await connected();
    for (const path of ['/api/v1/../x', '/api//v1', '/api v1', 'api', '']) {
      await expect(client.request({ method: 'GET', path })).rejects.toThrow('a path that no API server has');
    }
    expect(server.requests).toEqual([]);
  });

  it('never lets watches keep requests waiting', async () => {
    const { server, client } = await connected();
    const stop = new AbortController();
    const watching = Promise.allSettled(
      Array.from({ length: 12 }, async () => {
        for await (const _event of client.watch(MAPS, { resourceVersion: '100' }, stop.signal)) {
          // Nothing happens.
        }
      }),
    );
    await vi.waitFor(() => expect(server.watches).toBe(12), { interval: 2, timeout: 120_000 });
    expect(await Promise.all(Array.from({ length: 40 }, () => client.request(review)))).toHaveLength(40);
    stop.abort(new Error('enough'));
    expect(await watching).toMatchObject(
      Array.from({ length: 12 }, () => ({
        status: 'rejected',
        reason: { message: `${server.url}: enough` },
      })),
    );
    await vi.waitFor(() => expect(server.watches).toBe(0), { interval: 2, timeout: 120_000 });
  });

  it('ends the connection of a watch that nobody reads any more', async () => {
    const { server, client } = await connected();
    server.store.put(MAPS, { metadata: { name: 'a' } });
    for await (const { object } of client.watch(
      MAPS,
      { resourceVersion: '100' },
      new AbortController().signal,
    )) {
      expect(object.metadata.name).toBe('a');
      break;
    }
    await vi.waitFor(() => expect(server.watches).toBe(0), { interval: 2, timeout: 120_000 });
  });

  it('refuses a watch as the API server does', async () => {
    const { server, client } = await connected();
    const watch = () =>
      client
        .watch(MAPS, { resourceVersion: '1' }, new AbortController().signal)
        [Symbol.asyncIterator]()
        .next();
    first(server, { status: 403 }, 'html', { status: 204 });
    await expect(watch()).rejects.toMatchObject({ name: 'ApiError', status: 403 });
    await expect(watch()).rejects.toMatchObject({ name: 'ApiUnreachableError' });
    await expect(watch()).rejects.toMatchObject({ name: 'ApiUnreachableError' });
    server.store.compact();
    await expect(watch()).rejects.toMatchObject({ name: 'ApiError', status: 410, reason: 'Expired' });
  });
});

function environmentOf({ url }: ApiServerDouble) {
  return { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: new URL(url).port };
}

/** As the kubelet does: a new folder, and a link that is swapped. */
function rotate(folder: string, token: string): void {
  const data = join(folder, `..${token}`);
  mkdirSync(data);
  writeFileSync(join(data, 'token'), token);
  writeFileSync(join(data, 'ca.crt'), readFileSync(tlsFixture('ca.pem')));
  writeFileSync(join(data, 'namespace'), 'research\n');
  symlinkSync(data, join(folder, '..new'));
  const isFirst = !existsSync(join(folder, '..data'));
  renameSync(join(folder, '..new'), join(folder, '..data'));
  if (isFirst) {
    for (const name of ['token', 'ca.crt', 'namespace']) {
      symlinkSync(join('..data', name), join(folder, name));
    }
  }
}
