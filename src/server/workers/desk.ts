/**
 * One worker serves people: the console, the API, logins, health of the whole and metrics. Their sessions are kept in its memory alone. The other
 * workers pass such requests on to it, over a socket that only this user can reach.
 */
import { rmSync } from 'node:fs';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { removeIfAbandoned } from './socket-folder.ts';

/** What is known of the client where it has connected. */
interface Client {
  readonly address: string | undefined;
  readonly isEncrypted: boolean;
}

/** The header with it, as JSON. What a client sends under this name is dropped. */
const CLIENT_HEADER = 'x-blazar-enforcement-client';
/** They concern one connection, not the request. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'trailer', 'upgrade'],
  ...['expect', CLIENT_HEADER],
]);
const NOBODY = JSON.stringify({ message: 'nobody can answer this now. Please try again.' });

export interface DeskParts {
  /** Where this worker takes requests from others. */
  readonly ownPath: string;
  /** Whether this worker is the one that serves people. */
  readonly isDesk: () => boolean;
  /** Where that worker is; `undefined` = there is none now. */
  readonly deskPath: () => string | undefined;
  /** Whether every worker answers requests to this path. */
  readonly isForEach: (path: string) => boolean;
  readonly answer: RequestListener;
  /** Another worker wants to hear what `url` names, as long as the connection lasts. */
  readonly tell: (url: string, stream: Duplex) => void;
  /** Called before this worker answers people. Must not reject. */
  readonly prepare: () => Promise<void>;
}

export class Desk {
  readonly #parts: DeskParts;
  readonly #server: Server;
  /** Connections to workers that are told something. */
  readonly #told = new Set<Duplex>();

  private constructor(parts: DeskParts) {
    this.#parts = parts;
    // The worker that passes a request on bounds it in size and time.
    this.#server = createServer({ requestTimeout: 0, headersTimeout: 0 }, (incoming, response) => {
      setClient(incoming);
      void this.#answer(incoming, response);
    });
    this.#server.on('upgrade', ({ url = '' }, stream) => {
      this.#told.add(stream);
      stream.once('close', () => this.#told.delete(stream));
      parts.tell(url, stream);
    });
  }

  static async open(parts: DeskParts): Promise<Desk> {
    const desk = new Desk(parts);
    await new Promise<void>((listening, failed) => {
      desk.#server.once('error', failed);
      desk.#server.listen(parts.ownPath, listening);
    });
    return desk;
  }

  /** Answers a request of a client, or passes it on. */
  readonly answer: RequestListener = (incoming, response) => {
    const { isForEach, isDesk, deskPath, answer } = this.#parts;
    const path = pathOf(incoming.url ?? '');
    if (isForEach(path)) {
      answer(incoming, response);
    } else if (isDesk()) {
      void this.#answer(incoming, response);
    } else {
      passOn(incoming, response, deskPath());
    }
  };

  /** Finishes what is under way, for `graceMs` at most. */
  async close(graceMs: number): Promise<void> {
    for (const stream of this.#told) {
      stream.destroy();
    }
    const late = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await new Promise<void>((closed) => this.#server.close(() => closed()));
    clearTimeout(late);
    rmSync(this.#parts.ownPath, { force: true });
    // The primary does it, unless it was killed. The last worker can.
    await removeIfAbandoned(dirname(this.#parts.ownPath));
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    await this.#parts.prepare();
    this.#parts.answer(incoming, response);
  }
}

function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

function passOn(incoming: IncomingMessage, response: ServerResponse, socketPath: string | undefined): void {
  if (socketPath === undefined) {
    refuse(response);
    return;
  }
  const { socket, method, url: path } = incoming;
  const client: Client = { address: socket.remoteAddress, isEncrypted: socket instanceof TLSSocket };
  const headers = [...withoutConnection(incoming.rawHeaders), CLIENT_HEADER, JSON.stringify(client)];
  // A connection for each request: the other end takes it for the connection of the client.
  const passed = request({ socketPath, method, path, headers, agent: false, setHost: false });
  passed.on('response', (answer) => {
    response.sendDate = false;
    response.writeHead(answer.statusCode ?? 502, withoutConnection(answer.rawHeaders));
    response.flushHeaders();
    answer.pipe(response);
    answer.once('error', () => response.destroy());
  });
  passed.on('error', () => (response.headersSent ? response.destroy() : refuse(response)));
  response.once('close', () => passed.destroy());
  incoming.pipe(passed);
}

function refuse(response: ServerResponse): void {
  response
    .writeHead(503, {
      'Content-Type': 'application/json; charset=utf-8',
      'Retry-After': '1',
      Connection: 'close',
    })
    .end(NOBODY);
}

function withoutConnection(raw: readonly string[]): string[] {
  return raw.filter((_, index) => !OF_CONNECTION.has((raw[index - (index % 2)] ?? '').toLowerCase()));
}

/** Makes the connection look like the one of the client. */
function setClient({ headers, socket }: IncomingMessage): void {
  const { address, isEncrypted } = JSON.parse(String(headers[CLIENT_HEADER] ?? '{}')) as Partial<Client>;
  delete headers[CLIENT_HEADER];
  Object.defineProperties(socket, {
    remoteAddress: { value: address, configurable: true },
    encrypted: { value: isEncrypted === true, configurable: true },
  });
}
