/** A way to a database that can be cut without anybody being told: what is sent is accepted, and nothing ever comes back. */
import { connect, type Socket } from 'node:net';
import { startTcpService } from './services.ts';

export interface Proxy {
  /** The connection as it is through the proxy. */
  readonly connection: string;
  /** From now on nothing gets through, on connections that are there and on new ones. */
  cut(): void;
  /** Everything gets through again; whoever has waited meanwhile is thrown out. */
  mend(): void;
}

export async function startProxy(connection: string, { isCut = false } = {}): Promise<Proxy> {
  let cut = isCut;
  const sockets = new Set<Socket>();
  const { port: target, hostname } = new URL(connection);
  const { port } = await startTcpService((client) => {
    sockets.add(client);
    if (cut) {
      client.pause();
      return;
    }
    const server = connect(Number(target), hostname);
    sockets.add(server);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => {});
      from.on('data', (bytes) => {
        if (!cut) {
          to.write(bytes);
        }
      });
      from.on('close', () => to.destroy());
    }
  });
  const through = new URL(connection);
  through.port = String(port);
  return {
    connection: through.href,
    cut() {
      cut = true;
    },
    mend() {
      cut = false;
      for (const socket of sockets) {
        socket.destroy();
      }
      sockets.clear();
    },
  };
}
