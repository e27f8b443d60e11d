/** Calls to services that are slow, silent, huge or gone, over real sockets: each ends in time. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  failure,
  loadLibraries,
  newClient,
  startService,
  startTcpService,
  startUnresponsiveService,
  watchSockets,
} from '../support/services.ts';
import { unusedPort } from '../support/unused-port.ts';

const TOKEN = 'the-very-secret-token';
const json = '{"lease":{"name":"body-of-the-call"}}';
/** Longer than the pause before a call is tried again. */
const RETRY_MS = 150;

beforeAll(loadLibraries, 60_000);

describe('a service that takes too long', () => {
  it.each([1.5, 1])('fails the call after %d seconds when it says nothing', async (timeout) => {
    const service = await startService(() => {});
    const error = await failure(newClient({ timeout }).postJson(service.url, json));
    expect(error).toMatchObject({
      code: 'timeout',
      message: `POST ${service.url}: no whole answer within ${timeout} s`,
    });
    expect(service.requests).toHaveLength(1);
  });

  it('fails the call when its headers or its body come a byte at a time, or it refuses connections', async () => {
    const trickle = async (stream: Socket | ServerResponse) => {
      for (; !stream.destroyed; await pause(50)) {
        stream.write('a');
      }
    };
    const headers = await startTcpService((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx: ');
      void trickle(socket);
    });
    const body = await startService((response) => void trickle(response.writeHead(200)));
    const refusing = `http://127.0.0.1:${await unusedPort()}/`;
    const client = newClient({ timeout: 0.3, connectRetries: 1_000_000 });
    const calls = [headers.url, body.url, refusing].map((url) => failure(client.postJson(url, json)));
    expect((await Promise.all(calls)).map(({ code }) => code)).toEqual(['timeout', 'timeout', 'timeout']);
  });

  it('fails the call when it neither accepts nor refuses a connection, with and without retries', async () => {
    const service = await startUnresponsiveService();
    const sockets = watchSockets();
    const once = failure(newClient({ timeout: 3 }).postJson(service.url, json));
    const patient = newClient({ timeout: 5, connectRetries: 4 }).postJson(service.url, json);
    expect((await failure(patient)).code).toBe('timeout');
    expect(['timeout', 'connect']).toContain((await once).code);
    // One of the call without retries. Each try has its share of the time, which undici measures to a second or so.
    expect(sockets.length).toBeGreaterThan(2);
  });
});

describe('an answer that is too large', () => {
  it.each([
    ['the limit', 1000, { maxAnswerBytes: 1000 }],
    ['64 KiB by default', 65_536, {}],
  ])('is one byte over %s', async (_name, limit, options) => {
    const service = await startService((response, call) => response.end('a'.repeat(limit + call - 1)));
    const client = newClient(options);
    expect((await client.postJson(service.url, json)).body).toHaveLength(limit);
    expect((await failure(client.postJson(service.url, json))).code).toBe('answer-too-large');
  });

  it('is cut off when it has no end', async () => {
    let written = 0;
    const service = await startService((response) => {
      const pour = () => {
        while (!response.destroyed && response.write('a'.repeat(1000))) {
          written += 1000;
        }
      };
      response.on('drain', pour);
      pour();
    });
    const client = newClient({ timeout: 60, maxAnswerBytes: 1000 });
    expect((await failure(client.postJson(service.url, json))).code).toBe('answer-too-large');
    const atTheEnd = written;
    await pause(100);
    expect(written - atTheEnd).toBeLessThan(1_000_000);
    await expect.poll(() => service.sockets[0]?.destroyed).toBe(true);
  });
});

