import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { capturedText } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';

const LIMIT = 8 * 1024 * 1024;
const FITS = capturedText('check-create-physical-host.json');
const PROTOCOL_PATHS = [
  '/check-create',
  '/check-update',
  '/commit-create',
  '/commit-update',
  '/on-end',
].flatMap((path) => [path, `/v1${path}`]);
/** As fast as it packs: the best of it takes seconds for what becomes large. */
const FAST = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const TOO_LARGE = { status: 413, json: { message: `expected a body of at most ${LIMIT} bytes` } };

describe('a path', () => {
  it('that leads nowhere gets 404', async () => {
    const { request, post } = await runService();
    for (const path of [
      '/check',
      '/v1',
      '/v1/',
      '/v2/check-create',
      '/check-create/x',
      '/v1/healthz',
      '//check-create',
      '/check-create%2f',
      '/%zz',
      '/%00',
      '/..%2fcheck-create',
      '/__proto__',
      '/constructor',
    ]) {
      for (const answer of [await request(path), await post(path, FITS)]) {
        expect(answer, path).toMatchObject({
          status: 404,
          json: { message: expect.stringMatching(/^there is nothing at this path/) },
        });
      }
    }
  });

  it('answers nothing that a browser may run as a script because of what it looks like', async () => {
    const { url } = await runService({ service: { tokens: ['s3cret-0123456789abcdef'] } });
    const paths = [
      '/',
      '/v1/projects',
      '/v1/budgets/export',
      '/nothing',
      '/healthz',
      '/metrics',
      '/openapi.json',
    ];
    for (const path of [...paths, '/events', '/check-create', '/assets/x/main.js', '/login']) {
      for (const token of ['s3cret-0123456789abcdef', 'wrong']) {
        const leave = new AbortController();
        const answer = await fetch(url + path, { headers: { 'X-Auth-Token': token }, signal: leave.signal });
        expect([path, answer.headers.get('X-Content-Type-Options')]).toEqual([path, 'nosniff']);
        leave.abort();
      }
    }
  });
});

describe('a method', () => {
  it('other than POST gets 405 and is told so', async () => {
    const { request } = await runService();
    for (const path of PROTOCOL_PATHS) {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
        const { status, headers, json } = await request(path, { method });
        expect({ path, method, status, allow: headers.get('Allow'), json }).toEqual({
          path,
          method,
          status: 405,
          allow: 'POST',
          json: { message: `${method} is not allowed here` },
        });
      }
      expect(await request(path, { method: 'HEAD' })).toMatchObject({ status: 405, text: '' });
    }
  });

  it('other than GET and HEAD gets 405 at /healthz', async () => {
    const { request } = await runService();
    const { status, headers } = await request('/healthz', { method: 'POST' });
    expect({ status, allow: headers.get('Allow') }).toEqual({ status: 405, allow: 'HEAD, GET' });
  });

  it('OPTIONS is answered with the methods that are possible, and judges nothing', async () => {
    const { request } = await runService();
    for (const [path, allow] of [
      ['/check-create', 'POST'],
      ['/healthz', 'HEAD, GET'],
    ] as const) {
      const { status, headers, text } = await request(path, { method: 'OPTIONS' });
      expect({ path, status, allow: headers.get('Allow'), text }).toEqual({
        path,
        status: 200,
        allow,
        text: '',
      });
    }
  });

  it('that is rare gets 405 too', async () => {
    const { raw, port } = await runService();
    for (const method of ['TRACE', 'PROPFIND', 'M-SEARCH']) {
      const answer = await raw(
        `${method} /check-create HTTP/1.1\r\nHost: x:${port}\r\nConnection: close\r\n\r\n`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    }
  });
});

