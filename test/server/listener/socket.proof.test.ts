/** Requests on raw sockets: pipelines, ambiguous framing, half of a request. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { filterSource } from '../../support/filter-folder.ts';
import { metric } from '../../support/metric.ts';
import { openRaw, postBytes, postHead } from '../../support/raw-http.ts';
import { capturedText, createLasting } from '../../support/requests.ts';
import { type RunningPolicyService, runService, sharedService } from '../../support/running-service.ts';
import { ASK, stalledClient } from '../../support/stalled-client.ts';

const SECRET = 's3cret-0123456789abcdef';
const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
/** What would be read as a request if a body were not. */
const HIDDEN = postBytes('/check-create', FITS, 'X-Auth-Token: s3cret-0123456789abcdef\r\n');

/** That the service is there for others, and has nothing to complain of itself. */
async function expectWell(
  running: RunningPolicyService,
  headers: Record<string, string> = {},
): Promise<void> {
  expect(await running.post('/check-create', FITS, headers)).toMatchObject({ status: 204 });
  expect(running.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
}

async function decisionsOf({ request }: RunningPolicyService): Promise<number> {
  return metric((await request('/metrics')).text, 'blazar_enforcement_decisions_total');
}

/** Writes bytes, and reads until the service closes the connection. */
async function exchange({ port }: RunningPolicyService, ...parts: string[]): Promise<string> {
  const connection = await openRaw(port);
  for (const part of parts) {
    connection.socket.write(part);
    await sleep(parts.length > 1 ? 100 : 0);
  }
  await connection.end;
  return connection.received();
}

/** The service of tests that set nothing; its decisions go on from test to test. */
const plain = sharedService();

const statusesIn = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));

describe('requests on one connection that do not wait for answers', () => {
  it('are cut off when there are too many, before all are begun', async () => {
    const { running, stalled, ofService } = await stalledClient();
    stalled.socket.write(ASK.repeat(1000));
    await expect.poll(() => ofService()?.destroyed).toBe(true);
    const { text } = await running.request('/metrics');
    expect(metric(text, 'blazar_enforcement_http_requests_total', { path: '/openapi.json' })).toBeLessThan(
      20,
    );
    await expectWell(running);
  });
});

/** A lease, in one piece of a body that is framed in this way. */
function framed(encoding: string): string {
  const size = Buffer.byteLength(FITS).toString(16);
  return `POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: ${encoding}\r\n\r\n${size}\r\n${FITS}\r\n0\r\n\r\n`;
}

describe('headers', () => {
  it.for([
    ['by the hundred thousand', `GET /healthz HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(100_000)}\r\n`],
    ['one byte too long', `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(16_384)}\r\n\r\n`],
  ] as const)('%s get 431, or the connection is closed', async ([, bytes]) => {
    const running = plain();
    const answer = await exchange(running, bytes);
    // Where more is on its way than was read, the system may throw the answer away.
    expect(answer).toMatch(/^(HTTP\/1\.1 431 [\s\S]*)?$/);
    await expectWell(running);
  });

  it('of 15 KiB are read', async () => {
    const running = plain();
    const answer = await running.request('/healthz', { headers: { 'X-Long': 'a'.repeat(15 * 1024) } });
    expect(answer).toMatchObject({ status: 200 });
  });
});

