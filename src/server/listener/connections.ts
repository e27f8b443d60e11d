/** Protects the socket: open connections, ambiguous requests, pipelining, late timeouts, bodies. */
import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { GrowingBuffer } from '../../base/growing-buffer.ts';

/**
 * The open connections of a server, including those in the TLS handshake, which http does not know yet. Keyed
 * by their addresses, since a TLS request has another socket than the accepted one.
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

  /** Marks the open connections: their clients must authenticate again. */
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

/**
 * Whether a proxy may have parsed the same bytes differently: two `Host` headers, or a `Transfer-Encoding`
 * other than `chunked`. Node accepts both; RFC 9112 does not (3.2, 6.1).
 */
export function isAmbiguous({
  rawHeaders,
  headers,
  httpVersionMajor,
  httpVersionMinor,
}: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    const isOld = httpVersionMajor === 1 && httpVersionMinor === 0;
    if (isOld || coding.toLowerCase() !== 'chunked') {
      return true;
    }
  }
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') {
      hosts += 1;
    }
  }
  return hosts > 1;
}

/**
 * Whether the target of a request is a path, `*`, or an absolute URL without a user. Node accepts any text,
 * for which URL parsers may throw. Source: RFC 9112, 3.2.
 */
export function isTarget(url: string): boolean {
  return (
    url.startsWith('/') || url === '*' || (/^https?:\/\/[^/?#@]+([/?#]|$)/i.test(url) && URL.canParse(url))
  );
}

/** Origin form, or absolute form, which every server must accept. Source: RFC 9112, 3.2. */
const TARGET = /^(?:https?:\/\/[^/?#]*)?([^?#]*)/i;

/** The path of a request, unchanged. */
export function pathOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  return TARGET.exec(url)?.[1] ?? '';
}

export function queryOf({ url = '' }: Pick<IncomingMessage, 'url'>): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]);
}

/** Maximum queued requests of a connection. Nearly all clients wait for each response, and have none. */
const MAX_WAITING = 16;

/**
 * Answers the requests of a connection one by one: the next one starts when the system has taken the last
 * byte of the previous response. So at most one response is in memory for a client that does not read.
 */
interface Queue {
  isBusy: boolean;
  readonly waiting: (() => void)[];
}

export class Pipelines {
  readonly #queues = new WeakMap<Socket, Queue>();

  /** Calls `answer` after the earlier requests. Destroys a connection with too many queued requests. */
  enter(socket: Socket, response: ServerResponse, answer: () => void): void {
    if (!socket.writable) {
      // The previous response closes the connection.
      return;
    }
    let queue = this.#queues.get(socket);
    if (queue === undefined) {
      queue = { isBusy: false, waiting: [] };
      this.#queues.set(socket, queue);
    }
    if (!queue.isBusy) {
      begin(socket, queue, response, answer);
    } else if (queue.waiting.length < MAX_WAITING) {
      const own = queue;
      queue.waiting.push(() => begin(socket, own, response, answer));
    } else {
      socket.destroy();
    }
  }
}

function begin(socket: Socket, queue: Queue, response: ServerResponse, answer: () => void): void {
  queue.isBusy = true;
  // Emitted once.
  response.on('close', () => {
    queue.isBusy = false;
    if (socket.writable) {
      queue.waiting.shift()?.();
    }
  });
  answer();
}

/** Maximum delay of a timeout, in milliseconds. */
const LATE_MS = 250;

/**
 * Sets timeouts of connections with a delay. node:http sets one when a request begins, and another one when
 * it has ended. Each is a new timer, and both together cost as much as a decision. Nearly always the request
 * has ended before the first one is set: then nothing is to be done.
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

/** The promise for the body. */
interface Collector {
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (reason: Error) => void;
}

/**
 * A request whose body can be collected as the parser reads it, without a stream, whose events cost as much
 * as a decision. Until `collect` is called, it is a normal stream.
 */
export class CollectedRequest extends IncomingMessage {
  #collector: Collector | undefined;
  #isBegun = false;
  #body: GrowingBuffer | undefined;

  /**
   * The bytes of the body; the caller has checked `Content-Length`. Rejects if the client disconnects before
   * the end. `undefined` = part of it is already in the stream, or the client has disconnected. The stream
   * then never ends: only `complete` shows that the body is complete.
   */
  collect(): Promise<Buffer> | undefined {
    if (this.#isBegun || this.destroyed) {
      return undefined;
    }
    return new Promise((resolve, reject) => {
      this.#collector = { resolve, reject };
    });
  }

  /** Called by the parser with each part of the body, and with `null` at its end. */
  override push(part: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.#collector === undefined) {
      this.#isBegun = true;
      return super.push(part, encoding);
    }
    if (part === null) {
      this.#end(this.#collector);
    } else {
      this.#body ??= new GrowingBuffer();
      this.#body.push(part);
    }
    return true;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.complete) {
      this.#collector?.reject(error ?? goneError());
    }
    super._destroy(error, done);
  }

  #end({ resolve }: Collector): void {
    const body = this.#body?.bytes ?? Buffer.alloc(0);
    // The parser keeps a request until the next one of its connection: do not keep a large body that long.
    this.#isBegun = true;
    this.#collector = undefined;
    this.#body = undefined;
    resolve(body);
  }
}

/** The client disconnected before the end of its body. */
export function goneError(): Error {
  return new Error('the connection was closed');
}
