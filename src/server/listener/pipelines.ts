/** HTTP pipelining: a connection may have one request under way and a few that wait. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests may wait on a connection. Nearly every client waits for each answer, and has none. */
const MAX_WAITING = 16;

/**
 * Answers the requests of a connection one after the other: the next one begins when the system has taken the last byte of the answer
 * before. For a client that sends requests but reads no answers, at most one answer is kept in memory.
 */
interface Line {
  isBusy: boolean;
  readonly waiting: (() => void)[];
}

export class Pipelines {
  readonly #lines = new WeakMap<Socket, Line>();

  /** Calls `answer` when it is its turn. A connection with too many waiting requests is cut off. */
  enter(socket: Socket, response: ServerResponse, answer: () => void): void {
    if (!socket.writable) {
      // The answer before closes the connection.
      return;
    }
    let line = this.#lines.get(socket);
    if (line === undefined) {
      line = { isBusy: false, waiting: [] };
      this.#lines.set(socket, line);
    }
    if (!line.isBusy) {
      begin(socket, line, response, answer);
    } else if (line.waiting.length < MAX_WAITING) {
      const own = line;
      line.waiting.push(() => begin(socket, own, response, answer));
    } else {
      socket.destroy();
    }
  }
}

function begin(socket: Socket, line: Line, response: ServerResponse, answer: () => void): void {
  line.isBusy = true;
  // Comes once.
  response.on('close', () => {
    line.isBusy = false;
    if (socket.writable) {
      line.waiting.shift()?.();
    }
  });
  answer();
}
