/** A way to a database that breaks after a certain message of a transaction that writes. */
import { connect, type Socket } from 'node:net';
import { startTcpService } from './services.ts';

export type Direction = 'to the server' | 'to the client';

export interface Cutter {
  /** The connection as it is through here, without TLS. */
  readonly connection: string;
  /** The next such transaction loses its connection when so many of its messages have passed; BEGIN is the first to the server. */
  cutAfter(messages: number, direction: Direction): void;
  /** How many messages of the last such transaction have passed. */
  passed(direction: Direction): number;
  /** Whether the connection was cut since `cutAfter`. */
  hasCut(): boolean;
}

export async function startCutter(connection: string): Promise<Cutter> {
  let cut: { readonly messages: number; readonly direction: Direction } | undefined;
  let hasCut = false;
  let last: Record<Direction, number> = { 'to the server': 0, 'to the client': 0 };
  const { port: target, hostname } = new URL(connection);
  const { port } = await startTcpService((client) => {
    const server = connect(Number(target), hostname);
    /** Of the transaction that writes; `undefined` = there is none. */
    let counts: typeof last | undefined;
    const pass = (from: Socket, to: Socket, direction: Direction, isFirstBare: boolean) => {
      let pending = Buffer.alloc(0);
      let isBare = isFirstBare;
      const isOver = () =>
        counts !== undefined && cut?.direction === direction && counts[direction] >= cut.messages;
      const end = () => {
        cut = undefined;
        hasCut = true;
        // What has passed arrives, in both directions.
        client.end(() => client.destroy());
        server.end(() => server.destroy());
      };
      from.on('error', () => {});
      from.on('close', () => to.destroy());
      from.on('data', (bytes) => {
        pending = Buffer.concat([pending, bytes]);
        for (;;) {
          const head = isBare ? 0 : 1;
          if (pending.length < head + 4) {
            return;
          }
          const length = head + pending.readUInt32BE(head);
          if (pending.length < length) {
            return;
          }
          const message = pending.subarray(0, length);
          pending = pending.subarray(length);
          isBare = false;
          if (direction === 'to the server' && message.includes('BEGIN ')) {
            counts = message.includes('READ COMMITTED;')
              ? { 'to the server': 0, 'to the client': 0 }
              : undefined;
            last = counts ?? last;
          }
          if (to.destroyed || to.writableEnded) {
            return;
          }
          if (isOver()) {
            end();
            return;
          }
          if (counts !== undefined) {
            counts[direction] += 1;
          }
          to.write(message);
        }
      });
    };
    pass(client, server, 'to the server', true);
    pass(server, client, 'to the client', false);
  });
  const through = new URL(connection);
  through.port = String(port);
  through.searchParams.set('sslmode', 'disable');
  return {
    connection: through.href,
    cutAfter(messages, direction) {
      cut = { messages, direction };
      hasCut = false;
    },
    passed: (direction) => last[direction],
    hasCut: () => hasCut,
  };
}