describe('GET /healthz', () => {
  it('answers 200, and HEAD the same without the body', async () => {
    const { request } = await runService();
    expect(await request('/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } });
    const { status, text, headers } = await request('/healthz', { method: 'HEAD' });
    expect({ status, text, length: headers.get('Content-Length') }).toEqual({
      status: 200,
      text: '',
      length: '15',
    });
  });
});

describe('a body', () => {
  it('of another type than JSON gets 415', async () => {
    const { post } = await runService();
    for (const type of ['text/json', 'application/json-patch+json', 'json', '*/*', 'application/*']) {
      expect(await post('/check-create', FITS, { 'Content-Type': type }), type).toMatchObject({
        status: 415,
        json: { message: 'expected a body of type application/json' },
      });
    }
  });

  it('without a type gets 415', async () => {
    const { request } = await runService();
    const body = new TextEncoder().encode(FITS);
    expect(await request('/check-create', { method: 'POST', body })).toMatchObject({ status: 415 });
    expect(await request('/check-create', { method: 'POST' })).toMatchObject({ status: 415 });
  });

  it('is read as JSON in whatever way its type is written', async () => {
    const { post } = await runService();
    for (const type of ['Application/JSON', 'application/json; charset=utf-8', 'application/json;']) {
      expect(await post('/check-create', FITS, { 'Content-Type': type }), type).toMatchObject({
        status: 204,
      });
    }
  });

  it('that is announced too large gets 413 before it is sent', async () => {
    const { raw } = await runService();
    const answer = await raw(
      `POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${LIMIT + 1}\r\n\r\n{`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/^Connection: close\r$/m);
  });

  it('that is not announced gets 413 as soon as it is too large', async () => {
    const { raw } = await runService();
    const chunk = ' '.repeat(65_536);
    const chunks = Array.from({ length: 129 }, () => `10000\r\n${chunk}\r\n`).join('');
    const answer = await raw(
      `POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  it.for([
    ['gzip', (content: string | Buffer) => gzipSync(content, { level: 1 })],
    ['deflate', (content: string | Buffer) => deflateSync(content, { level: 1 })],
    ['br', (content: string | Buffer) => brotliCompressSync(content, FAST)],
  ] as const)('is unpacked: %s', async ([encoding, pack]) => {
    const { post } = await runService();
    const headers = { 'Content-Encoding': encoding };
    expect(await post('/check-create', pack(FITS), headers)).toMatchObject({ status: 204 });
    const nineDays = pack(capturedText('check-create-gpu-and-floating-ip.json'));
    expect(await post('/check-create', nineDays, headers)).toMatchObject({ status: 403 });

    // A few kilobytes that would become 64 MiB.
    const bomb = pack(Buffer.alloc(8 * LIMIT, ' '));
    expect(bomb.length).toBeLessThan(LIMIT / 8);
    expect(await post('/check-create', bomb, headers)).toMatchObject(TOO_LARGE);

    expect(await post('/check-create', 'not packed', headers)).toMatchObject({ status: 400 });
    expect(await post('/check-create', pack(FITS).subarray(0, 100), headers)).toMatchObject({ status: 400 });
    expect(await post('/check-create', FITS)).toMatchObject({ status: 204 });
  });

  it('in an encoding that nobody here knows gets 415', async () => {
    const { post } = await runService();
    for (const encoding of ['zstd', 'compress', 'gzip, gzip', 'x-unknown']) {
      expect(await post('/check-create', FITS, { 'Content-Encoding': encoding }), encoding).toMatchObject({
        status: 415,
        json: { message: expect.stringContaining('expected a body in UTF-8') },
      });
    }
  });
});

describe('the target of a request', () => {
  it.each(['http://[::1/', 'http://user@x/check-create', 'ftp://x/', '%zz'])(
    'that is neither a path nor a whole URL gets 400, and is logged as refused: %s',
    async (target) => {
      const { raw, logger } = await runService();
      expect(await raw(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
      expect(logger.lines.map(({ message }) => message)).not.toContain('answer could not be sent');
    },
  );

  it('is not mistaken behind thousands of headers: a second Host at their end is found', async () => {
    const { raw } = await runService();
    const many = 'a:\r\n'.repeat(2100);
    expect(await raw(`GET /healthz HTTP/1.1\r\nHost: x\r\n${many}Host: y\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
  });
});
