import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  failure,
  loadLibraries,
  newClient,
  startDeafService,
  startService,
  startTcpService,
  unusedPort,
  watchSockets,
} from '../support/services.ts';

const TOKEN = 'the-very-secret-token';
const json = '{"lease":{"name":"body-of-the-call"}}';

beforeAll(loadLibraries, 60_000);

/** Runs a call that has to end soon, and says how it failed. */
async function soon(call: Promise<unknown>) {
  const start = Date.now();
  const error = await failure(call);
  expect(Date.now() - start).toBeLessThan(5_000);
  return error;
}

describe('a service that takes too long', () => {
  it.each([0.3, 0.05])('is given up after %d seconds when it says nothing', async (timeout) => {
    const service = await startService(() => {});
    const error = await soon(newClient({ timeout }).postJson(service.url, json));
    expect(error).toMatchObject({
      code: 'timeout',
      message: `POST ${service.url}: no whole answer within ${timeout} s`,
    });
    expect(service.requests).toHaveLength(1);
  });

  it('is given up when its answer comes a byte at a time', async () => {
    const service = await startService(async (response) => {
      response.writeHead(200);
      for (; !response.destroyed; await pause(50)) {
        response.write('a');
      }
    });
    expect((await soon(newClient({ timeout: 0.5 }).postJson(service.url, json))).code).toBe('timeout');
  });

  it('is given up when its headers come a byte at a time', async () => {
    const service = await startTcpService(async (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx: ');
      for (; !socket.destroyed; await pause(50)) {
        socket.write('a');
      }
    });
    expect((await soon(newClient({ timeout: 0.5 }).postJson(service.url, json))).code).toBe('timeout');
  });

  it('is given up when it neither takes nor refuses a connection', async () => {
    const service = await startDeafService();
    const sockets = watchSockets();
    const error = await soon(newClient({ timeout: 3, connectRetries: 9 }).postJson(service.url, json));
    expect(error.code).toBe('timeout');
    // Each try has its share of the time, which undici measures to a second or so.
    expect(sockets.length).toBeGreaterThan(1);
  });

  it('is given up when it does so and nobody is to try again', async () => {
    const service = await startDeafService();
    const error = await soon(newClient({ timeout: 0.8 }).postJson(service.url, json));
    expect(['timeout', 'connect']).toContain(error.code);
  });

  it('is given up when it refuses for longer than the call may take', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}/`;
    expect(
      (await soon(newClient({ timeout: 0.5, connectRetries: 1_000_000 }).postJson(url, json))).code,
    ).toBe('timeout');
  });

  it('keeps no connection of a call that was given up', async () => {
    const service = await startService((response, call) =>
      call === 1 ? undefined : response.writeHead(204).end(),
    );
    const client = newClient({ timeout: 0.3 });
    await failure(client.postJson(service.url, json));
    expect(await client.postJson(service.url, json)).toEqual({ status: 204, body: '' });
    expect(service.requests).toHaveLength(2);
    expect(service.sockets[0]?.destroyed).toBe(true);
  });
});

describe('an answer that is too large', () => {
  const limit = 1000;

  it('is one byte over the limit, and not the limit itself', async () => {
    const service = await startService((response, call) => response.end('a'.repeat(limit + call - 1)));
    const client = newClient({ maxAnswerBytes: limit });
    expect((await client.postJson(service.url, json)).body).toHaveLength(limit);
    const error = await soon(client.postJson(service.url, json));
    expect(error.code).toBe('answer-too-large');
  });

  it('is 64 KiB when nothing is said', async () => {
    const service = await startService((response, call) => response.end('a'.repeat(65_536 + call - 1)));
    const client = newClient();
    expect((await client.postJson(service.url, json)).body).toHaveLength(65_536);
    expect((await soon(client.postJson(service.url, json))).code).toBe('answer-too-large');
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
    const error = await soon(newClient({ timeout: 60, maxAnswerBytes: limit }).postJson(service.url, json));
    expect(error.code).toBe('answer-too-large');
    const atTheEnd = written;
    await pause(100);
    expect(written - atTheEnd).toBeLessThan(1_000_000);
    expect(service.sockets[0]?.destroyed).toBe(true);
  });
});

describe('a broken connection', () => {
  it.each([
    ['is reset instead of an answer', ''],
    ['ends in the middle of the headers', 'HTTP/1.1 200 OK\r\nx'],
    ['ends in the middle of the body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'],
    ['ends in the middle of a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nabc'],
  ])('that %s is a failure, and the call is not made again', async (_how, start) => {
    await expectOneBrokenCall((socket) => {
      socket.write(start);
      setTimeout(() => socket.resetAndDestroy(), 20);
    });
  });

  it.each([
    ['no HTTP', '+OK POP3 server ready\r\n\r\n'],
    ['a status that is none', 'HTTP/1.1 abc OK\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde'],
    ['headers without end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}`],
    ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['a question for what was sent already', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ])('that carries %s is a failure, and the call is not made again', async (_what, answer) => {
    await expectOneBrokenCall((socket) => socket.write(answer));
  });

  async function expectOneBrokenCall(talk: (socket: Socket) => void) {
    let calls = 0;
    const service = await startTcpService((socket) =>
      socket.once('data', () => {
        calls++;
        talk(socket);
      }),
    );
    const error = await soon(newClient({ timeout: 60, connectRetries: 3 }).postJson(service.url, json));
    expect(error.code).toBe('transport');
    await pause(150);
    expect(calls).toBe(1);
  }

  it('that was kept from an earlier call is a failure too, and the call is not made again', async () => {
    let calls = 0;
    const service = await startTcpService((socket) =>
      socket.on('data', () =>
        ++calls === 1 ? socket.write('HTTP/1.1 204 No Content\r\n\r\n') : socket.resetAndDestroy(),
      ),
    );
    const client = newClient({ timeout: 60, connectRetries: 3 });
    await client.postJson(service.url, json);
    await pause(10);
    expect((await soon(client.postJson(service.url, json))).code).toBe('transport');
    await pause(150);
    expect(calls).toBe(2);
    expect(service.sockets).toHaveLength(1);
  });

  it('that the service has closed meanwhile is not used', async () => {
    const service = await startTcpService((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\n\r\n')),
    );
    const client = newClient();
    for (let call = 0; call < 3; call++) {
      expect((await client.postJson(service.url, json)).status).toBe(204);
      await pause(20);
    }
  });
});

