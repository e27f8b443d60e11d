import { spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { HttpCallError } from '../../src/http/call-error.ts';
import { createHttpClient } from '../../src/http/client.ts';
import type { HttpClient, HttpClientOptions } from '../../src/http/contract.ts';
import { listen } from './listening.ts';

/** A server on 127.0.0.1 that is stopped after the test. */
export interface Service {
  readonly port: number;
  readonly url: string;
  /** All accepted connections. */
  readonly sockets: Socket[];
  /** All complete requests; only for `startService`. */
  readonly requests: { path: string; headers: IncomingHttpHeaders; body: string }[];
  /** Stops listening and closes all connections. */
  stop(): Promise<void>;
}

/** A real HTTP service; `answer` is called for complete requests. */
export function startService(
  answer: (response: ServerResponse, call: number) => void,
  port = 0,
): Promise<Service> {
  const requests: Service['requests'] = [];
  const listener: RequestListener = async (request, response) => {
    const body = await text(request);
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    answer(response, requests.length);
  };
  return listening(createServer(listener), requests, 'http', port);
}

/** A TCP server that writes what `talk` writes. */
export function startTcpService(talk: (socket: Socket) => void): Promise<Service> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    talk(socket);
  });
  return listening(server, [], 'http', 0);
}

export async function listening(server: Server, requests: Service['requests'], scheme: string, port: number) {
  const at = await listen(server, port);
  return { ...at, url: `${scheme}://127.0.0.1:${at.port}/check-create`, requests };
}

/** A port where connections are neither accepted nor refused, like the full queue of a blocked process. */
export async function startUnresponsiveService(): Promise<Service> {
  const hang = `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    process.stdout.write(String(this.address().port));
    setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 50);
  });`;
  const process = spawn(globalThis.process.execPath, ['-e', hang], { stdio: ['ignore', 'pipe', 'inherit'] });
  const sockets: Socket[] = [];
  const stop = async () => {
    for (const socket of sockets) {
      socket.destroy();
    }
    process.kill('SIGKILL');
    await once(process, 'close');
  };
  onTestFinished(stop);
  const [announced] = await once(process.stdout, 'data');
  const port = Number(announced);
  await new Promise((resolve) => setTimeout(resolve, 200));
  for (let accepted = true; accepted; ) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    accepted = await Promise.race([
      once(socket, 'connect').then(() => true),
      new Promise<boolean>((resolve) => setTimeout(resolve, 200, false)),
    ]);
  }
  return { port, url: `http://127.0.0.1:${port}/check-create`, sockets, requests: [], stop };
}

/** A client that is closed after the test; by default with long timeouts, no retries, no circuit breaker. */
export function newClient(options: Partial<HttpClientOptions> = {}): HttpClient {
  const client = createHttpClient({
    timeout: 10,
    connectRetries: 0,
    breakerFailures: 0,
    breakerCooldown: 10,
    ...options,
  });
  onTestFinished(() => client.close());
  return client;
}

/** The first call loads axios, undici and cockatiel, which would exceed short deadlines. */
export async function loadLibraries(): Promise<void> {
  const client = createHttpClient({ timeout: 60, connectRetries: 0, breakerFailures: 0, breakerCooldown: 0 });
  await failure(client.postJson('http://127.0.0.1:1/', ''));
  await client.close();
}

/** The error of a call that must fail. */
export async function failure(call: Promise<unknown>): Promise<HttpCallError> {
  try {
    await call;
  } catch (error) {
    return error as HttpCallError;
  }
  throw new Error('expected the call to fail');
}

/** The client sockets that this process opens until the end of the test. */
export function watchSockets(onOpen: (socket: Socket) => void = () => {}): Socket[] {
  const sockets: Socket[] = [];
  const onSocket = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    sockets.push(socket);
    onOpen(socket);
  };
  subscribe('net.client.socket', onSocket);
  onTestFinished(() => {
    unsubscribe('net.client.socket', onSocket);
  });
  return sockets;
}
