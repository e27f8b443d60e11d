import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HttpClient } from '../../src/http/contract.ts';
import {
  failure,
  loadLibraries,
  newClient,
  startService,
  startTcpService,
  watchSockets,
} from '../support/services.ts';
import { unusedPort } from '../support/unused-port.ts';

const SOON = { timeout: 120_000, interval: 5 };

const json = '{}';

beforeAll(loadLibraries, 60_000);

describe('a call that was not sent', () => {
  it.each([0, 1, 2])('is tried again %d times', async (connectRetries) => {
    const url = `http://127.0.0.1:${await unusedPort()}/`;
    const sockets = watchSockets();
    const error = await failure(newClient({ connectRetries }).postJson(url, json));
    expect(error.code).toBe('connect');
    expect(sockets).toHaveLength(1 + connectRetries);
  });

  it('succeeds when the service is back for a retry', async () => {
    const port = await unusedPort();
    const sockets = watchSockets();
    const call = newClient({ connectRetries: 20 }).postJson(`http://127.0.0.1:${port}/`, json);
    await vi.waitFor(() => expect(sockets.length).toBeGreaterThan(0), SOON);
    const service = await startService((response) => response.writeHead(204).end(), port);
    expect(await call).toEqual({ status: 204, body: '' });
    expect(service.requests).toHaveLength(1);
  });
});

