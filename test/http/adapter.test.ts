import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { loadLibraries, newClient, startService, startTcpService } from '../support/services.ts';

const json = '{}';
/** Far less than an unused connection is kept. */
const SOON = { timeout: 20_000 };

beforeAll(loadLibraries, 60_000);

describe('an answer', () => {
  it('is not decompressed', async () => {
    const packed = gzipSync('{"message":"no"}');
    const service = await startService((response) =>
      response.writeHead(403, { 'content-encoding': 'gzip' }).end(packed),
    );
    expect((await newClient().postJson(service.url, json)).body).toBe(new TextDecoder().decode(packed));
  });

  it('is read also when it comes in pieces that split a character', async () => {
    const body = Buffer.from('{"message":"Zürich"}');
    const service = await startService(async (response) => {
      response.writeHead(403).write(body.subarray(0, 14));
      await pause(20);
      response.end(body.subarray(14));
    });
    expect((await newClient().postJson(service.url, json)).body).toBe('{"message":"Zürich"}');
  });

  it('is not the early hints before it', async () => {
    const service = await startTcpService((socket) =>
      socket.once('data', () =>
        socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n'),
      ),
    );
    expect(await newClient().postJson(service.url, json)).toEqual({ status: 204, body: '' });
  });

  it('that redirects is not followed, so that the token stays with the service', async () => {
    const elsewhere = await startService((response) => response.writeHead(204).end());
    for (const status of [301, 302, 303, 307, 308]) {
      const service = await startService((response) =>
        response.writeHead(status, { location: elsewhere.url }).end(),
      );
      const answer = await newClient({ headers: { 'X-Auth-Token': 'token' } }).postJson(service.url, json);
      expect(answer.status).toBe(status);
    }
    expect(elsewhere.sockets).toEqual([]);
  });

  it('comes from the service itself, whatever proxies the environment names', async () => {
    const proxy = await startService((response) => response.writeHead(502).end());
    const service = await startService((response) => response.writeHead(204).end());
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy', 'HTTPS_PROXY', 'https_proxy']) {
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    }
    vi.stubEnv('NO_PROXY', '');
    vi.stubEnv('no_proxy', '');
    try {
      expect((await newClient().postJson(service.url, json)).status).toBe(204);
    } finally {
      vi.unstubAllEnvs();
    }
    expect(proxy.sockets).toEqual([]);
  });
});

describe('the connections', () => {
  it('are kept alive and reused', async () => {
    const service = await startService((response) => response.writeHead(204).end());
    const client = newClient();
    for (let call = 0; call < 5; call++) {
      await client.postJson(service.url, json);
      await pause(1);
    }
    expect(service.sockets).toHaveLength(1);
    expect(service.requests).toHaveLength(5);
  });

  it('are replaced after a minute also if they are never idle: the service may have moved', async () => {
    const answers: (() => void)[] = [];
    const service = await startService((response) =>
      answers.push(() => response.writeHead(204, { 'keep-alive': 'timeout=600' }).end()),
    );
    const client = newClient();
    vi.useFakeTimers({ toFake: ['performance'] });
    const first = client.postJson(service.url, json);
    await vi.waitFor(() => expect(answers).toHaveLength(1));
    answers[0]?.();
    await first;
    await pause(1);
    const later: Promise<unknown>[] = [];
    for (const milliseconds of [30_000, 31_000]) {
      vi.advanceTimersByTime(milliseconds);
      later.push(client.postJson(service.url, json));
      await vi.waitFor(() => expect(answers).toHaveLength(1 + later.length));
    }
    expect(service.sockets).toHaveLength(2);
    for (const answer of answers.slice(1)) {
      answer();
    }
    expect(await Promise.all(later)).toEqual(Array(2).fill({ status: 204, body: '' }));
    await vi.waitFor(() => expect(service.sockets[0]?.destroyed).toBe(true), SOON);
    expect(service.sockets[1]?.destroyed).toBe(false);
  });

  it('are not reused when the service is about to close them', async () => {
    const service = await startService((response) =>
      response.writeHead(204, { 'keep-alive': 'timeout=1' }).end(),
    );
    const client = newClient();
    await client.postJson(service.url, json);
    await pause(1);
    await client.postJson(service.url, json);
    expect(service.sockets).toHaveLength(2);
  });

  it('are at most 128; further calls wait', async () => {
    const service = await startService((response) => setTimeout(() => response.writeHead(204).end(), 100));
    const client = newClient();
    const answers = await Promise.all(Array.from({ length: 300 }, () => client.postJson(service.url, json)));
    expect(answers.map(({ status }) => status)).toEqual(Array(300).fill(204));
    expect(service.sockets).toHaveLength(128);
  });
});
