/** External services that fail in different ways. None of them returns a valid response that allows. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { ROOT } from './requests.ts';

export interface FaultyService {
  /** For `external_service_base_endpoint`. */
  readonly url: string;
  /** Options of ExternalServiceFilter that this fault needs. */
  readonly options?: Readonly<Record<string, unknown>>;
  stop(): Promise<void>;
}

const SECOND = 1000;
/** RFC 6761 guarantees that this top-level domain does not resolve. */
const NO_SUCH_NAME = 'http://policy.invalid';
const EXPIRED = join(ROOT, 'test/fixtures/tls/expired.pem');

export const FAULTS: Readonly<Record<string, () => Promise<FaultyService>>> = {
  async 'connection refused'() {
    const { url, stop } = await listening(createServer());
    await stop();
    return { url, stop: async () => {} };
  },
  silent: () => listening(createTcpServer(() => {})),
  'one byte a second': () =>
    talking((socket) => {
      socket.write(
        'HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n',
      );
      everySecond(socket, () => socket.write(' '));
    }),
  'headers, one byte a second': () =>
    talking((socket) => {
      const answer = 'HTTP/1.1 204 No Content\r\n\r\n';
      let sent = 0;
      everySecond(socket, () => {
        socket.write(answer[sent % answer.length] ?? '');
        sent += 1;
      });
    }),
  reset: () => talking((socket) => socket.resetAndDestroy()),
  'wrong status': () => answering((_request, response) => response.writeHead(200).end('{"allowed":true}')),
  'endless body': () =>
    answering((_request, response) => {
      response.writeHead(403, { 'Content-Type': 'application/json' });
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(16_384))) {}
      };
      response.on('drain', more);
      more();
    }),
  'broken JSON': () =>
    answering((_request, response) => {
      response.writeHead(403, { 'Content-Type': 'application/json' }).end('{"message": "too lo');
    }),
  async redirect() {
    const generous = await answering((_request, response) => response.writeHead(204).end());
    const service = await answering((request, response) =>
      response.writeHead(307, { Location: generous.url + request.url }).end(),
    );
    return {
      url: service.url,
      stop: async () => {
        await Promise.all([generous.stop(), service.stop()]);
      },
    };
  },
  async 'expired certificate'() {
    const tls = { cert: readFileSync(EXPIRED), key: readFileSync(EXPIRED.replace('.pem', '.key')) };
    const service = await listening(
      createTlsServer(tls, (_request, response) => response.writeHead(204).end()),
      'https',
    );
    return { ...service, options: { external_service_ca_file: EXPIRED } };
  },
  'name that does not resolve': async () => ({ url: NO_SUCH_NAME, stop: async () => {} }),
};

/** Responds to complete requests. */
function answering(answer: RequestListener): Promise<FaultyService> {
  return listening(
    createServer((request, response) => {
      request.resume();
      request.on('end', () => answer(request, response));
    }),
  );
}

/** Sends these bytes once a part of the request has arrived. */
function talking(talk: (socket: Socket) => void): Promise<FaultyService> {
  return listening(createTcpServer((socket) => socket.once('data', () => talk(socket))));
}

function everySecond(socket: Socket, work: () => void): void {
  const timer = setInterval(work, SECOND);
  socket.once('close', () => clearInterval(timer));
}

async function listening(server: Server, scheme = 'http'): Promise<FaultyService> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}).once('close', () => sockets.delete(socket)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      const closed = new Promise((done) => server.close(done));
      for (const socket of sockets) {
        socket.destroy();
      }
      await closed;
    },
  };
}
