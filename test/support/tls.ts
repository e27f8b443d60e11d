/** Certificates on disk, and clients that show them. What they are: test/fixtures/tls/make.sh. */
import { copyFileSync, readFileSync } from 'node:fs';
import { type Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, connect, type SecureVersion, type TLSSocket } from 'node:tls';
import { projectFile } from './files.ts';
import { temporaryFolder } from './filter-folder.ts';

/** The path of a file in test/fixtures/tls. */
export function tlsFixture(name: string): string {
  return projectFile(`test/fixtures/tls/${name}`);
}

/** Certificate, key and authority of a service, in files that a test may replace. */
export interface TlsFiles {
  /** For `[service]`. */
  readonly options: { readonly tls_cert_file: string; readonly tls_key_file: string };
  readonly certFile: string;
  readonly keyFile: string;
  /** Vouches for `client`; for `client_ca_file`. */
  readonly caFile: string;
}

export function tlsFiles(): TlsFiles {
  const folder = temporaryFolder();
  const copy = (name: string) => {
    const path = join(folder, name);
    copyFileSync(tlsFixture(name), path);
    return path;
  };
  const certFile = copy('server.pem');
  const keyFile = copy('server.key');
  return {
    options: { tls_cert_file: certFile, tls_key_file: keyFile },
    certFile,
    keyFile,
    caFile: copy('ca.pem'),
  };
}

/** Who asks: `second-client` is one for whom another authority vouches. Default: nobody shows a certificate. */
export type ClientName = 'client' | 'second-client';

function shownBy(client: ClientName | undefined) {
  return client === undefined
    ? {}
    : { cert: readFileSync(tlsFixture(`${client}.pem`)), key: readFileSync(tlsFixture(`${client}.key`)) };
}

export interface TlsAnswer {
  readonly status: number;
  readonly body: string;
  /** The name in the certificate that the service has shown. */
  readonly name: string;
}

/** One request; `refused` when the connection was not let in, or closed before there was an answer. */
export function ask(
  url: string,
  {
    client,
    agent = false,
    headers = {},
  }: { client?: ClientName; agent?: Agent | false; headers?: Record<string, string> } = {},
): Promise<TlsAnswer | 'refused'> {
  return new Promise((resolve) => {
    request(url, { agent, headers, servername: 'localhost', rejectUnauthorized: false, ...shownBy(client) })
      .on('response', async (answer) => {
        const { subject } = (answer.socket as TLSSocket).getPeerCertificate();
        resolve({
          status: answer.statusCode ?? 0,
          body: await text(answer),
          name: String(subject?.CN),
        });
      })
      .on('error', () => resolve('refused'))
      .end();
  });
}

export interface Resumable {
  /** The first line of the answer; empty when there was none. */
  readonly answer: string;
  /** Whether the session of a connection before was taken up again: then no certificate is shown. */
  readonly resumed: boolean;
  /** What takes up this session. */
  readonly session: Buffer | undefined;
}

/** One request on a connection that takes up the session of another one. */
export function askResuming(
  port: number,
  client: ClientName,
  version: SecureVersion,
  session?: Buffer,
): Promise<Resumable> {
  return new Promise((resolve) => {
    let answer = '';
    let resumed = false;
    let next: Buffer | undefined;
    const socket = openTls(client, version, { host: '127.0.0.1', port, ...(session && { session }) });
    socket.on('session', (given) => {
      next = given;
    });
    socket.on('secureConnect', () => {
      resumed = socket.isSessionReused();
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    });
    socket.on('data', (chunk: string) => {
      answer += chunk;
    });
    socket.on('close', () => resolve({ answer: answer.split('\r\n')[0] ?? '', resumed, session: next }));
  });
}

/** A connection of TLS, at an address or over a socket that is open. What comes is text; errors only close it. */
export function openTls(
  client: ClientName | undefined,
  version: SecureVersion,
  to: ConnectionOptions,
): TLSSocket {
  const socket = connect({
    servername: 'localhost',
    minVersion: version,
    maxVersion: version,
    ca: readFileSync(tlsFixture('ca.pem')),
    ...shownBy(client),
    ...to,
  });
  return socket.setEncoding('utf8').on('error', () => {});
}