describe('requests on one connection', () => {
  it('end with the garbage behind them, which is no request', async () => {
    const running = plain();
    for (const garbage of ['\u0000\u0001\u0002\r\n\r\n', 'x'.repeat(100_000)]) {
      const answer = await exchange(running, postBytes('/check-create', FITS).repeat(5) + garbage);
      // What was still being decided when the garbage came is cut off with it.
      const statuses = statusesIn(answer);
      expect(statuses.pop()).toBe(400);
      expect(statuses).toEqual(Array(statuses.length).fill(204));
      expect(statuses.length).toBeLessThanOrEqual(5);
    }
    await expectWell(running);
  });

  it('keep it open, and the last one closes it when it says so', async () => {
    const running = plain();
    const kept = await openRaw(running.port);
    for (const [count, bytes] of [
      [1, postBytes('/check-create', FITS)],
      [2, postBytes('/check-create', NINE_DAYS)],
      [3, postBytes('/check-create', '{')],
      [4, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'],
      [5, 'HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n'],
      [6, 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'],
      [7, 'HEAD /check-create HTTP/1.1\r\nHost: x\r\n\r\n'],
      [8, postBytes('/on-end', FITS)],
    ] as const) {
      kept.socket.write(bytes);
      await kept.answers(count);
    }
    expect(kept.statuses()).toEqual([204, 403, 400, 200, 200, 404, 405, 204]);
    expect(kept.received()).not.toMatch(/^Connection: close/im);
    kept.socket.write(postBytes('/check-create', FITS, 'Connection: close\r\n'));
    await kept.end;
    expect(kept.statuses().at(-1)).toBe(204);
    expect(kept.received()).toMatch(/\r\nConnection: close\r\n/);
  });

  it('no yes has a body, or says how long it is', async () => {
    const running = plain();
    const answer = await exchange(running, postBytes('/check-create', FITS, 'Connection: close\r\n'));
    expect(answer).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
    expect(answer).not.toMatch(/^(Content-Length|Transfer-Encoding|Content-Type):/im);
    expect(answer.split('\r\n\r\n')).toEqual([expect.any(String), '']);
  });
});

describe('what could be read as one request or as two', () => {
  const head = 'POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  const chunked = `${head}Transfer-Encoding: chunked\r\n`;

  it.for([
    ['two hosts', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n'],
    ['an encoding before chunked', framed('identity, chunked')],
    ['chunked twice', framed('chunked, chunked')],
    ['identity', framed('identity')],
    ['chunked of HTTP 1.0', framed('chunked').replace('HTTP/1.1', 'HTTP/1.0')],
    ['a length and chunks', `${head}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['two lengths', `${head}Content-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n`],
    ['twice the same length', `${head}Content-Length: 0\r\nContent-Length: 0\r\n\r\n`],
    ['a list of lengths', `${head}Content-Length: 0, 0\r\n\r\n`],
    ['a space before the colon', `${head}Content-Length : ${HIDDEN.length}\r\n\r\n`],
    ['a folded header', `${head}X-A: b\r\n Content-Length: ${HIDDEN.length}\r\n\r\n`],
    ['another encoding behind chunks', `${head}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
    ['a chunk size that is none', `${chunked}\r\nz\r\n`],
    ['a chunk size that overflows', `${chunked}\r\nffffffffffffffffff\r\n`],
    ['a chunk whose line ends with one half', `${chunked}\r\n2\n{}\n0\n\n`],
    ['a head whose lines end with one half', `${head.replaceAll('\r\n', '\n')}Content-Length: 0\n\n`],
  ] as const)('is refused, and nothing behind it is read: %s', async ([, bytes]) => {
    const running = plain();
    const before = await decisionsOf(running);
    const answer = await exchange(running, bytes + HIDDEN);
    expect(statusesIn(answer)).toEqual([400]);
    expect(answer).toMatch(/^Connection: close\r$/m);
    expect(await decisionsOf(running)).toBe(before);
    await expectWell(running);
  });

  it('chunks are not, however they are written', async () => {
    const answer = await exchange(plain(), framed('Chunked\r\nConnection: close'));
    expect(statusesIn(answer)).toEqual([204]);
  });

  it.for([
    ['401', 'X-Auth-Token: wrong\r\n', 'application/json', 401],
    ['415', 'X-Auth-Token: s3cret-0123456789abcdef\r\n', 'text/plain', 415],
    ['413', 'X-Auth-Token: s3cret-0123456789abcdef\r\nX-Pad: 1\r\n', 'application/json', 413],
  ] as const)(
    'a body behind a %s never becomes a request, whenever it comes',
    async ([, headers, type, status]) => {
      const running = await runService({
        service: { tokens: [SECRET], body_limit: 4096 },
      });
      const body = status === 413 ? HIDDEN.repeat(5) : HIDDEN;
      const refused = postHead('/check-create', body.length, headers).replace('application/json', type);
      // All at once, with the head alone first, and cut in the middle.
      for (const parts of [
        [refused + body],
        [refused, body],
        [refused + body.slice(0, 50), body.slice(50)],
      ]) {
        const connection = await openRaw(running.port);
        for (const part of parts) {
          connection.socket.write(part);
          await sleep(50);
        }
        await connection.answers(1);
        await sleep(100);
        expect(connection.statuses()).toEqual([status]);
      }
      expect(await decisionsOf(running)).toBe(0);
      await expectWell(running, { 'X-Auth-Token': SECRET });
    },
  );

  it('an upgrade that nobody offered is a request like any other', async () => {
    const running = await runService({ service: { tokens: [SECRET] } });
    const upgrade = 'Connection: Upgrade, close\r\nUpgrade: websocket\r\n';
    expect(statusesIn(await exchange(running, postBytes('/check-create', FITS, upgrade)))).toEqual([401]);
    const connect = await exchange(running, `CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n${HIDDEN}`);
    expect(statusesIn(connect)).toEqual([]);
    expect(await decisionsOf(running)).toBe(0);
  });
});

describe('a path', () => {
  const SAME = ['/check-create?', '/check-create#x', 'http://elsewhere.example/v1/check-create?x=1'];
  const NOWHERE = [
    '//check-create',
    '/check-create/',
    '/V1/Check-Create',
    '/./check-create',
    '/x/../check-create',
    '/check%2Dcreate',
    '/check-create;x=1',
    '\\check-create',
    'http://x//check-create',
    '*',
  ];

  it('written in another way leads to the same decision, behind the same token', async () => {
    const running = await runService({ service: { tokens: [SECRET] } });
    const ask = async (path: string, body: string, headers: string) =>
      statusesIn(await exchange(running, postBytes(path, body, `${headers}Connection: close\r\n`)));
    for (const path of SAME) {
      const answers = [
        await ask(path, FITS, ''),
        await ask(path, FITS, 'X-Auth-Token: wrong\r\n'),
        await ask(path, FITS, 'X-Auth-Token: s3cret-0123456789abcdef\r\n'),
        await ask(path, NINE_DAYS, 'X-Auth-Token: s3cret-0123456789abcdef\r\n'),
        await ask(path, '{}', 'X-Auth-Token: s3cret-0123456789abcdef\r\n'),
      ];
      expect({ path, answers }).toEqual({ path, answers: [[401], [401], [204], [403], [400]] });
    }
    expect(await decisionsOf(running)).toBe(2 * SAME.length);
  });

  it('that only looks like one leads nowhere', async () => {
    const running = await runService({ service: { tokens: [SECRET] } });
    for (const path of NOWHERE) {
      const bytes = postBytes(path, FITS, 'X-Auth-Token: s3cret-0123456789abcdef\r\nConnection: close\r\n');
      const [status] = statusesIn(await exchange(running, bytes));
      expect([400, 404], path).toContain(status);
    }
    expect(await decisionsOf(running)).toBe(0);
  });
});

describe('a client that goes away', () => {
  it.for(['identity', 'gzip', 'deflate', 'br'])(
    'in the middle of its body leaves nothing behind: %s',
    async (encoding) => {
      const closed = vi.fn();
      vi.stubGlobal('closed', closed);
      const running = await runService({
        filters: { 'some-filter.js': filterSource('SomeFilter', { extra: 'close() { closed(); }' }) },
        enforcement: { enabled_filters: ['SomeFilter'], max_lease_duration: undefined },
      });
      const packed = encoding === 'identity' ? '' : `Content-Encoding: ${encoding}\r\n`;
      const form = postHead('/login', 1000, packed).replace(
        'application/json',
        'application/x-www-form-urlencoded',
      );
      for (const head of [postHead('/check-create', 1000, packed), form]) {
        const { socket } = await openRaw(running.port);
        socket.write(head);
        await sleep(50);
        socket.resetAndDestroy();
      }
      await expectWell(running);
      // The filters are let go when the last request has ended.
      await expect(running.service.reload()).resolves.toBe(true);
      await expect.poll(() => closed).toHaveBeenCalledTimes(1);
    },
  );

  it.for([
    ['its answer, a yes', 'return sleep().then(() => allow());'],
    ['its answer, a no', "return sleep().then(() => reject('no'));"],
  ] as const)('before %s leaves nothing behind', async ([, create]) => {
    const asked = vi.fn(() => sleep(100));
    vi.stubGlobal('sleep', asked);
    const running = await runService({
      filters: { 'slow-filter.js': filterSource('SlowFilter', { create }) },
      enforcement: { enabled_filters: ['SlowFilter'], max_lease_duration: undefined },
    });
    const ends = ['destroy', 'resetAndDestroy', 'end'] as const;
    for (let count = 0; count < 15; count += 1) {
      const { socket } = await openRaw(running.port);
      socket.write(postBytes('/check-create', JSON.stringify(createLasting(60))));
      // What is not read yet is lost at a reset.
      await expect.poll(() => asked).toHaveBeenCalledTimes(count + 1);
      socket[ends[count % 3] ?? 'end']();
    }
    await expect.poll(() => decisionsOf(running)).toBe(15);
    const { text } = await running.request('/metrics');
    expect(metric(text, 'blazar_enforcement_decisions_under_way')).toBe(0);
    const errors = running.logger.lines.filter(({ level }) => level === 'error');
    expect(errors.every(({ message }) => message === 'filter failed')).toBe(true);
    await running.service.close();
  });
});
