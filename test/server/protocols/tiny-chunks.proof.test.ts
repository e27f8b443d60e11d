/** Proves how much memory bodies take that are far larger than what they hold. Real service, real socket. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { measuredService } from '../../peers/measured-service.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

const LENGTH = 1_000_000;
/** In MiB: garbage included, a tenth of what a buffer for each chunk takes. */
const MOST = 80;

const json = Buffer.from(`{}${' '.repeat(LENGTH)}`);

/** The status of the answer. */
async function sentByteByByte(url: string, body: Buffer, headers: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.setEncoding('latin1').on('data', (text) => {
    answer += text;
  });
  const ended = once(socket, 'close');
  socket.write(
    `POST /check-create HTTP/1.1\r\nHost: service\r\nConnection: close\r\nContent-Type: application/json\r\n${headers}Transfer-Encoding: chunked\r\n\r\n`,
  );
  for (let start = 0; start < body.length; start += 10_000) {
    const bytes = [...body.subarray(start, start + 10_000)];
    const chunks = Buffer.concat(
      bytes.flatMap((byte) => [Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]),
    );
    if (!socket.write(chunks)) {
      await once(socket, 'drain');
    }
  }
  socket.write('0\r\n\r\n');
  await ended;
  return answer.slice(0, answer.indexOf('\r\n'));
}

it.each([
  ['as it is', json, ''],
  // Not smaller, so that there are as many chunks.
  ['compressed', gzipSync(json, { level: 0 }), 'Content-Encoding: gzip\r\n'],
])(
  'a body in chunks of one byte takes no more memory than its bytes, %s',
  async (_, body, headers) => {
    const service = await measuredService(temporaryFolder(), []);
    onTestFinished(() => service.stop());
    const before = await service.memory();
    expect(await sentByteByByte(service.url, body, headers)).toBe('HTTP/1.1 400 Bad Request');
    const { peak } = await service.memory();
    expect(peak - before.resident).toBeLessThan(MOST);
  },
  1_200_000,
);

it('fifty bodies of a few bytes, each of 8 MiB when it is unpacked, take the memory of a few', async () => {
  const service = await measuredService(temporaryFolder(), []);
  onTestFinished(() => service.stop());
  const before = await service.memory();
  const body = brotliCompressSync(Buffer.alloc(8_388_608, ' '));
  const headers = { 'content-type': 'application/json', 'content-encoding': 'br' };
  const answers = await Promise.all(
    Array.from({ length: 50 }, () =>
      fetch(`${service.url}/check-create`, { method: 'POST', headers, body }).then(({ status }) => status),
    ),
  );
  expect(new Set(answers)).toEqual(new Set([400]));
  const { peak } = await service.memory();
  expect(peak - before.resident).toBeLessThan(400);
}, 120_000);
