/** Requests to Blazar's endpoints in every form that HTTP allows, and in forms that it does not, byte for byte. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openRaw, postHead } from '../../support/raw-http.ts';
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
const CZECH = FITS.replace(/"name":"/, '"name":"žluťoučký ');
const NO_JSON = 'expected a body in JSON';
const NO_KEY = 'Idempotency-Key: expected 1 to 255 visible characters of ASCII';

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const chunks = (...texts: string[]) => [...texts, ''].map(chunk).join('');

/** A request at a path, without the first line's path: the method, the lines of its head, and its body. */
interface Sent {
  readonly method?: string;
  readonly lines: string;
  readonly body: string | Buffer;
}

const bytesOf = ({ method = 'POST', lines, body }: Sent, path: string) =>
  Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: x\r\n${ID}${LAST}${lines}\r\n`),
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

/** What `http.test.ts` and `listener/socket.proof.test.ts` do not send. The message is that of no decision. */
const ODD: readonly (readonly [what: string, sent: Sent, status: number, message?: string])[] = [
  ['the usual form', { lines: JSON_TYPE + LENGTH, body: FITS }, 204],
  [
    'a lease that is refused',
    { lines: `${JSON_TYPE}Content-Length: ${TOO_LONG.length}\r\n`, body: TOO_LONG },
    403,
  ],
  ['many chunks', { lines: JSON_TYPE + CHUNKED, body: chunks(...(FITS.match(/.{1,7}/gs) ?? [])) }, 204],
  [
    'chunks and a trailer',
    { lines: JSON_TYPE + CHUNKED, body: `${chunk(FITS)}0\r\nX-After: 1\r\n\r\n` },
    204,
  ],
  ['no length', { lines: JSON_TYPE, body: '' }, 400, NO_JSON],
  [
    'a shorter length',
    { lines: `${JSON_TYPE}Content-Length: 10\r\n`, body: FITS.slice(0, 10) },
    400,
    NO_JSON,
  ],
  ['Expect: 100-continue', { lines: `${JSON_TYPE + LENGTH}Expect: 100-continue\r\n`, body: FITS }, 204],
  ['another expectation', { lines: `${JSON_TYPE + LENGTH}Expect: 200-ok\r\n`, body: FITS }, 417],
  ['two content types', { lines: JSON_TYPE + JSON_TYPE + LENGTH, body: FITS }, 204],
  [
    'another second content type',
    { lines: `${JSON_TYPE}Content-Type: text/plain\r\n${LENGTH}`, body: FITS },
    204,
  ],
  [
    'a charset that is not UTF-8',
    { lines: `Content-Type: application/json; charset=utf-16\r\n${LENGTH}`, body: FITS },
    415,
    'expected a body in UTF-8',
  ],
  ['no packing by name', { lines: `${JSON_TYPE + LENGTH}Content-Encoding: identity\r\n`, body: FITS }, 204],
  [
    'a byte order mark',
    {
      lines: `${JSON_TYPE}Content-Length: ${FITS.length + 3}\r\n`,
      body: Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), Buffer.from(FITS)]),
    },
    204,
  ],
  [
    'bytes that are not UTF-8',
    { lines: JSON_TYPE + LENGTH, body: Buffer.from(FITS.replace(/"name":"./, '"name":"\xff'), 'latin1') },
    400,
    NO_JSON,
  ],
  [
    'a name that is not ASCII',
    { lines: `${JSON_TYPE}Content-Length: ${Buffer.byteLength(CZECH)}\r\n`, body: CZECH },
    204,
  ],
  ['an upgrade', { lines: `${JSON_TYPE + LENGTH}Upgrade: websocket\r\n`, body: FITS }, 204],
  ['a key', { lines: `${JSON_TYPE + LENGTH}Idempotency-Key: "a-key"\r\n`, body: FITS }, 204],
  [
    'two keys',
    { lines: `${JSON_TYPE + LENGTH}Idempotency-Key: a\r\nIdempotency-Key: b\r\n`, body: FITS },
    400,
    NO_KEY,
  ],
  ['a key that is none', { lines: `${JSON_TYPE + LENGTH}Idempotency-Key: a b\r\n`, body: FITS }, 400, NO_KEY],
  [
    'a key that is too long',
    { lines: `${JSON_TYPE + LENGTH}Idempotency-Key: ${'x'.repeat(256)}\r\n`, body: FITS },
    400,
    NO_KEY,
  ],
  ['tokens that nobody asks for', { lines: `${JSON_TYPE + LENGTH}X-Auth-Token: any\r\n`, body: FITS }, 204],
];

describe('a request in an odd form', () => {
  const service = sharedService();

  it.for(ODD)(
    'is answered as HTTP wants it, at every spelling of the path: %s',
    async ([, sent, status, message]) => {
      const answer = await answered(service(), bytesOf(sent, '/check-create'));
      const [head = '', body = ''] = answer.replace(/^HTTP\/1\.1 100 .*\r\n\r\n/, '').split('\r\n\r\n');
      expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      if (message !== undefined) {
        expect(JSON.parse(body)).toMatchObject({ message });
      }
      expect(await answered(service(), bytesOf(sent, '/check-create?'))).toBe(answer);
      expect(await answered(service(), bytesOf(sent, '/v1/check-create?x=1'))).toBe(answer);
    },
  );

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
});
