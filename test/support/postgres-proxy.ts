/** A proxy to a database that can be cut silently: it accepts data, but nothing ever comes back. */
import { connect, type Socket } from 'node:net';
import { startTcpService } from './services.ts';

export interface Proxy {
  /** The connection through the proxy. */
  readonly connection: string;
  /** Blocks all data from now on, on existing and new connections. */
  cut(): void;
  /** The same, once a client has sent this. */
  cutAt(text: string): void;
  /** Forwards the next COMMIT, and disconnects its client before the response. Resolves after that. */
  loseCommit(): Promise<void>;
  /** Forwards everything again; disconnects waiting clients. */
  mend(): void;
  /** New connections go to the server at another port, as if an address had moved. */
  moveTo(port: number): void;
}

export async function startProxy(connection: string, { isCut = false } = {}): Promise<Proxy> {
  let cut = isCut;
  let cutsAt: string | undefined;
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
    /** Read-only transactions end with a COMMIT, too. */
    let writes = false;
    sockets.add(server);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => {});
      from.on('data', (bytes) => {
        if (cutsAt !== undefined && from === client && bytes.includes(cutsAt)) {
          cut = true;
        }
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
          // The data is already on its way.
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
    cutAt(text) {
      cutsAt = text;
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
      cutsAt = undefined;
      for (const socket of sockets) {
        socket.destroy();
      }
      sockets.clear();
    },
  };
}
