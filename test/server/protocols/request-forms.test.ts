/** Requests to Blazar's endpoints in every form that HTTP allows, and in forms that it does not, byte for byte. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openRaw, postBytes, postHead } from '../../support/raw-http.ts';
import { capturedText } from '../../support/requests.ts';
import { type RunningPolicyService, runService, sharedService } from '../../support/running-service.ts';

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

/** The status and, unless a decision made it, the message. */
const ANSWERS: Readonly<Record<string, readonly [status: number, message?: string]>> = {
  'the usual form': [204],
  'a lease that is refused': [403],
  chunks: [204],
  'many chunks': [204],
  'chunks and a trailer': [204],
  'chunks and a length': [400],
  'two lengths': [400],
  'a length with a sign': [400],
  'a length of a base': [400],
  'a length of zero': [400, 'expected a body in JSON'],
  'no length': [400, 'expected a body in JSON'],
  'a shorter length': [400, 'expected a body in JSON'],
  'Expect: 100-continue': [204],
  'another expectation': [417],
  'two content types': [204],
  'another second content type': [204],
  'another content type': [415, 'expected a body of type application/json'],
  'no content type': [415, 'expected a body of type application/json'],
  'a charset': [204],
  'a charset that is not UTF-8': [415, 'expected a body in UTF-8'],
  'a type in capitals': [204],
  'a packed body': [204],
  'a packed body that is not': [400, 'expected a body in JSON'],
  'an unknown packing': [415, 'expected a body in UTF-8, as it is or compressed by gzip, deflate or br'],
  'no packing by name': [204],
  'a byte order mark': [204],
  'bytes that are not UTF-8': [400, 'expected a body in JSON'],
  'a name that is not ASCII': [204],
  'a body of spaces': [400, 'expected a body in JSON'],
  HEAD: [405],
  OPTIONS: [200],
  GET: [405, 'GET is not possible here'],
  PUT: [405, 'PUT is not possible here'],
  'an upgrade': [204],
  'two Host headers': [400],
  'a key': [204],
  'two keys': [400, 'Idempotency-Key: expected 1 to 255 visible characters of ASCII'],
  'a key that is none': [400, 'Idempotency-Key: expected 1 to 255 visible characters of ASCII'],
  'tokens that nobody asks for': [204],
  'a slash at the end': [
    404,
    'there is nothing at this path; leases are judged at /check-create, /check-update and /on-end',
  ],
  'a path in another spelling': [
    404,
    'there is nothing at this path; leases are judged at /check-create, /check-update and /on-end',
  ],
  'a path in capitals': [
    404,
    'there is nothing at this path; leases are judged at /check-create, /check-update and /on-end',
  ],
  'two slashes': [
    404,
    'there is nothing at this path; leases are judged at /check-create, /check-update and /on-end',
  ],
  'a fragment': [204],
};

describe('a request in an odd form', () => {
  const service = sharedService();

  it.each(ODD)('is answered as HTTP wants it, at every spelling of the path: %s', async (what, sent) => {
    const [status, message] = ANSWERS[what] ?? [];
    const answer = await answered(service(), bytesOf(sent, '/check-create'));
    const [head = '', body = ''] = answer.replace(/^HTTP\/1\.1 100 .*\r\n\r\n/, '').split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    if (message !== undefined) {
      expect(JSON.parse(body)).toMatchObject({ message });
    }
    expect(await answered(service(), bytesOf(sent, '/check-create?'))).toBe(answer);
    expect(await answered(service(), bytesOf(sent, '/v1/check-create?x=1'))).toBe(answer);
  });

  it('gets one answer with a known status, whatever headers and body come together', async () => {
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
        const answer = await answered(service(), bytesOf(sent, '/v1/check-create'), true);
        // A body that is longer than its header says begins another request, which is refused.
        expect(answer).toMatch(
          /^(HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 (204|400|403|405|408|413|415|417) /,
        );
      }),
      { numRuns: 60 },
    );
  });

  it('that comes in one piece with others is answered in its turn', async () => {
    const { port } = service();
    const { socket, end, statuses } = await openRaw(port);
    socket.end(
      [FITS, TOO_LONG, 'null', FITS].map((body) => postBytes('/check-create', body, ID)).join('') +
        postBytes('/check-create?', FITS, ID + LAST),
    );
    await end;
    expect(statuses()).toEqual([204, 403, 400, 204, 204]);
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
