/** Clients that send or read slowly, or never, over real sockets: nobody else waits for them. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { confFile } from '../../support/files.ts';
import { filterFolder, filterSource } from '../../support/filter-folder.ts';
import { metric } from '../../support/metric.ts';
import { openRaw, postBytes, postHead } from '../../support/raw-http.ts';
import { capturedText } from '../../support/requests.ts';
import { COMMAND, watched } from '../../support/run-command.ts';
import {
  errorsOf,
  figures,
  type RunningPolicyService,
  runService,
  runServiceOnFile,
} from '../../support/running-service.ts';
import { ASK, stalledClient } from '../../support/stalled-client.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
const SOON = { timeout: 120_000, interval: 10 };
const REFUSED = 'The lease could not be checked. Please try again later, or ask the operator.';

/** Other clients are served, and the service logs no error. */
async function expectWell(running: RunningPolicyService): Promise<void> {
  expect(await running.post('/check-create', FITS)).toMatchObject({ status: 204 });
  expect(errorsOf(running)).toEqual([]);
}

describe('a request that takes too long to arrive', () => {
  it('gets 408 after the deadline, whichever part of it is missing, and no filter is asked', async () => {
    const running = await runService({ service: { deadline: 3 } });
    const halves = [
      `${postHead('/check-create', 1000)}{"context":`,
      postHead('/check-create', 1000, 'Content-Encoding: gzip\r\n'),
      'POST /check-create HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n5\r\n{"con',
      'POST /check-create HTTP/1.1\r\nHos',
      'P',
      '',
    ];
    // Nor does it help when something comes all the time.
    const drip = await openRaw(running.port);
    drip.socket.write(postHead('/check-create', 1000));
    const dripping = setInterval(() => drip.socket.write(' '), 50);
    const [dripped, ...answers] = await Promise.all([
      drip.end.then(drip.received),
      ...halves.map(async (half) => {
        const connection = await openRaw(running.port);
        connection.socket.write(half);
        await connection.end;
        return connection.received();
      }),
    ]);
    clearInterval(dripping);
    const refusal = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n';
    for (const answer of answers) {
      expect(answer).toBe(refusal);
    }
    // Who writes to a connection that is closed may lose what came before.
    expect([refusal, '']).toContain(dripped);
    expect(await figures(running)).toMatchObject({ decisions: 0 });
    await expectWell(running);
  });

  it('has as much time as the last reload says', async () => {
    const conf = (deadline: number) => `[service]\nport = 0\ndeadline = ${deadline}\n`;
    const running = await runServiceOnFile(conf(3600));
    const slow = await openRaw(running.port);
    slow.socket.write(postHead('/check-create', 1000));
    await running.change(conf(1));
    await slow.end;
    expect(slow.statuses()).toEqual([408]);
  });
});

describe('a client that reads no answer', () => {
  it('is cut off when nothing has moved for two deadlines', async () => {
    const { running, stalled, ofService } = await stalledClient({ service: { deadline: 3 } });
    // More than the buffers of the system hold between the two.
    stalled.socket.write(ASK.repeat(1000));
    await expect.poll(() => ofService()?.destroyed).toBe(true);
    stalled.socket.resume();
    await stalled.end;
    expect(stalled.statuses().length).toBeLessThan(1000);
    await expectWell(running);
  });
});

describe('a deadline that a reload makes longer', () => {
  it('counts for connections that are open', async () => {
    const folder = filterFolder({
      'slow-filter.js': filterSource('SlowFilter', {
        create: 'return new Promise((go) => setTimeout(() => go(allow()), 9000));',
      }),
    });
    const conf = (deadline: number) =>
      `[enforcement]\nenabled_filters = SlowFilter\nfilters_path = ${folder}\n[service]\nport = 0\ndeadline = ${deadline}\n`;
    const running = await runServiceOnFile(conf(8));
    const connection = await openRaw(running.port);
    await expect(running.change(conf(600))).resolves.toBe(true);
    connection.socket.write(postBytes('/check-create', FITS));
    await connection.answers(1);
    expect(connection.statuses()).toEqual([204]);
  });
});

