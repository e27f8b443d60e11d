/** HTTP as bytes, for what no client would send. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished, vi } from 'vitest';

/** The bytes of a request with a body of JSON. */
export function postBytes(path: string, body: string, headers = ''): string {
  return `${postHead(path, Buffer.byteLength(body), headers)}${body}`;
}

/** What comes before the body. `headers` are further lines, each with its line break. */
export function postHead(path: string, length: number, headers = ''): string {
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${length}\r\n\r\n`;
}

export interface RawConnection {
  readonly socket: Socket;
  /** What has come so far. */
  received(): string;
  /** The status of each answer that has come. */
  statuses(): number[];
  /** Waits until so many answers have begun. */
  answers(count: number): Promise<void>;
  /** Whether the other side has closed it, or reset it. */
  closed(): boolean;
  /** Waits until it is. */
  readonly end: Promise<void>;
}

/** How long it is waited for what must come, of a machine that is busy elsewhere. */
const SOON = { timeout: 120_000, interval: 10 };

/** A connection that is open. */
export async function openRaw(port: number): Promise<RawConnection> {
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
    end,
    received: () => received,
    statuses,
    closed: () => closed,
    answers: (count) =>
      vi.waitFor(() => {
        if (statuses().length < count) {
          throw new Error(`expected ${count} answers, got ${statuses().length}: ${received.slice(-500)}`);
        }
      }, SOON),
  };
}