describe('a broken connection', () => {
  const reset = (start: string) => (socket: Socket) => {
    socket.write(start);
    setTimeout(() => socket.resetAndDestroy(), 20);
  };
  const answer = (text: string) => (socket: Socket) => void socket.write(text);
  const BROKEN: Record<string, (socket: Socket) => void> = {
    'reset instead of an answer': reset(''),
    'reset in the headers': reset('HTTP/1.1 200 OK\r\nx'),
    'reset in the body': reset('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'),
    'reset in a chunk': reset('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nabc'),
    'not HTTP': answer('+OK POP3 server ready\r\n\r\n'),
    'not a status': answer('HTTP/1.1 abc OK\r\n\r\n'),
    'two lengths': answer('HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde'),
    'headers without end': answer(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}`),
    'another protocol': answer(
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    ),
    'an unexpected 100': answer('HTTP/1.1 100 Continue\r\n\r\n'),
  };

  it('fails the call, which is not made again', async () => {
    const client = newClient({ timeout: 60, connectRetries: 3 });
    const results = Object.entries(BROKEN).map(async ([name, talk]) => {
      let calls = 0;
      const service = await startTcpService((socket) =>
        socket.once('data', () => {
          calls += 1;
          talk(socket);
        }),
      );
      const { code } = await failure(client.postJson(service.url, json));
      await pause(RETRY_MS);
      return [name, code, calls];
    });
    expect(await Promise.all(results)).toEqual(Object.keys(BROKEN).map((name) => [name, 'transport', 1]));
  });

  it('fails the call also when it was kept from an earlier one', async () => {
    let calls = 0;
    const service = await startTcpService((socket) =>
      socket.on('data', () =>
        ++calls === 1 ? socket.write('HTTP/1.1 204 No Content\r\n\r\n') : socket.resetAndDestroy(),
      ),
    );
    const client = newClient({ timeout: 60, connectRetries: 3 });
    await client.postJson(service.url, json);
    await pause(10);
    expect((await failure(client.postJson(service.url, json))).code).toBe('transport');
    await pause(RETRY_MS);
    expect(calls).toBe(2);
    expect(service.sockets).toHaveLength(1);
  });
});

describe('a failed connection', () => {
  it.each(['127.0.0.1', 'localhost'])('is reported with its cause: %s', async (host) => {
    const port = await unusedPort();
    const error = await failure(newClient().postJson(`http://${host}:${port}/check-create`, json));
    expect(error).toMatchObject({ code: 'connect', cause: { code: 'ECONNREFUSED' } });
    expect(error.message).toMatch(
      new RegExp(`^POST http://${host}:${port}/check-create: nothing was sent: connect ECONNREFUSED`),
    );
  });

  it('is what an invalid header leads to', async () => {
    const client = newClient({ headers: { 'X-Auth-Token': `${TOKEN}\n` } });
    const { message } = await failure(client.postJson('http://127.0.0.1:1/', json));
    expect(message).toBe('POST http://127.0.0.1:1/: nothing was sent: invalid x-auth-token header');
  });
});

it('an error of any kind shows no token, no query, no body and nothing of the request', async () => {
  const headers = { 'X-Auth-Token': TOKEN, Authorization: `Bearer ${TOKEN}` };
  const query = '?key=secret-of-the-query';
  const echo = (start: string) =>
    startTcpService((socket) => socket.once('data', (request) => socket.end(`${start}${request}`)));
  const silent = await startService(() => {});
  const endless = await startService((response) => response.end('a'.repeat(100_000)));
  const client = newClient({ headers });
  const withBreaker = newClient({ headers, breakerFailures: 1 });
  const refusing = `http://127.0.0.1:${await unusedPort()}/check-create`;
  const closed = newClient({ headers });
  await closed.close();
  await failure(withBreaker.postJson(refusing + query, json));
  const errors = await Promise.all(
    [
      client.postJson(silent.url + query, json, { signal: AbortSignal.timeout(200) }),
      client.postJson(endless.url + query, json),
      withBreaker.postJson(refusing + query, json),
      closed.postJson(refusing + query, json),
      client.postJson(refusing + query, json),
      client.postJson(`http://user:${TOKEN}@127.0.0.1/${query}`, json),
      newClient({ headers, timeout: 0.2 }).postJson(silent.url + query, json),
      client.postJson((await echo('')).url + query, json),
      client.postJson((await echo('HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n')).url + query, json),
      client.postJson((await echo('HTTP/1.1 200 OK\r\n')).url + query, json),
    ].map(failure),
  );
  expect(errors.map(({ code }) => code)).toEqual([
    'aborted',
    'answer-too-large',
    'breaker-open',
    'closed',
    'connect',
    'invalid-url',
    'timeout',
    'transport',
    'transport',
    'transport',
  ]);
  for (const error of errors) {
    expect(error.name).toBe('HttpCallError');
    const shown = `${JSON.stringify(error)} ${inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })} ${error.stack}`;
    expect(shown).not.toMatch(/very-secret|secret-of-the-query|body-of-the-call|x-auth-token/i);
  }
});