describe('requests on one connection that do not wait for answers', () => {
  it('are owed one answer at a time', async () => {
    const { running, size, stalled, ofService } = await stalledClient();
    const owed: number[] = [];
    let asked = 0;
    // The buffers of the system take some of it; then everything that is asked for stays here.
    await vi.waitFor(() => {
      const { writableLength: now = 0, bytesWritten = 0 } = ofService() ?? {};
      owed.push(...(now > 0 ? [now] : []));
      if (asked - bytesWritten / size < 8) {
        stalled.socket.write(ASK.repeat(4));
        asked += 4;
      }
      expect(owed.length).toBeGreaterThan(30);
    }, SOON);
    expect(Math.max(...owed)).toBeLessThan(size + 2000);
    stalled.socket.destroy();
    await expectWell(running);
  });
});

describe('requests on one connection', () => {
  it('a thousand in one write are all answered, in order', async () => {
    const running = await runService();
    const connection = await openRaw(running.port);
    const ids = Array.from({ length: 1000 }, () => `req-${randomUUID()}`);
    const bodies = [FITS, NINE_DAYS, '{', '{}'];
    const statuses = [204, 403, 400, 400];
    connection.socket.write(
      ids
        .map((id, index) =>
          postBytes('/check-create', bodies[index % 4] ?? '', `X-Openstack-Request-Id: ${id}\r\n`),
        )
        .join(''),
    );
    await connection.answers(1000);
    expect(connection.statuses()).toEqual(ids.map((_, index) => statuses[index % 4]));
    const answered = [...connection.received().matchAll(/^X-Openstack-Request-Id: (\S+)/gim)].map(
      ([, id]) => id,
    );
    expect(answered).toEqual(ids);
    expect(connection.closed()).toBe(false);
    await expectWell(running);
  });
});

describe('max_concurrent and max_queued', () => {
  it('hold in a storm: everyone gets an answer, and nothing is left of it', async () => {
    const running = await runService({
      filters: {
        'slow-filter.js': filterSource('SlowFilter', {
          create: 'return new Promise((go) => setTimeout(() => go(allow()), 20));',
        }),
      },
      enforcement: { enabled_filters: ['SlowFilter'], max_lease_duration: undefined },
      service: { max_concurrent: 4, max_queued: 20 },
    });
    const answers = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const connection = await openRaw(running.port);
        connection.socket.write(postBytes('/check-create', FITS, 'Connection: close\r\n'));
        await connection.end;
        return connection.received();
      }),
    );
    const allowed = answers.filter((answer) => answer.startsWith('HTTP/1.1 204 ')).length;
    const refused = answers.filter((answer) =>
      /^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: 1\r\n/.test(answer),
    ).length;
    expect({ allowed: allowed >= 24, all: allowed + refused }).toEqual({ allowed: true, all: 300 });
    expect(await figures(running)).toEqual({ underWay: 0, queued: 0, decisions: allowed, refusals: refused });
    expect(errorsOf(running)).toEqual([]);
  });
});

describe('deadline', () => {
  it('counts from the beginning: who has waited has less time left', async () => {
    const running = await runService({
      filters: {
        'slow-filter.js': filterSource('SlowFilter', {
          create: 'return new Promise((go) => setTimeout(() => go(allow()), 7000));',
        }),
      },
      enforcement: { enabled_filters: ['SlowFilter'], max_lease_duration: undefined },
      service: { deadline: 10, max_concurrent: 1 },
    });
    const first = running.post('/check-create', FITS);
    await expect.poll(async () => (await figures(running)).underWay).toBe(1);
    const second = running.post('/check-create', FITS);
    expect(await first).toMatchObject({ status: 204 });
    expect(await second).toMatchObject({ status: 403, json: { message: REFUSED } });
  });

  it('empties the line: of those who wait for a filter that never answers all are refused in time', async () => {
    const running = await runService({
      filters: {
        'never-filter.js': filterSource('NeverFilter', { create: 'return new Promise(() => {});' }),
      },
      enforcement: { enabled_filters: ['NeverFilter'], max_lease_duration: undefined },
      service: { deadline: 1, max_concurrent: 2, max_queued: 30 },
    });
    const answers = await Promise.all(Array.from({ length: 30 }, () => running.post('/check-create', FITS)));
    for (const { status } of answers) {
      expect([403, 503]).toContain(status);
    }
    expect(await figures(running)).toMatchObject({ underWay: 0, queued: 0 });
    expect(await running.post('/on-end', capturedText('on-end-active.json'))).toMatchObject({ status: 204 });
  });
});

