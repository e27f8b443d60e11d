import type { Socket } from 'node:net';

/** How much longer a timeout may take. */
const LATE_MS = 250;

/**
 * Sets timeouts of connections a moment later. node:http sets one for the request when it begins, and another one for the connection when it
 * has ended. Each is a new timer, and the two of them cost as much as the decision about a lease. Nearly always the request has ended before
 * the first one is set: then there is nothing to do.
 */
export class LateTimeouts {
  readonly #wanted = new Map<Socket, () => void>();
  #timer: NodeJS.Timeout | undefined;

  add(socket: Socket): void {
    const setNow = socket.setTimeout;
    let set = socket.timeout;
    let wanted = set;
    const setIfOther = () => {
      if (wanted !== set && wanted !== undefined) {
        set = wanted;
        setNow.call(socket, wanted);
      }
    };
    socket.setTimeout = (milliseconds, heard) => {
      wanted = milliseconds;
      if (heard !== undefined) {
        socket.once('timeout', heard);
      }
      this.#wanted.set(socket, setIfOther);
      this.#timer ??= setTimeout(() => this.#setAll(), LATE_MS).unref();
      return socket;
    };
  }

  #setAll(): void {
    this.#timer = undefined;
    for (const setIfOther of this.#wanted.values()) {
      setIfOther();
    }
    this.#wanted.clear();
  }
}
