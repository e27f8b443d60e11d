/** Certificates on disk, and clients that use them. Created by test/fixtures/tls/make.sh. */
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
  /** The authority of `client`; for `client_ca_file`. */
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

/** The client's certificate: `second-client` is from another authority. Default: no certificate. */
export type ClientName = 'client' | 'second-client';

function shownBy(client: ClientName | undefined) {
  return client === undefined
    ? {}
    : { cert: readFileSync(tlsFixture(`${client}.pem`)), key: readFileSync(tlsFixture(`${client}.key`)) };
}

interface TlsAnswer {
  readonly status: number;
  readonly body: string;
  /** The name in the service's certificate. */
  readonly name: string;
}

/** One request; `refused` = no connection, or closed before a response. */
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

interface Resumable {
  /** The first line of the response; empty without one. */
  readonly answer: string;
  /** Whether the previous session was resumed: then no certificate is sent. */
  readonly resumed: boolean;
  /** The ticket to resume this session. */
  readonly session: Buffer | undefined;
}

/** One request on a connection that resumes another session. */
export function askResuming(
  port: number,
  client: ClientName | undefined,
  version: SecureVersion,
  session?: Buffer,
  sent = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
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
      socket.write(sent);
    });
    socket.on('data', (chunk: string) => {
      answer += chunk;
    });
    socket.on('close', () => resolve({ answer: answer.split('\r\n')[0] ?? '', resumed, session: next }));
  });
}

/** A TLS connection, to an address or over an open socket. Data is text; errors only close it. */
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