describe('the circuit breaker', () => {
  /** Breaks the connection of each call while `status` is `undefined`. */
  interface Mood {
    status: number | undefined;
    answer?: Promise<void>;
  }
  const startMoodyService = (mood: Mood) =>
    startService(async (response) => {
      await mood.answer;
      if (mood.status === undefined) {
        response.destroy();
      } else {
        response.writeHead(mood.status).end();
      }
    });
  const BROKEN = { status: undefined };

  const outcome = (call: Promise<{ status: number }>) =>
    call.then(
      ({ status }) => status,
      ({ code }) => code,
    );

  /** What calls come to, one after the other. */
  async function outcomes(client: HttpClient, url: string, count: number): Promise<(number | string)[]> {
    const found = [];
    for (let call = 0; call < count; call += 1) {
      found.push(await outcome(client.postJson(url, json)));
    }
    return found;
  }

  it('fails calls at once after so many failures in a row', async () => {
    const service = await startMoodyService(BROKEN);
    const broken = 'transport';
    const open = 'breaker-open';
    const found = await outcomes(newClient({ breakerFailures: 3 }), service.url, 5);
    expect(found).toEqual([broken, broken, broken, open, open]);
    expect(service.requests).toHaveLength(3);
  });

  it('counts a call with its retries as one', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}/`;
    const client = newClient({ breakerFailures: 2, connectRetries: 1 });
    expect(await outcomes(client, url, 3)).toEqual(['connect', 'connect', 'breaker-open']);
  });

  it('counts answers of 500 and above, and returns them all the same', async () => {
    const { url } = await startMoodyService({ status: 503 });
    expect(await outcomes(newClient({ breakerFailures: 2 }), url, 3)).toEqual([503, 503, 'breaker-open']);
  });

  it.each([204, 302, 403, 404, 499])('does not count a %i', async (status) => {
    const { url } = await startMoodyService({ status });
    expect(await outcomes(newClient({ breakerFailures: 1 }), url, 2)).toEqual([status, status]);
  });

  it('counts calls that took too long and answers that were too large', async () => {
    const { url } = await startService((response, call) => call === 1 && response.end('too large'));
    const client = newClient({ breakerFailures: 2, timeout: 2, maxAnswerBytes: 1 });
    expect(await outcomes(client, url, 3)).toEqual(['answer-too-large', 'timeout', 'breaker-open']);
  });

  it('starts counting again after a success', async () => {
    const mood: { status: number | undefined } = { status: undefined };
    const service = await startMoodyService(mood);
    const client = newClient({ breakerFailures: 2 });
    for (const status of [undefined, 204, undefined, 204, undefined]) {
      mood.status = status;
      expect(await outcomes(client, service.url, 1)).toEqual([status ?? 'transport']);
    }
  });

  it('never opens with breakerFailures 0', async () => {
    const { url } = await startMoodyService(BROKEN);
    const found = await outcomes(newClient({ breakerFailures: 0 }), url, 10);
    expect(found).toEqual(Array(10).fill('transport'));
  });

  it('is one per origin, whatever the path', async () => {
    const broken = await startMoodyService(BROKEN);
    const working = await startMoodyService({ status: 204 });
    const client = newClient({ breakerFailures: 1 });
    expect(await outcomes(client, broken.url, 1)).toEqual(['transport']);
    expect(await outcomes(client, `${broken.url}/other`, 1)).toEqual(['breaker-open']);
    expect(await outcomes(client, working.url, 1)).toEqual([204]);
  });

  describe('after the cooldown', () => {
    const COOLDOWN = 10;
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['Date', 'performance'] });
    });
    const passCooldown = () => vi.advanceTimersByTime(COOLDOWN * 1000);
    const opened = async (mood: Mood) => {
      const service = await startMoodyService(mood);
      const client = newClient({ breakerFailures: 1, breakerCooldown: COOLDOWN });
      expect(await outcomes(client, service.url, 2)).toEqual(['transport', 'breaker-open']);
      return { service, client };
    };

    it('lets one call through, and no other while that one runs', async () => {
      let answer = () => {};
      const mood: Mood = { status: undefined };
      const { client, service } = await opened(mood);
      passCooldown();
      mood.status = 204;
      mood.answer = new Promise((resolve) => {
        answer = resolve;
      });
      const [trial, ...others] = [1, 2, 3].map(() => outcome(client.postJson(service.url, json)));
      expect(await Promise.all(others)).toEqual(['breaker-open', 'breaker-open']);
      answer();
      expect(await trial).toBe(204);
      expect(await outcomes(client, service.url, 1)).toEqual([204]);
      expect(service.requests).toHaveLength(3);
    });

    it('lets a call through although the time of day was set back', async () => {
      const mood: Mood = { status: undefined };
      const { client, service } = await opened(mood);
      mood.status = 204;
      vi.setSystemTime(Date.now() - 3_600_000);
      passCooldown();
      expect(await outcomes(client, service.url, 1)).toEqual([204]);
    });

    it('stays open for another cooldown when that call fails', async () => {
      const { client, service } = await opened(BROKEN);
      passCooldown();
      expect(await outcomes(client, service.url, 2)).toEqual(['transport', 'breaker-open']);
      expect(service.requests).toHaveLength(2);
    });

    it('lets one other call through when that call is aborted', async () => {
      const { broken, giveUp } = await startSilentService();
      const client = newClient({ breakerFailures: 1, breakerCooldown: COOLDOWN });
      expect(await outcomes(client, broken, 1)).toEqual(['transport']);
      passCooldown();
      expect(await giveUp(client)).toBe('aborted');
      const both = await Promise.all([1, 2].map(() => outcome(client.postJson(broken, json))));
      expect(both).toEqual(['transport', 'breaker-open']);
      expect(await outcomes(client, broken, 1)).toEqual(['breaker-open']);
    });
  });

  /** Breaks the connection of each call except those to `/silent`, which it does not answer. */
  async function startSilentService() {
    const service = await startTcpService((socket) =>
      socket.on('data', (request) => {
        if (!String(request).startsWith('POST /silent ')) {
          socket.resetAndDestroy();
        }
      }),
    );
    const { origin } = new URL(service.url);
    const giveUp = (client: HttpClient) =>
      outcome(client.postJson(`${origin}/silent`, json, { signal: AbortSignal.timeout(50) }));
    return { broken: `${origin}/`, giveUp };
  }

  it('counts an aborted call neither as a failure nor as a success', async () => {
    const { broken, giveUp } = await startSilentService();
    const client = newClient({ breakerFailures: 2 });
    for (let call = 0; call < 3; call++) {
      expect(await giveUp(client)).toBe('aborted');
    }
    expect(await outcomes(client, broken, 1)).toEqual(['transport']);
    expect(await giveUp(client)).toBe('aborted');
    expect(await outcomes(client, broken, 2)).toEqual(['transport', 'breaker-open']);
  });
});
