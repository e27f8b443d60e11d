/** What one connection may have under way: one request, and a few behind it. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** So many requests may wait behind the one that is being answered. Who waits for answers, as nearly everyone does, never has one. */
const MAX_WAITING = 16;

/**
 * Answers the requests of a connection one after the other: the next is begun when the system has taken the last byte of the
 * answer before it. Whoever reads no answers, and asks on, is owed one answer at most.
 */
export class Pipelines {
  readonly #waiting = new WeakMap<Socket, (() => void)[]>();

  /** Begins with `answer` when it is its turn. A connection on which too many wait is cut off. */
  enter(socket: Socket, response: ServerResponse, answer: () => void): void {
    const waiting = this.#waiting.get(socket);
    const begin = () => {
      response.once('close', () => this.#next(socket));
      answer();
    };
    if (!socket.writable) {
      // It came behind a request whose answer closes the connection.
      return;
    }
    if (waiting === undefined) {
      this.#waiting.set(socket, []);
      begin();
    } else if (waiting.length < MAX_WAITING) {
      waiting.push(begin);
    } else {
      socket.destroy();
    }
  }

  #next(socket: Socket): void {
    const next = this.#waiting.get(socket)?.shift();
    if (next === undefined) {
      this.#waiting.delete(socket);
    } else if (socket.writable) {
      next();
    }
  }
}
