import { readFileSync } from 'node:fs';
import { createServer, type ServerOptions } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { failure, listening, loadLibraries, newClient } from '../support/services.ts';

const file = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url), 'utf8');
const server = { cert: file('server.pem'), key: file('server.key') };
const client = { cert: file('client.pem'), key: file('client.key') };
const ca = file('ca.pem');
const json = '{}';

beforeAll(loadLibraries, 60_000);

/** Answers with the name on the client's certificate. */
function startTlsService(options: ServerOptions) {
  const requests: string[] = [];
  const https = createServer(options, (request, response) => {
    requests.push(request.url ?? '');
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    response.end(String(subject?.CN));
  });
  https.on('tlsClientError', () => {});
  return listening(https, [], 'https', 0).then((service) => ({ ...service, calls: requests }));
}

describe('https', () => {
  it('accepts a server with a certificate of the given authority', async () => {
    const service = await startTlsService(server);
    const answer = await newClient({ tls: { ca } }).postJson(service.url, json);
    expect(answer).toEqual({ status: 200, body: 'undefined' });
  });

  it('refuses a server with a certificate of an unknown authority', async () => {
    const service = await startTlsService(server);
    const error = await failure(newClient().postJson(service.url, json));
    expect(error).toMatchObject({ code: 'connect', cause: { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' } });
    expect(service.calls).toEqual([]);
  });

  it('refuses it also when the environment turns the check off', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    try {
      const service = await startTlsService(server);
      expect((await failure(newClient().postJson(service.url, json))).code).toBe('connect');
      expect(service.calls).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('refuses a certificate for another name', async () => {
    const service = await startTlsService({ cert: file('other.pem'), key: file('other.key') });
    const error = await failure(newClient({ tls: { ca } }).postJson(service.url, json));
    expect(error).toMatchObject({ code: 'connect', cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } });
    expect(service.calls).toEqual([]);
  });

  it('presents the certificate of the client', async () => {
    const service = await startTlsService({ ...server, ca, requestCert: true, rejectUnauthorized: true });
    const answer = await newClient({ tls: { ca, ...client } }).postJson(service.url, json);
    expect(answer.body).toBe('a lease service');
  });

  it('fails without a client certificate when the server requires one', async () => {
    const service = await startTlsService({ ...server, ca, requestCert: true, rejectUnauthorized: true });
    const error = await failure(newClient({ tls: { ca } }).postJson(service.url, json));
    expect(['transport', 'connect']).toContain(error.code);
    expect(service.calls).toEqual([]);
  });
});
