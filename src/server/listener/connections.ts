import type { Socket } from 'node:net';

/**
 * The open connections of a server, including those in the TLS handshake, which http does not know yet. Keyed by their addresses,
 * since a TLS request has another socket than the one that was accepted.
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

  /** Marks the open connections: what clients have proved on them no longer counts. */
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
