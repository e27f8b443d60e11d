/**
 * The same request twice, byte for byte: once as it is, and once to a path with an empty query, which is not the usual form, so that Koa
 * answers it. Whatever is sent, the two must not be told apart.
 */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openRaw, postBytes, postHead } from '../support/raw-http.ts';
import { capturedText } from '../support/requests.ts';
import { type RunningPolicyService, runService, sharedService } from '../support/running-service.ts';

const FITS = JSON.stringify(JSON.parse(capturedText('check-create-physical-host.json')));
const TOO_LONG = JSON.stringify(JSON.parse(capturedText('check-create-gpu-and-floating-ip.json')));
const ID = 'X-Openstack-Request-Id: req-0d5b5d8e-1f4f-4f6e-9a76-00c0ffee0001\r\n';
/** The connection ends with the answer, however the request was framed. */
const LAST = 'Connection: close\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';
const LENGTH = `Content-Length: ${Buffer.byteLength(FITS)}\r\n`;
const CHUNKED = `Transfer-Encoding: chunked\r\n`;
const PACKED = gzipSync(FITS);

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const chunks = (...texts: string[]) => [...texts, ''].map(chunk).join('');

/** A request at a path, without the first line's path: the method, the lines of its head, and its body. */
interface Sent {
  readonly method?: string;
  /** Before and behind the path. */
  readonly target?: (path: string) => string;
  readonly lines: string;
  readonly body: string | Buffer;
}

const bytesOf = ({ method = 'POST', target = (path) => path, lines, body }: Sent, path: string) =>
  Buffer.concat([
    Buffer.from(`${method} ${target(path)} HTTP/1.1\r\nHost: x\r\n${ID}${LAST}${lines}\r\n`),
    Buffer.from(body),
  ]);

/** What came back, without what differs each time. `isCutOff`: the client sends no more, whether or not the request is whole. */
async function answered(
  { port }: RunningPolicyService,
  bytes: Uint8Array,
  isCutOff = false,
): Promise<string> {
  const { socket, end, received } = await openRaw(port);
  socket.write(bytes);
  if (isCutOff) {
    socket.end();
  }
  await end;
  return received().replace(/^Date: .*\r\n/gm, '');
}

