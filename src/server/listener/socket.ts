/** The socket: http or https, with limits on the size and duration of requests. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as SocketServer } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { ConfigurationError } from '../../base/errors.ts';
import type { RefusedRequest } from '../request-state.ts';
import {
  CollectedRequest,
  Connections,
  isAmbiguous,
  isTarget,
  LateTimeouts,
  Pipelines,
} from './connections.ts';

/** Node's default: enough for a token, a content type and trace headers. */
const MAX_HEADER_BYTES = 16_384;
/** For the TLS handshake, and for the headers of a request. A silent connection is closed after it. */
const HEADERS_MS = 10_000;
/** A connection without traffic for this many deadlines is closed: its client does not read the response. */
const STALLED_AFTER = 2;
/** Longer than the usual idle time of load balancers (60 s), which should close first. */
const KEEP_ALIVE_MS = 65_000;
/**
 * How often to check for requests that arrive too slowly. Well below the shortest deadline, 1 s: a connection
 * that stalls for `STALLED_AFTER` deadlines is cut off, and its client must have got its 408 before.
 */
const CHECK_MS = 250;
/** While closing: the time for the rest of a request to arrive. */
const CLOSING_ARRIVAL_MS = 5_000;
/** While closing: how often to look for idle connections. */
const CLOSING_CHECK_MS = 50;

interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  /** Whether other processes may listen there, too. Default: false. */
  readonly reusePort?: boolean;
  /** Its part of the connections that the process may have open: those of all listeners add up to 1. */
  readonly share: number;
  /** Certificate and key; `undefined` = http. */
  readonly tls: SecureContextOptions | undefined;
  /** With `ca` in `tls`: whether clients must show a certificate. If false, they are only asked for one. */
  readonly everybodyShows: boolean;
  /** Seconds for a request to arrive. */
  readonly deadline: number;
  readonly clientOf: (request: IncomingMessage) => string | undefined;
  /** Called for requests that are answered here with 400. */
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

  /** @throws ConfigurationError if the address cannot be used */
  static async open(answer: RequestListener, options: ListenerOptions): Promise<Listener> {
    const { tls, deadline, everybodyShows, share, clientOf, refused } = options;
    const settings = {
      IncomingMessage: CollectedRequest,
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      handshakeTimeout: HEADERS_MS,
      connectionsCheckingInterval: CHECK_MS,
    };
    const connections = new Connections();
    const pipelines = new Pipelines();
    const timeouts = new LateTimeouts();
    const answerInTurn: RequestListener = (request, response) => {
      const isUnclear = isAmbiguous(request);
      if (isUnclear || !isTarget(request.url ?? '')) {
        // Like Node's response to bytes that are not HTTP.
        response.writeHead(400, { Connection: 'close' }).end();
        refused({
          status: 400,
          method: request.method ?? '',
          path: 'other',
          address: clientOf(request),
          reason: isUnclear
            ? 'expected one Host header, and no Transfer-Encoding but chunked'
            : 'expected a path, or a whole URL without a user',
        });
        return;
      }
      if (connections.isOutdated(request.socket)) {
        response.shouldKeepAlive = false;
      }
      // A reload may have changed the timeout since the connection was opened.
      if (request.socket.timeout !== server.timeout) {
        request.socket.setTimeout(server.timeout);
      }
      void answer(request, response);
    };
    const listener: RequestListener = (request, response) =>
      pipelines.enter(request.socket, response, () => answerInTurn(request, response));
    const server: Server | TlsServer =
      tls === undefined
        ? createServer(settings, listener)
        : createTlsServer({ ...settings, ...tls, ...clientCertificates(tls, everybodyShows) }, listener);
    Object.assign(server, timesOf(deadline));
    // Beyond its default limit Node drops headers, such as a second Host or a proxy's. Their size is limited.
    server.maxHeadersCount = 0;
    server.maxConnections = Math.floor(share * mostConnections());
    server.on('connection', (socket) => connections.add(socket));
    // After http, which sets the first timeout of a connection.
    server.on(tls === undefined ? 'connection' : 'secureConnection', (socket) => timeouts.add(socket));
    await listen(server, options);
    return new Listener(server, tls, connections);
  }

  /**
   * Applies to new connections. If the authorities change, open connections end after the current response:
   * their clients must show a certificate again.
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

  /** Stops accepting connections. Requests under way may take `graceMs` to finish, then they are cut off. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    Object.assign(this.#server, arrivalTimes(Math.min(CLOSING_ARRIVAL_MS, this.#server.requestTimeout)));
    // With `setImmediate`, after pending events: a connection on which a request has just arrived is not
    // idle.
    const idle = setInterval(() => setImmediate(() => this.#server.closeIdleConnections()), CLOSING_CHECK_MS);
    const late = setTimeout(() => this.#connections.destroyAll(), graceMs);
    // Not http's own `close`, which stops the check for requests that arrive too slowly.
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

/**
 * Three quarters of the files that the process may open: the rest is for configuration files, modules that are
 * loaded later, the ledger and calls. Further connections are closed. Not limited where there is no `/proc`.
 */
function mostConnections(): number {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'latin1');
  } catch {
    return Number.POSITIVE_INFINITY;
  }
  const [, files] = /^Max open files +([0-9]+)/m.exec(limits) ?? [];
  return files === undefined ? Number.POSITIVE_INFINITY : 0.75 * Number(files);
}

/** @throws ConfigurationError if the address cannot be used */
function listen(
  server: SocketServer,
  { host, port, reusePort = false }: Pick<ListenerOptions, 'host' | 'port' | 'reusePort'>,
): Promise<void> {
  return new Promise((listening, failed) => {
    // Stays attached: later errors mean that one connection could not be accepted, and must not end the
    // process.
    server.on('error', (thrown: NodeJS.ErrnoException) => {
      const message = `cannot listen on ${host}, port ${port}: ${reason(thrown, reusePort)}`;
      failed(new ConfigurationError([{ severity: 'error', section: 'service', message }]));
    });
    server.listen({ host, port, ...(reusePort && { reusePort }) }, listening);
  });
}

function reason(thrown: NodeJS.ErrnoException, reusePort: boolean): string {
  switch (thrown.code) {
    case 'EADDRINUSE':
      return reusePort
        ? 'the port is in use by a process of another user, or one without reuse_port'
        : 'the port is in use';
    case 'ENOTSUP':
      return 'this system has no reuse_port';
    case 'EACCES':
      return 'permission denied';
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine has no such address';
    default:
      return thrown.message;
  }
}
