import { getEventListeners, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Deadline } from '../../src/base/deadline.ts';
import { withKeystoneToken } from '../../src/filter/service-calls.ts';
import type { HttpClient } from '../../src/http/contract.ts';
import {
  failure,
  loadLibraries,
  newClient,
  startService,
  startUnresponsiveService,
  watchSockets,
} from '../support/services.ts';

const SOON = { timeout: 120_000, interval: 5 };

const wire = readFileSync(
  new URL('../fixtures/blazar-wire/check-create-physical-host.json', import.meta.url),
  'utf8',
);
const json = JSON.stringify(JSON.parse(wire));

beforeAll(loadLibraries, 60_000);

describe('a call', () => {
  it.each([200, 204, 400, 403, 404, 500, 503])('returns status and body of a %i', async (status) => {
    const body = status === 204 ? '' : '{"message":"You shall not pass!"}';
    const service = await startService((response) => response.writeHead(status).end(body));
    expect(await newClient().postJson(service.url, json)).toEqual({ status, body });
  });

  it('sends the text byte for byte, as JSON, with the headers of the client', async () => {
    const service = await startService((response) => response.writeHead(204).end());
    const text = ' {"name": "Zürich 🎉",\n"n": 1.0} ';
    await newClient({ headers: { 'X-Auth-Token': 'token', 'User-Agent': 'site' } }).postJson(
      `${service.url}/?a=1#b`,
      text,
    );
    const [request] = service.requests;
    expect(request?.body).toBe(text);
    expect(request?.path).toBe('/check-create/?a=1');
    expect(request?.headers).toEqual({
      host: `127.0.0.1:${service.port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      'user-agent': 'site',
      'x-auth-token': 'token',
    });
  });

  it.each(['no url', '/check-create', 'ftp://127.0.0.1/', 'file:///etc/passwd', 'http://'])(
    'refuses the address %j',
    async (address) => {
      const error = await failure(newClient().postJson(address, json));
      expect(error).toMatchObject({ name: 'HttpCallError', code: 'invalid-url' });
    },
  );

  it('refuses an address with credentials, and does not show them', async () => {
    const error = await failure(newClient().postJson('http://user:hunter2@127.0.0.1/', json));
    expect(error).toMatchObject({ code: 'invalid-url' });
    expect(error.message).not.toMatch(/user:|hunter2/);
  });
});

describe('a signal', () => {
  /** The result of a promise that settles before the next turn of the event loop. */
  const atOnce = (promise: Promise<unknown>) =>
    Promise.race([promise, new Promise((resolve) => setImmediate(resolve, 'not at once'))]);

  it('that has fired already prevents the call', async () => {
    const sockets = watchSockets();
    const error = await failure(
      newClient().postJson('http://127.0.0.1:1/', json, { signal: AbortSignal.abort() }),
    );
    expect(error.code).toBe('aborted');
    expect(sockets).toEqual([]);
  });

  it('ends a call at once and closes its connection', async () => {
    const controller = new AbortController();
    const service = await startService(() => controller.abort(new Error('nobody waits')));
    const error = await failure(
      newClient({ timeout: 60 }).postJson(service.url, json, { signal: controller.signal }),
    );
    expect(error).toMatchObject({ code: 'aborted', cause: { message: 'nobody waits' } });
    const [socket] = service.sockets;
    if (socket?.destroyed === false) {
      await once(socket, 'close');
    }
    expect(service.requests).toHaveLength(1);
  });

  it('ends a call in the middle of its answer', async () => {
    const controller = new AbortController();
    const service = await startService((response) => {
      response.writeHead(200).write('a');
      setTimeout(() => controller.abort(), 50);
    });
    const error = await failure(
      newClient({ timeout: 60 }).postJson(service.url, json, { signal: controller.signal }),
    );
    expect(error.code).toBe('aborted');
  });

  it.each([
    ['a client', (client: HttpClient) => client],
    [
      'a client with a token',
      (client: HttpClient) => withKeystoneToken(client, { token: async () => 't', refused: () => {} }),
    ],
  ])('of a deadline, as the options of a call, ends a call of %s', async (_, of) => {
    const service = await startService(() => {});
    const client = of(newClient({ timeout: 60 }));
    const calls = [
      client.postJson(service.url, json, new Deadline(0.2)),
      client.get(service.url, new Deadline(0.2)),
    ];
    const errors = await Promise.all(calls.map(failure));
    expect(errors.map(({ code }) => code)).toEqual(['aborted', 'aborted']);
  });

  it('ends a call that is connecting, which is not sent then', async () => {
    const service = await startService((response) => response.writeHead(204).end());
    const controller = new AbortController();
    watchSockets(() => controller.abort());
    const error = await failure(newClient().postJson(service.url, json, { signal: controller.signal }));
    expect(error.code).toBe('aborted');
    await vi.waitFor(() => expect(service.sockets[0]?.destroyed).toBe(true), SOON);
    expect(service.requests).toEqual([]);
  });

  it('ends a call that never gets a connection', async () => {
    const service = await startUnresponsiveService();
    const controller = new AbortController();
    const call = failure(
      newClient({ timeout: 60 }).postJson(service.url, json, { signal: controller.signal }),
    );
    await pause(50);
    controller.abort();
    expect(await atOnce(call)).toMatchObject({ code: 'aborted' });
  });

  it('ends a call that has not started, which opens no connection then', async () => {
    const sockets = watchSockets();
    const controller = new AbortController();
    const call = failure(newClient().postJson('http://127.0.0.1:1/', json, { signal: controller.signal }));
    controller.abort();
    expect(await atOnce(call)).toMatchObject({ code: 'aborted' });
    await pause(20);
    expect(sockets).toEqual([]);
  });

  it('ends a call that waits for its next try, which is not made then', async () => {
    const controller = new AbortController();
    // Before any timer of the next try can end.
    const sockets = watchSockets((socket) =>
      socket.once('close', () => setImmediate(() => controller.abort())),
    );
    const client = newClient({ timeout: 60, connectRetries: 3 });
    const call = failure(client.postJson('http://127.0.0.1:1/', json, { signal: controller.signal }));
    expect(await call).toMatchObject({ code: 'aborted' });
    await pause(200);
    expect(sockets).toHaveLength(1);
  });

  it('keeps no listener, however often it is passed', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const service = await startService((response, call) =>
      call % 2 === 0 ? response.destroy() : response.writeHead(204).end(),
    );
    const { signal } = new AbortController();
    const client = newClient();
    await Promise.allSettled(
      Array.from({ length: 40 }, () => client.postJson(service.url, json, { signal })),
    );
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await pause(10);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});

describe('close', () => {
  it('fails the calls in progress and all later ones', async () => {
    const service = await startService(() => {});
    const client = newClient({ timeout: 60 });
    const sockets = watchSockets();
    const calls = [1, 2, 3].map(() => failure(client.postJson(service.url, json)));
    await vi.waitFor(() => expect(service.requests).toHaveLength(3), SOON);
    await client.close();
    expect((await Promise.all(calls)).map(({ code }) => code)).toEqual(['closed', 'closed', 'closed']);
    expect((await failure(client.postJson(service.url, json))).code).toBe('closed');
    await client.close();
    await pause(20);
    expect(sockets).toHaveLength(3);
    expect(service.requests).toHaveLength(3);
  });

  it('leaves nothing that keeps the process alive', async () => {
    let tried = () => {};
    const refused = new Promise<void>((resolve) => {
      tried = resolve;
    });
    const sockets = watchSockets((socket) =>
      socket.once('close', () => sockets.indexOf(socket) === 2 && setImmediate(tried)),
    );
    const unresponsive = await startUnresponsiveService();
    const service = await startService((response) => response.writeHead(204).end());
    sockets.length = 0;
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const before = timers();
    const client = newClient({ timeout: 60, connectRetries: 1 });
    await client.postJson(service.url, json);
    const connecting = failure(client.postJson(unresponsive.url, json));
    await vi.waitFor(() => expect(sockets).toHaveLength(2), SOON);
    const waiting = failure(client.postJson('http://127.0.0.1:1/', json));
    // Before any timer of the next try can end.
    await refused;
    await client.close();
    expect(timers()).toBe(before);
    expect([(await connecting).code, (await waiting).code]).toEqual(['closed', 'closed']);
    await vi.waitFor(
      () => expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, true]),
      SOON,
    );
  });
});

describe('createHttpClient', () => {
  it('loads the libraries with the first call', async () => {
    vi.resetModules();
    const loaded: string[] = [];
    for (const name of ['axios', 'undici', 'cockatiel']) {
      vi.doMock(name, (original) => {
        loaded.push(name);
        return original();
      });
    }
    const fresh = await import('../../src/http/client.ts');
    const client = fresh.createHttpClient({
      timeout: 60,
      connectRetries: 0,
      breakerFailures: 5,
      breakerCooldown: 10,
    });
    expect(loaded).toEqual([]);
    await failure(client.postJson('http://127.0.0.1:1/', json));
    expect(loaded.sort()).toEqual(['axios', 'cockatiel', 'undici']);
    for (const name of ['axios', 'undici', 'cockatiel']) {
      vi.doUnmock(name);
    }
    vi.resetModules();
  });

  it.each([
    ['timeout', 0],
    ['timeout', -1],
    ['timeout', Number.NaN],
    ['connectRetries', -1],
    ['connectRetries', 1.5],
    ['breakerFailures', -1],
    ['breakerCooldown', -1],
    ['breakerCooldown', Number.NaN],
    ['maxAnswerBytes', -1],
    ['maxAnswerBytes', Number.POSITIVE_INFINITY],
  ])('refuses %s = %d', (name, value) => {
    expect(() => newClient({ [name]: value })).toThrow(new RegExp(`^${name}: expected .*, got ${value}$`));
  });

  it('accepts a timeout that no timer can hold', async () => {
    const service = await startService((response) => setTimeout(() => response.writeHead(204).end(), 50));
    expect((await newClient({ timeout: 1e9 }).postJson(service.url, json)).status).toBe(204);
  });
});
