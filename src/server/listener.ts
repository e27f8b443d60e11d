/** The socket: http or https, with bounds on what callers may send and on how long they may take. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as SocketServer } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { ConfigurationError } from '../errors.ts';
import { Connections } from './connections.ts';
import { isAmbiguous } from './framing.ts';
import { Pipelines } from './pipelines.ts';
import type { RefusedRequest } from './refused-requests.ts';

/** More than Node's 16 KiB nobody needs who sends a token, a content type and a trace. */
const MAX_HEADER_BYTES = 16_384;
/** For the handshake of TLS, and for the headers of a request; a connection that says nothing at all is closed by then. */
const HEADERS_MS = 10_000;
/** So many deadlines long a connection is kept on which nothing moves: whoever reads no answer is gone. */
const STALLED_AFTER = 2;
/** Longer than the idle time of the load balancers in use (60 s): the side that closes first should be theirs. */
const KEEP_ALIVE_MS = 65_000;
/** How often it is looked which requests have taken too long to arrive. */
const CHECK_MS = 1_000;
/** While it closes: for a request to arrive of which only a part is here. */
const CLOSING_ARRIVAL_MS = 5_000;
/** While it closes: how often it is looked which connections have nothing under way any more. */
const CLOSING_CHECK_MS = 50;

export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  /** Certificate and key; `undefined` = http. */
  readonly tls: SecureContextOptions | undefined;
  /** With `ca` in `tls`: whether connections without a certificate of these authorities are refused; else they are asked for one. */
  readonly everybodyShows: boolean;
  /** Seconds for a request to arrive. */
  readonly deadline: number;
  /** Is told of requests that are answered here with 400. */
  readonly refused: (request: RefusedRequest) => void;
}

export class Listener {
  /** `https://127.0.0.1:8642` */
  readonly url: string;
  readonly #server: Server | TlsServer;
  readonly #connections: Connections;
  #authorities: SecureContextOptions['ca'];
  #closing = false;

  private constructor(server: Server | TlsServer, tls: SecureContextOptions | undefined, open: Connections) {
    const { address, family, port } = server.address() as AddressInfo;
    const scheme = tls === undefined ? 'http' : 'https';
    this.url = `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
    this.#server = server;
    this.#connections = open;
    this.#authorities = tls?.ca;
  }

  /** @throws ConfigurationError when the address can't be had. */
  static async open(answer: RequestListener, options: ListenerOptions): Promise<Listener> {
    const { host, port, tls, deadline, everybodyShows, refused } = options;
    const bounds = {
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      handshakeTimeout: HEADERS_MS,
      connectionsCheckingInterval: CHECK_MS,
    };
    const connections = new Connections();
    const pipelines = new Pipelines();
    const answerInTurn: RequestListener = (request, response) => {
      if (isAmbiguous(request)) {
        // As Node answers bytes that are not HTTP.
        response.writeHead(400, { Connection: 'close' }).end();
        refused({
          status: 400,
          method: request.method ?? '',
          path: 'other',
          address: request.socket.remoteAddress,
          reason: 'expected one Host header, and no Transfer-Encoding but chunked',
        });
        return;
      }
      if (connections.isOutdated(request.socket)) {
        response.shouldKeepAlive = false;
      }
      // A connection begins with the time that counted when it was opened.
      if (request.socket.timeout !== server.timeout) {
        request.socket.setTimeout(server.timeout);
      }
      void answer(request, response);
    };
    const listener: RequestListener = (request, response) =>
      pipelines.enter(request.socket, response, () => answerInTurn(request, response));
    const server: Server | TlsServer =
      tls === undefined
        ? createServer(bounds, listener)
        : createTlsServer({ ...bounds, ...tls, ...clientCertificates(tls, everybodyShows) }, listener);
    Object.assign(server, timesOf(deadline));
    server.on('connection', (socket) => connections.add(socket));
    await listen(server, host, port);
    return new Listener(server, tls, connections);
  }

  /**
   * For the connections that come from now on. With other authorities those that are open are ended, when what is under
   * way is answered: who may have been let in by the old ones must show a certificate again.
   */
  replaceTls(tls: SecureContextOptions): void {
    if (!('setSecureContext' in this.#server)) {
      return;
    }
    this.#server.setSecureContext(tls);
    if (tls.ca !== this.#authorities) {
      this.#authorities = tls.ca;
      this.#connections.outdate();
      this.#server.closeIdleConnections();
    }
  }

  replaceDeadline(seconds: number): void {
    if (!this.#closing) {
      Object.assign(this.#server, timesOf(seconds));
    }
  }

  /** Stops accepting, and lets what is under way finish for so long, in milliseconds. Then it is cut off. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    Object.assign(this.#server, arrivalTimes(Math.min(CLOSING_ARRIVAL_MS, this.#server.requestTimeout)));
    // After the events that have come: a connection on which a request has just arrived is not idle.
    const idle = setInterval(() => setImmediate(() => this.#server.closeIdleConnections()), CLOSING_CHECK_MS);
    const late = setTimeout(() => this.#connections.destroyAll(), graceMs);
    // Not http's own `close`, which no longer looks for requests that take too long to arrive.
    await new Promise<void>((closed) => SocketServer.prototype.close.call(this.#server, () => closed()));
    this.#server.close();
    clearInterval(idle);
    clearTimeout(late);
  }
}

function timesOf(deadline: number) {
  return { ...arrivalTimes(deadline * 1000), timeout: STALLED_AFTER * deadline * 1000 };
}

function arrivalTimes(requestTimeout: number) {
  return { requestTimeout, headersTimeout: Math.min(HEADERS_MS, requestTimeout) };
}

function clientCertificates({ ca }: SecureContextOptions, everybodyShows: boolean) {
  return ca === undefined ? {} : { requestCert: true, rejectUnauthorized: everybodyShows };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((listening, failed) => {
    // It stays: an error that comes later is of one connection that could not be accepted, and no reason to end.
    server.on('error', (thrown: NodeJS.ErrnoException) => {
      const message = `cannot listen on ${host}, port ${port}: ${reason(thrown)}`;
      failed(new ConfigurationError([{ severity: 'error', section: 'service', message }]));
    });
    server.listen(port, host, listening);
  });
}

function reason(thrown: NodeJS.ErrnoException): string {
  switch (thrown.code) {
    case 'EADDRINUSE':
      return 'the port is in use';
    case 'EACCES':
      return 'permission denied';
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine has no such address';
    default:
      return thrown.message;
  }
}