const ODD: readonly (readonly [what: string, sent: Sent])[] = [
  ['the usual form', { lines: JSON_TYPE + LENGTH, body: FITS }],
  [
    'a lease that is refused',
    { lines: `${JSON_TYPE}Content-Length: ${TOO_LONG.length}\r\n`, body: TOO_LONG },
  ],
  ['chunks', { lines: JSON_TYPE + CHUNKED, body: chunks(FITS) }],
  ['many chunks', { lines: JSON_TYPE + CHUNKED, body: chunks(...(FITS.match(/.{1,7}/gs) ?? [])) }],
  ['chunks and a trailer', { lines: JSON_TYPE + CHUNKED, body: `${chunk(FITS)}0\r\nX-After: 1\r\n\r\n` }],
  ['chunks and a length', { lines: JSON_TYPE + CHUNKED + LENGTH, body: chunks(FITS) }],
  ['two lengths', { lines: JSON_TYPE + LENGTH + LENGTH, body: FITS }],
  ['a length with a sign', { lines: `${JSON_TYPE}Content-Length: +${FITS.length}\r\n`, body: FITS }],
  ['a length of a base', { lines: `${JSON_TYPE}Content-Length: 0x10\r\n`, body: FITS }],
  ['a length of zero', { lines: `${JSON_TYPE}Content-Length: 0\r\n`, body: '' }],
  ['no length', { lines: JSON_TYPE, body: '' }],
  ['a shorter length', { lines: `${JSON_TYPE}Content-Length: 10\r\n`, body: FITS.slice(0, 10) }],
  ['Expect: 100-continue', { lines: `${JSON_TYPE + LENGTH}Expect: 100-continue\r\n`, body: FITS }],
  ['another expectation', { lines: `${JSON_TYPE + LENGTH}Expect: 200-ok\r\n`, body: FITS }],
  ['two content types', { lines: JSON_TYPE + JSON_TYPE + LENGTH, body: FITS }],
  ['another second content type', { lines: `${JSON_TYPE}Content-Type: text/plain\r\n${LENGTH}`, body: FITS }],
  ['another content type', { lines: `Content-Type: text/plain\r\n${LENGTH}`, body: FITS }],
  ['no content type', { lines: LENGTH, body: FITS }],
  ['a charset', { lines: `Content-Type: application/json; charset=utf-8\r\n${LENGTH}`, body: FITS }],
  [
    'a charset that is not UTF-8',
    { lines: `Content-Type: application/json; charset=utf-16\r\n${LENGTH}`, body: FITS },
  ],
  ['a type in capitals', { lines: `Content-Type: Application/JSON\r\n${LENGTH}`, body: FITS }],
  [
    'a packed body',
    {
      lines: `${JSON_TYPE}Content-Encoding: gzip\r\nContent-Length: ${PACKED.length}\r\n`,
      body: PACKED,
    },
  ],
  ['a packed body that is not', { lines: `${JSON_TYPE + LENGTH}Content-Encoding: gzip\r\n`, body: FITS }],
  ['an unknown packing', { lines: `${JSON_TYPE + LENGTH}Content-Encoding: zip\r\n`, body: FITS }],
  ['no packing by name', { lines: `${JSON_TYPE + LENGTH}Content-Encoding: identity\r\n`, body: FITS }],
  [
    'a byte order mark',
    {
      lines: `${JSON_TYPE}Content-Length: ${FITS.length + 3}\r\n`,
      body: Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), Buffer.from(FITS)]),
    },
  ],
  [
    'bytes that are not UTF-8',
    {
      lines: JSON_TYPE + LENGTH,
      body: Buffer.from(FITS.replace(/"name":"./, '"name":"\xff'), 'latin1'),
    },
  ],
  [
    'a name that is not ASCII',
    {
      lines: `${JSON_TYPE}Content-Length: ${Buffer.byteLength(FITS.replace(/"name":"/, '"name":"žluťoučký '))}\r\n`,
      body: FITS.replace(/"name":"/, '"name":"žluťoučký '),
    },
  ],
  ['a body of spaces', { lines: `${JSON_TYPE}Content-Length: 9\r\n`, body: ' '.repeat(9) }],
  ['HEAD', { method: 'HEAD', lines: '', body: '' }],
  ['OPTIONS', { method: 'OPTIONS', lines: '', body: '' }],
  ['GET', { method: 'GET', lines: '', body: '' }],
  ['PUT', { method: 'PUT', lines: JSON_TYPE + LENGTH, body: FITS }],
  ['an upgrade', { lines: `${JSON_TYPE + LENGTH}Upgrade: websocket\r\n`, body: FITS }],
  ['two Host headers', { lines: `Host: y\r\n${JSON_TYPE}${LENGTH}`, body: FITS }],
  ['a key', { lines: `${JSON_TYPE + LENGTH}Idempotency-Key: "a-key"\r\n`, body: FITS }],
  ['two keys', { lines: `${JSON_TYPE + LENGTH}Idempotency-Key: a\r\nIdempotency-Key: b\r\n`, body: FITS }],
  ['a key that is none', { lines: `${JSON_TYPE + LENGTH}Idempotency-Key: a b\r\n`, body: FITS }],
  ['tokens that nobody asks for', { lines: `${JSON_TYPE + LENGTH}X-Auth-Token: any\r\n`, body: FITS }],
  [
    'a slash at the end',
    { target: (path) => path.replace(/(\w)(\?|$)/, '$1/$2'), lines: JSON_TYPE + LENGTH, body: FITS },
  ],
  [
    'a path in another spelling',
    { target: (path) => path.replace('check', '%63heck'), lines: JSON_TYPE + LENGTH, body: FITS },
  ],
  [
    'a path in capitals',
    { target: (path) => path.replace('check', 'CHECK'), lines: JSON_TYPE + LENGTH, body: FITS },
  ],
  ['two slashes', { target: (path) => `/${path}`, lines: JSON_TYPE + LENGTH, body: FITS }],
  ['a fragment', { target: (path) => `${path}#x`, lines: JSON_TYPE + LENGTH, body: FITS }],
];

describe('a request is answered the same with and without Koa', () => {
  const service = sharedService();

  it.each(ODD)('%s', async (_, sent) => {
    const straight = await answered(service(), bytesOf(sent, '/check-create'));
    expect(straight).toMatch(/^HTTP\/1\.1 \d{3} /);
    expect(await answered(service(), bytesOf(sent, '/check-create?'))).toBe(straight);
  });

  it('when headers and body come together at random', async () => {
    const line = fc.constantFrom(
      ...[JSON_TYPE, 'Content-Type: application/json;charset=UTF-8\r\n', 'content-type: text/json\r\n'],
      ...[LENGTH, CHUNKED, 'Content-Length: 3\r\n', 'Content-Length: 070\r\n'],
      'Expect: 100-continue\r\n',
      ...['Idempotency-Key: k\r\n', 'X-Auth-Token: t\r\n', 'Upgrade: h2c\r\n', 'TE: trailers\r\n'],
    );
    const body = fc.constantFrom<string | Buffer>(
      ...[FITS, TOO_LONG, chunks(FITS), chunks(FITS.slice(0, 99), FITS.slice(99)), PACKED],
      ...['', '{}', '[1]', 'nul', '{"context":{},"lease":{}}', FITS.slice(0, -1), `${FITS}x`],
    );
    const method = fc.constantFrom('POST', 'POST', 'POST', 'PUT', 'HEAD');
    const sents = fc.record({
      method,
      lines: fc.array(line, { maxLength: 4 }).map((all) => all.join('')),
      body,
    });
    await fc.assert(
      fc.asyncProperty(sents, async (sent) => {
        const straight = await answered(service(), bytesOf(sent, '/v1/check-create'), true);
        expect(await answered(service(), bytesOf(sent, '/v1/check-create?'), true)).toBe(straight);
      }),
      { numRuns: 60 },
    );
  });

  it('when requests come in one piece: in their order, and each is decided', async () => {
    const { port } = service();
    const inOnePiece = async (path: string) => {
      const { socket, end, received, statuses } = await openRaw(port);
      socket.end(
        [FITS, TOO_LONG, 'null', FITS].map((body) => postBytes(path, body, ID)).join('') +
          postBytes(path, FITS, ID + LAST),
      );
      await end;
      expect(statuses()).toEqual([204, 403, 400, 204, 204]);
      return received().replace(/^Date: .*\r\n/gm, '');
    };
    expect(await inOnePiece('/check-create?')).toBe(await inOnePiece('/check-create'));
  });
});

describe('a request that is under way', () => {
  it('is answered by the configuration that it came under, when another one takes over', async () => {
    const service = await runService();
    const { socket, received, answers } = await openRaw(service.port);
    socket.write(postHead('/check-create', FITS.length) + FITS.slice(0, 50));
    // Asked later, answered later: the first part has been read.
    await service.request('/healthz');
    expect(await service.service.reload()).toBe(true);
    socket.write(FITS.slice(50));
    await answers(1);
    expect(received()).toContain('X-Enforcement-Generation: 1');
    expect((await service.post('/check-create', FITS)).headers.get('X-Enforcement-Generation')).toBe('2');
  });

  it('is answered while the service stops, and told that the connection ends', async () => {
    const service = await runService();
    const { socket, received, end, statuses } = await openRaw(service.port);
    socket.write(postHead('/check-create', FITS.length) + FITS.slice(0, 50));
    await service.request('/healthz');
    const closed = service.service.close();
    socket.write(FITS.slice(50));
    await end;
    await closed;
    expect(statuses()).toEqual([204]);
    expect(received()).toContain('Connection: close');
  });
});