describe('no connection', () => {
  it('says what was refused', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}/check-create`;
    const error = await soon(newClient().postJson(url, json));
    expect(error).toMatchObject({ code: 'connect', cause: { code: 'ECONNREFUSED' } });
    expect(error.message).toMatch(
      /^POST http:\/\/127\.0\.0\.1:\d+\/check-create: nothing was sent: connect ECONNREFUSED/,
    );
  });

  it('says so for each address of a name', async () => {
    const error = await soon(newClient().postJson(`http://localhost:${await unusedPort()}/`, json));
    expect(error.code).toBe('connect');
    expect(error.message).toMatch(/ECONNREFUSED/);
  });

  it('is what a name without an address leads to', async () => {
    const error = await soon(newClient({ timeout: 4 }).postJson('http://does-not-exist.invalid/', json));
    expect(['connect', 'timeout']).toContain(error.code);
  });

  it('is what a header leads to that can not be sent', async () => {
    const error = await soon(
      newClient({ headers: { 'X-Auth-Token': `${TOKEN}\n` } }).postJson('http://127.0.0.1:1/', json),
    );
    expect(error.message).toBe('POST http://127.0.0.1:1/: nothing was sent: invalid x-auth-token header');
  });
});

describe('an error', () => {
  const headers = { 'X-Auth-Token': TOKEN, Authorization: `Bearer ${TOKEN}` };
  const query = '?key=secret-of-the-query';

  async function everyFailure() {
    const echo = (start: string) =>
      startTcpService((socket) => socket.once('data', (request) => socket.end(`${start}${request}`)));
    const silent = await startService(() => {});
    const endless = await startService((response) => response.end('a'.repeat(100_000)));
    const client = newClient({ headers });
    const impatient = newClient({ headers, timeout: 0.2 });
    const withBreaker = newClient({ headers, breakerFailures: 1 });
    const refusing = `http://127.0.0.1:${await unusedPort()}/check-create`;
    const closed = newClient({ headers });
    await closed.close();
    await failure(withBreaker.postJson(refusing + query, json));
    return Promise.all(
      [
        client.postJson((await echo('')).url + query, json),
        client.postJson((await echo('HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n')).url + query, json),
        client.postJson((await echo('HTTP/1.1 200 OK\r\n')).url + query, json),
        client.postJson(endless.url + query, json),
        client.postJson(refusing + query, json),
        client.postJson(`http://user:${TOKEN}@127.0.0.1/${query}`, json),
        client.postJson(silent.url + query, json, { signal: AbortSignal.timeout(200) }),
        impatient.postJson(silent.url + query, json),
        withBreaker.postJson(refusing + query, json),
        closed.postJson(refusing + query, json),
      ].map(failure),
    );
  }

  it('of any kind holds no token, no query, no body and nothing of the request', async () => {
    const errors = await everyFailure();
    const codes = [
      'aborted',
      'answer-too-large',
      'breaker-open',
      'closed',
      'connect',
      'invalid-url',
      'timeout',
      'transport',
    ];
    expect([...new Set(errors.map(({ code }) => code))].sort()).toEqual(codes);
    for (const error of errors) {
      expect(error.name).toBe('HttpCallError');
      const shown = `${JSON.stringify(error)} ${inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })} ${error.stack}`;
      expect(shown).not.toMatch(/very-secret|secret-of-the-query|body-of-the-call|x-auth-token/i);
    }
  });
});
