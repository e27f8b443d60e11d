import type { Socket } from 'node:net';

/**
 * The connections of a server, from their first byte on: http knows one of TLS only when its handshake is done. They go by
 * their addresses, since a request has another socket than the one that was accepted.
 */
export class Connections {
  readonly #open = new Map<string, Socket>();
  readonly #outdated = new Set<string>();

  add(socket: Socket): void {
    const name = nameOf(socket);
    this.#open.set(name, socket);
    socket.once('close', () => {
      this.#open.delete(name);
      this.#outdated.delete(name);
    });
  }

  /** What has proved who is at the other end of those that are open counts no longer. */
  outdate(): void {
    for (const name of this.#open.keys()) {
      this.#outdated.add(name);
    }
  }

  isOutdated(socket: Socket): boolean {
    return this.#outdated.size > 0 && this.#outdated.has(nameOf(socket));
  }

  destroyAll(): void {
    for (const socket of this.#open.values()) {
      socket.destroy();
    }
  }
}

function nameOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}