describe('clients that hold on to the service keep nobody else from it', () => {
  it('hundreds that have sent half a body, and hundreds that have sent half a head', async () => {
    const running = await runService();
    const connections = await Promise.all(Array.from({ length: 400 }, () => openRaw(running.port)));
    for (const [index, { socket }] of connections.entries()) {
      socket.write(
        index % 2 === 0 ? `${postHead('/check-create', 5000)}{"context":` : 'POST /check-create HT',
      );
    }
    await sleep(100);
    expect(await running.post('/check-create', FITS)).toMatchObject({ status: 204 });
    for (const { socket } of connections) {
      socket.resetAndDestroy();
    }
    await expect.poll(() => running.post('/check-create', FITS)).toMatchObject({ status: 204 });
    expect(await figures(running)).toMatchObject({ underWay: 0, queued: 0, decisions: 2 });
    expect(errorsOf(running)).toEqual([]);
  });

  const CONNECTIONS = 10_000;
  const descriptors = openFilesLimit();
  const tooFew = descriptors < 2 * CONNECTIONS;
  if (tooFew) {
    console.warn(
      `not tested: ${CONNECTIONS} idle connections, since only ${descriptors} files may be open (ulimit -n)`,
    );
  }

  it.runIf(process.platform === 'linux')('as many as files may be open, at two ports', async () => {
    const limited = 'ulimit -n 150; exec "$0" "$@"';
    const conf = confFile('[service]\nport = 0\nadmin_port = 0\nlog_level = info\n');
    const serve = [COMMAND, 'serve', '--config-file', conf];
    const service = watched(spawn('sh', ['-c', limited, process.execPath, ...serve], { stdio: 'pipe' }));
    onTestFinished(() => void service.process.kill('SIGKILL'));
    const portAfter = async (line: RegExp) => Number((await service.printed(line))[1]);
    const port = await portAfter(/^Listening on http:\/\/127\.0\.0\.1:(\d+)$/m);
    const adminPort = await portAfter(/^Health and metrics on http:\/\/127\.0\.0\.1:(\d+)$/m);
    const early = await openRaw(port);
    early.socket.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
    await early.answers(1);
    for (const flooded of [port, adminPort]) {
      const late = await Promise.all(Array.from({ length: 300 }, () => openRaw(flooded)));
      await expect.poll(() => late.filter(({ closed }) => closed()).length).toBeGreaterThan(100);
    }
    // The modules of the console are loaded now, and a reload opens files.
    early.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await early.answers(2);
    service.process.kill('SIGHUP');
    await expect.poll(() => service.output().stderr).toContain('configuration reloaded');
    expect(early.statuses()).toEqual([200, 200]);
  });

  it.skipIf(tooFew)('ten thousand who say nothing', async () => {
    // Longer than it takes to open them all: whoever says nothing until then is cut off.
    const running = await runService({ service: { deadline: 3600 } });
    // In a process of their own: each end needs a descriptor.
    const crowd = `let open = 0;
      const more = () => require('node:net').connect(${running.port}, '127.0.0.1', () => {
        open += 1;
        if (open === ${CONNECTIONS}) process.stdout.write('all');
        else if (open <= ${CONNECTIONS - 200}) more();
      }).on('error', (thrown) => { process.stderr.write(thrown.code + '\\n'); setTimeout(more, 100); });
      for (let count = 0; count < 200; count += 1) more();`;
    const clients = spawn(process.execPath, ['-e', crowd], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void clients.kill('SIGKILL'));
    await once(clients.stdout, 'data');
    expect(await running.post('/check-create', FITS)).toMatchObject({ status: 204 });
    const openFiles = async () => metric((await running.request('/metrics')).text, 'process_open_fds');
    // A connection that the system has is not yet one that the service has accepted.
    await expect.poll(openFiles).toBeGreaterThan(CONNECTIONS / 2);
    clients.kill('SIGKILL');
    await once(clients, 'close');
    await expect.poll(openFiles).toBeLessThan(1000);
    expect(errorsOf(running)).toEqual([]);
  });
});

function openFilesLimit(): number {
  const report = process.report?.getReport() as { userLimits?: { open_files?: { soft: number | string } } };
  const soft = report.userLimits?.open_files?.soft;
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? 0);
}
