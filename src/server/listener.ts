/** The socket: http or https, with bounds on what callers may send and on how long they may take. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as SocketServer } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { ConfigurationError } from '../errors.ts';

/** More than Node's 16 KiB nobody needs who sends a token, a content type and a trace. */
const MAX_HEADER_BYTES = 16_384;
/** For the headers of a request; a connection that says nothing at all is closed by then. */
const HEADERS_MS = 10_000;
/** Longer than the idle time of the load balancers in use (60 s): the side that closes first should be theirs. */
const KEEP_ALIVE_MS = 65_000;
/** How often it is looked which requests have taken too long to arrive. */
const CHECK_MS = 1_000;
/** While it closes: for a request to arrive of which only a part is here. */
const CLOSING_ARRIVAL_S = 5;
/** While it closes: how often it is looked which connections have nothing under way any more. */
const CLOSING_CHECK_MS = 50;

export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  /** Certificate and key; `undefined` = http. */
  readonly tls: SecureContextOptions | undefined;
  /** Seconds for a request to arrive. */
  readonly deadline: number;
}

export class Listener {
  /** `https://127.0.0.1:8642` */
  readonly url: string;
  readonly #server: Server | TlsServer;

  private constructor(server: Server | TlsServer, scheme: string) {
    const { address, family, port } = server.address() as AddressInfo;
    this.url = `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
    this.#server = server;
  }

  /** @throws ConfigurationError when the address can't be had. */
  static async open(answer: RequestListener, options: ListenerOptions): Promise<Listener> {
    const { host, port, tls, deadline } = options;
    const bounds = {
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_MS,
      ...arrivalTimes(deadline),
    };
    const server =
      tls === undefined
        ? createServer(bounds, answer)
        : createTlsServer({ ...bounds, ...tls, ...clientCertificates(tls) }, answer);
    await listen(server, host, port);
    return new Listener(server, tls === undefined ? 'http' : 'https');
  }

  /** For the connections that come from now on. */
  replaceTls(tls: SecureContextOptions): void {
    if ('setSecureContext' in this.#server) {
      this.#server.setSecureContext(tls);
    }
  }

  replaceDeadline(seconds: number): void {
    Object.assign(this.#server, arrivalTimes(seconds));
  }

  /** Stops accepting, and lets what is under way finish for so long, in milliseconds. Then it is cut off. */
  async close(graceMs: number): Promise<void> {
    this.replaceDeadline(Math.min(CLOSING_ARRIVAL_S, this.#server.requestTimeout / 1000));
    const idle = setInterval(() => this.#server.closeIdleConnections(), CLOSING_CHECK_MS);
    const late = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    // Not http's own `close`, which no longer looks for requests that take too long to arrive.
    await new Promise<void>((closed) => SocketServer.prototype.close.call(this.#server, () => closed()));
    this.#server.close();
    clearInterval(idle);
    clearTimeout(late);
  }
}

function arrivalTimes(deadline: number) {
  const requestTimeout = deadline * 1000;
  return { requestTimeout, headersTimeout: Math.min(HEADERS_MS, requestTimeout) };
}

function clientCertificates({ ca }: SecureContextOptions) {
  return ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((listening, failed) => {
    server.once('error', (thrown: NodeJS.ErrnoException) => {
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
