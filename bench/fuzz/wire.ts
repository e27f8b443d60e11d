/** Sends bytes that are nearly HTTP, around a lease that must be rejected. */
import { connect } from 'node:net';
import fc from 'fast-check';
import { capturedRequests, withLease } from '../requests.ts';
import { edited, edits, onceIn } from './texts.ts';

/** Closes the connection after this many idle milliseconds: the service may be waiting for more. */
const QUIET_MS = 50;
/** If the connection stays open for this long after that, the service hangs. */
const HANGING_MS = 10_000;

const [captured] = capturedRequests();
const TOO_LONG = JSON.stringify(captured && withLease(captured, { end_date: '2099-01-01T00:00:00' }));

const HEAD = [
  'POST /check-create HTTP/1.1',
  'Host: policy.example.org',
  'Content-Type: application/json',
  `Content-Length: ${Buffer.byteLength(TOO_LONG)}`,
  '\r\n',
].join('\r\n');

/** Replacements for the method. */
const METHODS = ['GET', 'HEAD', 'PUT', 'OPTIONS', 'CONNECT', 'TRACE', 'PRI', 'post', 'POSTPOST', ''];

const LINES =
  'Transfer-Encoding: chunked|Content-Length: 5|Content-Length: -1|Expect: 100-continue|Expect: more|Content-Encoding: gzip|Host: another|Upgrade: websocket\r\nConnection: Upgrade| folded|GET / HTTP/1.1\r\n'.split(
    '|',
  );

const PIECES = [
  ...'\r\n\t\0 :/%?#9é',
  '\r\n',
  '\r\n\r\n',
  '%00',
  '..',
  'HTTP/9.9',
  'X: '.repeat(30),
  `X: ${'x'.repeat(20_000)}`,
  ...LINES.map((line) => `\r\n${line}\r\n`),
];

const headEdit = fc.record({
  at: fc.nat(),
  remove: fc.integer({ min: 0, max: 20 }),
  insert: fc.constantFrom(...PIECES),
});

/** Only the head is mutated, so no response can allow the lease. */
export const fuzzedBytes: fc.Arbitrary<Buffer> = fc
  .record({
    head: fc.array(headEdit, { maxLength: 3 }),
    method: onceIn(5, fc.constantFrom(...METHODS), 'POST'),
    garbage: onceIn(10, edits, []),
  })
  .map(({ head, method, garbage }) => {
    const changed = edited(HEAD, head).replace('POST', method);
    return Buffer.from(edited(changed, garbage) + TOO_LONG, 'latin1');
  });

/** Resolves unless the service allows the lease or fails. */
export async function judgeBytes(port: number, bytes: Buffer): Promise<void> {
  const heard = await talk(port, bytes);
  const statuses = [...heard.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
  if (statuses.includes(204) || statuses.includes(500)) {
    throw new Error(
      `expected neither 204 nor 500, got ${heard} for ${JSON.stringify(bytes.toString('latin1'))}`,
    );
  }
}

function talk(port: number, bytes: Buffer): Promise<string> {
  return new Promise((closed, failed) => {
    let heard = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const quiet = setTimeout(() => socket.end(), QUIET_MS);
    const hanging = setTimeout(() => {
      socket.destroy();
      failed(new Error(`the connection was not closed: ${JSON.stringify(bytes.toString('latin1'))}`));
    }, HANGING_MS);
    socket.setEncoding('latin1').on('data', (chunk) => {
      heard += chunk;
      quiet.refresh();
    });
    // Closing the connection is a valid response.
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(quiet);
      clearTimeout(hanging);
      closed(heard);
    });
  });
}
