import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import {
  failure,
  loadLibraries,
  newClient,
  startService,
  startTcpService,
  unusedPort,
  watchSockets,
} from '../support/services.ts';

const json = '{}';

beforeAll(loadLibraries, 60_000);

describe('a call of which nothing was sent', () => {
  it.each([0, 1, 3])('is tried again %d times', async (connectRetries) => {
    const url = `http://127.0.0.1:${await unusedPort()}/`;
    const sockets = watchSockets();
    const error = await failure(newClient({ connectRetries }).postJson(url, json));
    expect(error.code).toBe('connect');
    expect(sockets).toHaveLength(1 + connectRetries);
  });

  it('succeeds when the service is back for the next try', async () => {
    const port = await unusedPort();
    const sockets = watchSockets();
    const call = newClient({ connectRetries: 20 }).postJson(`http://127.0.0.1:${port}/`, json);
    await vi.waitFor(() => expect(sockets.length).toBeGreaterThan(0), { interval: 1 });
    const service = await startService((response) => response.writeHead(204).end(), port);
    expect(await call).toEqual({ status: 204, body: '' });
    expect(service.requests).toHaveLength(1);
  });
});

describe('the circuit breaker', () => {
  /** Breaks the connection of each call while `broken`, else answers `status`. */
  async function startMoodyService(mood: { broken: boolean; status?: number; delay?: number }) {
    return startService(async (response) => {
      await pause(mood.delay ?? 0);
      if (mood.broken) {
        response.destroy();
      } else {
        response.writeHead(mood.status ?? 204).end();
      }
    });
  }

  const outcome = (call: Promise<{ status: number }>) =>
    call.then(
      ({ status }) => status,
      ({ code }) => code,
    );

  it('fails calls at once after so many failures in a row', async () => {
    const service = await startMoodyService({ broken: true });
    const client = newClient({ breakerFailures: 3 });
    for (const expected of ['transport', 'transport', 'transport', 'breaker-open', 'breaker-open']) {
      expect(await outcome(client.postJson(service.url, json))).toBe(expected);
      await pause(20);
    }
    expect(service.requests).toHaveLength(3);
  });

  it('counts a call with its further tries as one', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}/`;
    const client = newClient({ breakerFailures: 2, connectRetries: 3 });
    for (const expected of ['connect', 'connect', 'breaker-open']) {
      expect(await outcome(client.postJson(url, json))).toBe(expected);
    }
  });

  it('counts answers of 500 and above, and gives them all the same', async () => {
    const service = await startMoodyService({ broken: false, status: 503 });
    const client = newClient({ breakerFailures: 2 });
    for (const expected of [503, 503, 'breaker-open']) {
      expect(await outcome(client.postJson(service.url, json))).toBe(expected);
    }
  });

  it.each([204, 302, 403, 404, 499])('does not count a %i', async (status) => {
    const service = await startMoodyService({ broken: false, status });
    const client = newClient({ breakerFailures: 1 });
    for (const expected of [status, status]) {
      expect(await outcome(client.postJson(service.url, json))).toBe(expected);
    }
  });

  it('counts calls that took too long and answers that were too large', async () => {
    const service = await startService((response, call) =>
      call === 1 ? response.end('too large') : undefined,
    );
    const client = newClient({ breakerFailures: 2, timeout: 0.2, maxAnswerBytes: 1 });
    for (const expected of ['answer-too-large', 'timeout', 'breaker-open']) {
      expect(await outcome(client.postJson(service.url, json))).toBe(expected);
    }
  });

  it('begins to count anew after a success', async () => {
    const mood = { broken: true };
    const service = await startMoodyService(mood);
    const client = newClient({ breakerFailures: 2 });
    for (const broken of [true, false, true, false, true]) {
      mood.broken = broken;
      expect(await outcome(client.postJson(service.url, json))).toBe(broken ? 'transport' : 204);
    }
  });

  it('never opens when it is set to 0', async () => {
    const service = await startMoodyService({ broken: true });
    const client = newClient({ breakerFailures: 0 });
    for (let call = 0; call < 10; call++) {
      expect(await outcome(client.postJson(service.url, json))).toBe('transport');
    }
  });

  it('is another one for each origin, and the same for each path', async () => {
    const broken = await startMoodyService({ broken: true });
    const working = await startMoodyService({ broken: false });
    const client = newClient({ breakerFailures: 1 });
    expect(await outcome(client.postJson(broken.url, json))).toBe('transport');
    expect(await outcome(client.postJson(`${broken.url}/other`, json))).toBe('breaker-open');
    expect(await outcome(client.postJson(working.url, json))).toBe(204);
  });

  it('lets one call through after the cooldown, and no other while that one runs', async () => {
    const mood = { broken: true, delay: 0 };
    const service = await startMoodyService(mood);
    const client = newClient({ breakerFailures: 1, breakerCooldown: 0.2 });
    expect(await outcome(client.postJson(service.url, json))).toBe('transport');
    await pause(250);
    mood.broken = false;
    mood.delay = 300;
    const outcomes = await Promise.all([1, 2, 3].map(() => outcome(client.postJson(service.url, json))));
    expect(outcomes).toEqual([204, 'breaker-open', 'breaker-open']);
    expect(await outcome(client.postJson(service.url, json))).toBe(204);
    expect(service.requests).toHaveLength(3);
  });

  it('stays open for another cooldown when that call fails', async () => {
    const service = await startMoodyService({ broken: true });
    const client = newClient({ breakerFailures: 1, breakerCooldown: 0.2 });
    expect(await outcome(client.postJson(service.url, json))).toBe('transport');
    await pause(250);
    expect(await outcome(client.postJson(service.url, json))).toBe('transport');
    expect(await outcome(client.postJson(service.url, json))).toBe('breaker-open');
    expect(service.requests).toHaveLength(2);
  });

  describe('and a call that its caller gives up', () => {
    /** Answers nothing to `/silent`, breaks everything else. */
    async function startSilentService() {
      const service = await startTcpService((socket) =>
        socket.on('data', (request) => {
          if (!String(request).startsWith('POST /silent ')) {
            socket.resetAndDestroy();
          }
        }),
      );
      const origin = new URL(service.url).origin;
      return { broken: `${origin}/`, silent: `${origin}/silent` };
    }
    const giveUp = (client: ReturnType<typeof newClient>, url: string) =>
      outcome(client.postJson(url, json, { signal: AbortSignal.timeout(50) }));

    it('does not count it as a failure', async () => {
      const service = await startSilentService();
      const client = newClient({ breakerFailures: 2 });
      for (let call = 0; call < 3; call++) {
        expect(await giveUp(client, service.silent)).toBe('aborted');
      }
    });

    it('does not count it as a success', async () => {
      const service = await startSilentService();
      const client = newClient({ breakerFailures: 2 });
      expect(await outcome(client.postJson(service.broken, json))).toBe('transport');
      expect(await giveUp(client, service.silent)).toBe('aborted');
      expect(await outcome(client.postJson(service.broken, json))).toBe('transport');
      expect(await outcome(client.postJson(service.broken, json))).toBe('breaker-open');
    });

    it('lets the next one through instead, and only that, when it was the one after the cooldown', async () => {
      const service = await startSilentService();
      const client = newClient({ breakerFailures: 1, breakerCooldown: 0.2 });
      expect(await outcome(client.postJson(service.broken, json))).toBe('transport');
      await pause(250);
      expect(await giveUp(client, service.silent)).toBe('aborted');
      const outcomes = await Promise.all([1, 2].map(() => outcome(client.postJson(service.broken, json))));
      expect(outcomes).toEqual(['transport', 'breaker-open']);
      expect(await outcome(client.postJson(service.broken, json))).toBe('breaker-open');
    });
  });
});
