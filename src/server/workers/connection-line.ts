/** Hands accepted connections to workers: to the one with the fewest that can take one, in the order in which they came. */
import type { Socket } from 'node:net';

/** Connections that a worker has been sent and not confirmed. Each confirms at once, unless it is busy or does not run. */
const MAX_UNCONFIRMED = 4;
/** Connections that wait for a worker. Further ones are closed. */
const MAX_WAITING = 4096;

/** A worker, as far as connections go. */
export interface Taker {
  /** Sends the connection; the socket here stays open until the worker has confirmed. Whether it could be sent. */
  hand(id: number, socket: Socket): boolean;
}

interface Load {
  /** Sent, and not confirmed. Nothing was read from them. */
  readonly unconfirmed: Map<number, Socket>;
  /** How many it was given. */
  given: number;
}

export class ConnectionLine {
  readonly #takers = new Map<Taker, Load>();
  readonly #waiting: Socket[] = [];
  #next = 0;

  /** It may be given connections from now on, beginning with as many as the others have had. */
  join(taker: Taker): void {
    const given = Math.max(0, ...[...this.#takers.values()].map((one) => one.given));
    this.#takers.set(taker, { unconfirmed: new Map(), given });
    this.#handOut();
  }

  /** It gets no more. `isGone`: what it has not confirmed goes to others, which nobody has read from. */
  leave(taker: Taker, isGone: boolean): void {
    const load = this.#takers.get(taker);
    if (load === undefined) {
      return;
    }
    this.#takers.delete(taker);
    if (isGone) {
      this.#waiting.unshift(...load.unconfirmed.values());
      this.#handOut();
    } else {
      this.#left.set(taker, load);
    }
  }

  /** Of those that get no more and are still there. */
  readonly #left = new Map<Taker, Load>();

  /** The process of one that has left has ended. */
  gone(taker: Taker): void {
    this.leave(taker, true);
    const load = this.#left.get(taker);
    this.#left.delete(taker);
    if (load !== undefined) {
      this.#waiting.unshift(...load.unconfirmed.values());
      this.#handOut();
    }
  }

  add(socket: Socket): void {
    // A client that goes while it waits, or while it is sent, is no error.
    socket.on('error', () => {});
    if (this.#waiting.length >= MAX_WAITING) {
      socket.destroy();
      return;
    }
    this.#waiting.push(socket);
    this.#handOut();
  }

  confirmed(taker: Taker, id: number): void {
    const load = this.#takers.get(taker) ?? this.#left.get(taker);
    load?.unconfirmed.get(id)?.destroy();
    load?.unconfirmed.delete(id);
    this.#handOut();
  }

  /** Closes what waits. */
  close(): void {
    for (const socket of this.#waiting.splice(0)) {
      socket.destroy();
    }
  }

  #handOut(): void {
    while (this.#waiting.length > 0) {
      const [best] = [...this.#takers]
        .filter(([, { unconfirmed }]) => unconfirmed.size < MAX_UNCONFIRMED)
        .sort(([, one], [, other]) => one.given - other.given);
      if (best === undefined) {
        return;
      }
      const socket = this.#waiting.shift();
      if (socket === undefined || socket.destroyed) {
        continue;
      }
      const [taker, load] = best;
      this.#next += 1;
      load.given += 1;
      if (taker.hand(this.#next, socket)) {
        load.unconfirmed.set(this.#next, socket);
      } else {
        // Its channel is closed: it is about to be gone.
        this.#takers.delete(taker);
        this.#left.set(taker, load);
        this.#waiting.unshift(socket);
      }
    }
  }
}
