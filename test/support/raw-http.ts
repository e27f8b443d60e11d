/** HTTP as bytes, for requests that no client would send. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { onTestFinished, vi } from 'vitest';

/** The bytes of a request with a JSON body. */
export function postBytes(path: string, body: string, headers = ''): string {
  return `${postHead(path, Buffer.byteLength(body), headers)}${body}`;
}

/** The head of a request. `headers`: further lines, each with its line break. */
export function postHead(path: string, length: number, headers = ''): string {
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${length}\r\n\r\n`;
}

/** Timeout for expected events, for a busy machine. */
const SOON = { timeout: 120_000, interval: 10 };

/** An open connection. */
export async function openRaw(port: number) {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  let received = '';
  let closed = false;
  socket.on('data', (chunk: string) => {
    received += chunk;
  });
  socket.on('error', () => {});
  const end = new Promise<void>((ended) =>
    socket.on('close', () => {
      closed = true;
      ended();
    }),
  );
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  const statuses = () => [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
  return {
    socket,
    /** Waits until it is closed. */
    end,
    /** Received data so far. */
    received: () => received,
    /** The status of each response so far. */
    statuses,
    /** Whether the other side has closed or reset it. */
    closed: () => closed,
    /** Waits until this number of responses has begun. */
    answers: (count: number) =>
      vi.waitFor(() => {
        if (statuses().length < count) {
          throw new Error(`expected ${count} answers, got ${statuses().length}: ${received.slice(-500)}`);
        }
      }, SOON),
  };
}
