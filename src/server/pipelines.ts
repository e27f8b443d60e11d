/** HTTP pipelining: a connection may have one request under way and a few that wait. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests may wait on a connection. Nearly every client waits for each answer, and has none. */
const MAX_WAITING = 16;

/**
 * Answers the requests of a connection one after the other: the next one begins when the system has taken the last byte of the answer
 * before. For a client that sends requests but reads no answers, at most one answer is kept in memory.
 */
export class Pipelines {
  readonly #waiting = new WeakMap<Socket, (() => void)[]>();

  /** Calls `answer` when it is its turn. A connection with too many waiting requests is cut off. */
  enter(socket: Socket, response: ServerResponse, answer: () => void): void {
    const waiting = this.#waiting.get(socket);
    const begin = () => {
      response.once('close', () => this.#next(socket));
      answer();
    };
    if (!socket.writable) {
      // The answer before closes the connection.
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
