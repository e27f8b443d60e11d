/** `[kubernetes] client_ca_file`: API servers show a certificate, and nobody else has to. */
import { copyFileSync } from 'node:fs';
import { text as wholeText } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { ADMISSION, creating, policiesForAll, runKubernetes } from '../../support/kubernetes-service.ts';
import { postBytes } from '../../support/raw-http.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';
import { askResuming, type ClientName, openTls, tlsFiles, tlsFixture } from '../../support/tls.ts';

const POLICIES = policiesForAll({ everything: { allowed: { schedulerNames: [] } } });
const REVIEW = JSON.stringify(creating());
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;

async function guarded(kubernetes: object = {}) {
  const files = tlsFiles();
  const running = await runKubernetes(POLICIES, {
    service: files.options,
    kubernetes: { client_ca_file: files.caFile, ...kubernetes },
    enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 3600 },
  });
  const ask = (client: ClientName | undefined, path = ADMISSION, sent = REVIEW, headers = '') =>
    askAt(running.port, client, path, sent, headers);
  return { ...running, files, ask };
}

async function askAt(
  port: number,
  client: ClientName | undefined,
  path = ADMISSION,
  sent = REVIEW,
  headers = '',
): Promise<number> {
  const socket = openTls(client, 'TLSv1.3', { host: '127.0.0.1', port });
  socket.write(postBytes(path, sent, `${headers}Connection: close\r\n`));
  return statusOf(await wholeText(socket));
}

const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

describe('with [kubernetes] client_ca_file', () => {
  it('requires a certificate from these authorities for the paths of Kubernetes', async () => {
    const { ask } = await guarded();
    expect(await ask('client')).toBe(200);
    expect(await ask(undefined)).toBe(401);
    expect(await ask('second-client')).toBe(401);
    expect(await ask('expired' as ClientName)).toBe(401);
  });

  it('requires no certificate for other paths', async () => {
    const { ask } = await guarded();
    for (const client of [undefined, 'client', 'second-client'] as const) {
      expect(await ask(client, '/check-create', JSON.stringify(createLasting(60)))).toBe(204);
    }
  });

  it('requires both a certificate and a token if tokens are set', async () => {
    const { ask, service, url } = await guarded({ tokens: ['t0ken-0123456789abcdef'] });
    const token = 'Authorization: Bearer t0ken-0123456789abcdef\r\n';
    expect(await ask('client', ADMISSION, REVIEW, token)).toBe(200);
    expect(await ask('client', `${ADMISSION}/t0ken-0123456789abcdef`)).toBe(200);
    expect(await ask('client')).toBe(401);
    expect(await ask(undefined, ADMISSION, REVIEW, token)).toBe(401);
    expect(await ask('second-client', `${ADMISSION}/t0ken-0123456789abcdef`)).toBe(401);
    expect(service.authenticators).toContainEqual({
      name: 'kubernetes',
      title: 'Kubernetes',
      urls: [`${url}/kubernetes/admission`, `${url}/kubernetes/validation`],
      asks: [
        'a client certificate ([kubernetes] client_ca_file)',
        'one of [kubernetes] tokens, as Authorization: Bearer, or as the last part of the path',
      ],
    });
  });

  it.for(
    VERSIONS.flatMap((version) =>
      ([undefined, 'second-client', 'client'] as const).map((client) => [version, client] as const),
    ),
  )('a session that is resumed is worth what it began with: %s, %s', async ([version, client]) => {
    const { port } = await guarded();
    const sent = postBytes(ADMISSION, REVIEW, 'Connection: close\r\n');
    const first = await askResuming(port, client, version, undefined, sent);
    const second = await askResuming(port, undefined, version, first.session, sent);
    expect(second.resumed).toBe(true);
    const expected = client === 'client' ? 200 : 401;
    expect([first, second].map(({ answer }) => statusOf(answer))).toEqual([expected, expected]);
  });

  it('uses new authorities in the file at once, for open connections too', async () => {
    const { ask, files, service, logger } = await guarded();
    expect(await ask('client')).toBe(200);
    copyFileSync(tlsFixture('second-ca.pem'), files.caFile);
    await service.reload();
    await expect.poll(() => JSON.stringify(logger.lines)).toContain('certificate files read again');
    expect(await ask('client')).toBe(401);
    expect(await ask('second-client')).toBe(200);
  });
});

describe('[kubernetes] client_ca_file', () => {
  it('needs TLS, and excludes client_ca_file of [service]', async () => {
    const { options, caFile } = tlsFiles();
    await expect(runKubernetes(POLICIES, { kubernetes: { client_ca_file: caFile } })).rejects.toThrow(
      '[kubernetes] client_ca_file: expected [service] tls_cert_file and tls_key_file with it',
    );
    const service = { ...options, client_ca_file: caFile };
    await expect(
      runKubernetes(POLICIES, { service, kubernetes: { client_ca_file: caFile } }),
    ).rejects.toThrow('[kubernetes] client_ca_file: expected no [service] client_ca_file with it');
    const empty = { service: options, kubernetes: { client_ca_file: tlsFixture('client.key') } };
    await expect(runKubernetes(POLICIES, empty)).rejects.toThrow(
      /\[kubernetes\] client_ca_file: .*client\.key: number 1 is not a certificate/,
    );
  });

  it('stays required until the next start, whatever a reload says', async () => {
    const { options, caFile } = tlsFiles();
    const policies = temporaryFile('policies.yaml', POLICIES);
    const text = (authorities: string) =>
      `[service]\nport = 0\ntls_cert_file = ${options.tls_cert_file}\ntls_key_file = ${options.tls_key_file}\n[kubernetes]\nscheduling_policies = ${policies}\n${authorities}`;
    const running = await runServiceOnFile(text(`client_ca_file = ${caFile}\n`));
    for (const authorities of ['', `client_ca_file = ${tlsFixture('second-ca.pem')}\n`]) {
      expect(await running.change(text(authorities))).toBe(true);
      expect(running.logger.lines.splice(0).map(({ message }) => message)).toContain(
        '[kubernetes] client_ca_file: the change takes effect at the next start',
      );
      expect(await askAt(running.port, undefined)).toBe(401);
      expect(await askAt(running.port, 'second-client')).toBe(401);
      expect(await askAt(running.port, 'client')).toBe(200);
    }
  });
});
