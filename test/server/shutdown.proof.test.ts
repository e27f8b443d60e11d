/** A service that is closed answers what is under way, over real connections. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryFile } from '../support/files.ts';
import { filterSource } from '../support/filter-folder.ts';
import { openRaw, postBytes, postHead } from '../support/raw-http.ts';
import { capturedText } from '../support/requests.ts';
import {
  figures,
  type RunningPolicyService,
  runService,
  type ServiceOptions,
} from '../support/running-service.ts';
import { withResolvers } from '../support/with-resolvers.ts';

const FITS = capturedText('check-create-physical-host.json');
const GET = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
/** Far from every grace in these tests, and far more than anything takes. */
const NEVER_SO_LONG = 120_000;

/** A filter whose requests wait until `open` is called, and that notes what happens. */
async function runWaiting(options: ServiceOptions = {}, close = '') {
  const heard: string[] = [];
  const { promise: opened, resolve: open } = withResolvers();
  vi.stubGlobal('heard', heard);
  vi.stubGlobal('opened', opened);
  onTestFinished(open);
  const running = await runService({
    ...options,
    filters: {
      'waiting-filter.js': filterSource('WaitingFilter', {
        create: "heard.push('asked'); return opened.then(() => { heard.push('answered'); return allow(); });",
        extra: `close() { heard.push('closed'); ${close} }`,
      }),
    },
    enforcement: { enabled_filters: ['WaitingFilter'], max_lease_duration: undefined },
  });
  const asked = (count = 1) =>
    expect.poll(() => heard.filter((what) => what === 'asked')).toHaveLength(count);
  /** A connection on which a request waits. */
  const busy = async () => {
    const connection = await openRaw(running.port);
    connection.socket.write(postBytes('/check-create', FITS));
    await asked();
    return connection;
  };
  return { ...running, heard, open, asked, busy };
}

/** How long closing takes, in milliseconds. */
async function closing({ service }: RunningPolicyService): Promise<number> {
  const started = performance.now();
  await service.close();
  return performance.now() - started;
}

describe('a service that is closed', () => {
  it('accepts no new connection, and ends soon if no request is in progress', async () => {
    const running = await runService({ service: { shutdown_grace: 600 } });
    const idle = await openRaw(running.port);
    idle.socket.write(GET);
    await idle.answers(1);
    const closed = closing(running);
    await expect(running.request('/healthz')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    expect(await closed).toBeLessThan(NEVER_SO_LONG);
    await idle.end;
  });

  it('answers running and queued requests, each with Connection: close', async () => {
    const running = await runWaiting({ service: { max_concurrent: 1, max_queued: 5 } });
    const { port, service, heard, open, asked } = running;
    const connections = await Promise.all([openRaw(port), openRaw(port), openRaw(port)]);
    for (const { socket } of connections) {
      socket.write(postBytes('/check-create', FITS));
    }
    await asked();
    await expect.poll(async () => (await figures(running)).queued).toBe(2);
    const closed = service.close();
    open();
    await closed;
    for (const { end, received } of connections) {
      await end;
      expect(received()).toMatch(/^HTTP\/1\.1 204 [\s\S]*\r\nConnection: close\r\n/);
    }
    // The filters go last, once.
    expect(heard).toEqual([...Array(3).fill(['asked', 'answered']).flat(), 'closed']);
  });

  it('closes idle connections while others are still in use', async () => {
    const running = await runWaiting();
    const { port, service, open } = running;
    const idle = await openRaw(port);
    idle.socket.write(GET);
    await idle.answers(1);
    const busy = await running.busy();
    const closed = service.close();
    await idle.end;
    expect(busy.closed()).toBe(false);
    open();
    await Promise.all([closed, busy.end]);
    expect(busy.statuses()).toEqual([204]);
  });

  it('reports on open connections that it is not ready', async () => {
    const { port, service, open, busy } = await runWaiting();
    const fresh = await openRaw(port);
    await busy();
    const closed = service.close();
    fresh.socket.write(GET.replace('healthz', 'readyz'));
    await fresh.end;
    expect(fresh.received()).toMatch(/^HTTP\/1\.1 503 [\s\S]*\r\nConnection: close\r\n/);
    expect(fresh.received()).toContain('{"status":"draining","generation":1,"problems":[]}');
    open();
    await closed;
  });

  it('answers a partial request when the rest arrives', async () => {
    const { port, service } = await runService();
    const body = await openRaw(port);
    const head = await openRaw(port);
    body.socket.write(postHead('/check-create', Buffer.byteLength(FITS)) + FITS.slice(0, 100));
    head.socket.write('GET /healthz HTTP/1.1\r\n');
    await sleep(100);
    const closed = service.close();
    await sleep(200);
    body.socket.write(FITS.slice(100));
    head.socket.write('Host: x\r\n\r\n');
    await Promise.all([body.end, head.end, closed]);
    expect(body.received()).toMatch(/^HTTP\/1\.1 204 [\s\S]*\r\nConnection: close\r\n/);
    expect(head.received()).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\nConnection: close\r\n/);
  });

  it('can be closed again without effect', async () => {
    const { service, heard } = await runWaiting();
    await Promise.all([service.close(), service.close()]);
    await service.close();
    expect(heard).toEqual(['closed']);
  });
});

describe('shutdown_grace', () => {
  it('cuts off a filter that never answers, and still writes the log', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const running = await runWaiting({ service: { shutdown_grace: 1, decision_log: log } });
    await running.post('/on-end', capturedText('on-end-active.json'));
    const busy = await running.busy();
    expect(await closing(running)).toBeLessThan(NEVER_SO_LONG);
    await busy.end;
    expect(busy.received()).toBe('');
    expect(readFileSync(log, 'utf8').match(/"operation":"end"/g)).toHaveLength(1);
  });

  it('does not wait for a filter that never finishes closing', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const running = await runWaiting(
      { service: { shutdown_grace: 1, decision_log: log } },
      'return new Promise(() => {});',
    );
    await running.post('/on-end', capturedText('on-end-active.json'));
    expect(await closing(running)).toBeLessThan(NEVER_SO_LONG);
    expect(running.heard).toEqual(['closed']);
    expect(readFileSync(log, 'utf8').match(/"operation":"end"/g)).toHaveLength(1);
  });

  it('limits clients that send half a request, and the filters are closed', async () => {
    const running = await runWaiting({ service: { shutdown_grace: 1 } });
    for (const half of ['POST /check-create HTTP/1.1\r\nHos', postHead('/check-create', 1000), '']) {
      const { socket } = await openRaw(running.port);
      socket.write(half);
    }
    await sleep(100);
    expect(await closing(running)).toBeLessThan(NEVER_SO_LONG);
    await expect.poll(() => running.heard).toEqual(['closed']);
  });

  it('of 0 ends everything at once', async () => {
    const running = await runWaiting({ service: { shutdown_grace: 0 } });
    const busy = await running.busy();
    expect(await closing(running)).toBeLessThan(NEVER_SO_LONG);
    await busy.end;
  });
});
