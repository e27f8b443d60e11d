/** A way to a database that can be cut without anybody being told: what is sent is accepted, and nothing ever comes back. */
import { connect, type Socket } from 'node:net';
import { startTcpService } from './services.ts';

export interface Proxy {
  /** The connection as it is through the proxy. */
  readonly connection: string;
  /** From now on nothing gets through, on connections that are there and on new ones. */
  cut(): void;
  /** Passes the next COMMIT on, and throws whoever has sent it out before it is answered. Resolves when that has happened. */
  loseCommit(): Promise<void>;
  /** Everything gets through again; whoever has waited meanwhile is thrown out. */
  mend(): void;
  /** From now on connections go to the server at another port, as when an address moves. */
  moveTo(port: number): void;
}

export async function startProxy(connection: string, { isCut = false } = {}): Promise<Proxy> {
  let cut = isCut;
  let lost: (() => void) | undefined;
  const sockets = new Set<Socket>();
  const { port: ownPort, hostname } = new URL(connection);
  let target = Number(ownPort);
  const { port } = await startTcpService((client) => {
    sockets.add(client);
    if (cut) {
      client.pause();
      return;
    }
    const server = connect(target, hostname);
    let isLosing = false;
    /** Looks end with a COMMIT, too. */
    let writes = false;
    sockets.add(server);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => {});
      from.on('data', (bytes) => {
        if (cut) {
          return;
        }
        to.write(bytes);
        if (from === client && bytes.includes('BEGIN')) {
          writes = bytes.includes('READ COMMITTED;');
        }
        if (writes && from === client && lost !== undefined && bytes.includes('COMMIT\0')) {
          isLosing = true;
          lost();
          lost = undefined;
          // What is sent is on its way.
          server.removeAllListeners('data');
          client.destroy();
          setTimeout(() => server.destroy(), 200);
        }
      });
      from.on('close', () => {
        if (!isLosing) {
          to.destroy();
        }
      });
    }
  });
  const through = new URL(connection);
  through.port = String(port);
  return {
    connection: through.href,
    cut() {
      cut = true;
    },
    moveTo(port) {
      target = port;
    },
    loseCommit() {
      return new Promise((resolve) => {
        lost = resolve;
      });
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
