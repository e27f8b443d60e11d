/** The service over TLS, and certificates that change while it runs. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { metric } from '../../support/metric.ts';
import { type RunningPolicyService, runServiceOf } from '../../support/running-service.ts';
import { ask, askResuming, openTls, type TlsFiles, tlsFiles, tlsFixture } from '../../support/tls.ts';

const METRIC = 'blazar_enforcement_certificate_expiry_timestamp_seconds';

async function runTls(files: TlsFiles, service: Record<string, unknown> = {}): Promise<RunningPolicyService> {
  return runServiceOf(
    {
      enforcement: { enabled_filters: ['MaxLeaseDurationFilter'] },
      service: { ...files.options, ...service },
    },
    { pollMs: 100 },
  );
}

/** Waits until the files have been read again, for better or worse, so often. */
async function reread(
  { url }: RunningPolicyService,
  outcome: 'applied' | 'refused',
  times: number,
  client?: 'client',
) {
  const reloads = async () => {
    const answer = await ask(`${url}/metrics`, client && { client });
    return answer === 'refused'
      ? -1
      : metric(answer.body, 'blazar_enforcement_credential_reloads_total', { outcome });
  };
  await expect.poll(reloads).toBe(times);
}

describe('with tls_cert_file and tls_key_file', () => {
  it('the service answers https, and says so in its address', async () => {
    const { url } = await runTls(tlsFiles());
    expect(url).toMatch(/^https:/);
    expect(await ask(`${url}/healthz`)).toEqual({ status: 200, body: '{"status":"ok"}', name: 'localhost' });
  });

  it('whoever speaks http gets no answer, and keeps nobody else from one', async () => {
    const { url, port, logger } = await runTls(tlsFiles());
    for (const bytes of [
      'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
      '\u0016\u0003\u0001\u0000',
      '\u0000'.repeat(500),
    ]) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.end(bytes);
      const answer = await text(socket).catch(() => '');
      expect(answer).not.toContain('HTTP/1.1 200');
      expect(await ask(`${url}/healthz`)).toMatchObject({ status: 200 });
    }
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('a new certificate counts for new connections, as soon as its key is there too', async () => {
    const files = tlsFiles();
    const service = await runTls(files);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    expect(await ask(`${service.url}/healthz`, { agent })).toMatchObject({ name: 'localhost' });

    copyFileSync(tlsFixture('other.pem'), files.certFile);
    await reread(service, 'refused', 1);
    expect(await ask(`${service.url}/healthz`)).toMatchObject({ name: 'localhost' });
    const errors = service.logger.lines.filter(({ level }) => level === 'error');
    expect(errors).toMatchObject([
      {
        message: 'token and certificate files not read again: the previous ones stay in use',
        fields: {
          error: expect.stringContaining(
            `${files.certFile} and ${files.keyFile} do not match, or are not PEM`,
          ),
        },
      },
    ]);

    copyFileSync(tlsFixture('other.key'), files.keyFile);
    await reread(service, 'applied', 1);
    expect(await ask(`${service.url}/healthz`)).toMatchObject({ name: 'other.example' });
    // Nobody is thrown out for it.
    expect(await ask(`${service.url}/healthz`, { agent })).toMatchObject({ name: 'localhost' });
  });

  it('one that has expired is warned of, and the metrics have the end of the one in use', async () => {
    const files = tlsFiles();
    const put = (name: string) => {
      copyFileSync(tlsFixture(`${name}.pem`), files.certFile);
      copyFileSync(tlsFixture(`${name}.key`), files.keyFile);
    };
    const expiry = async ({ url }: RunningPolicyService) => {
      const answer = await ask(`${url}/metrics`);
      return answer === 'refused' ? answer : metric(answer.body, METRIC);
    };
    put('expired');
    const service = await runTls(files);
    const warnings = (running: RunningPolicyService) =>
      running.service.warnings.flatMap(({ option, message }) => (option === 'tls_cert_file' ? message : []));
    expect(warnings(service)).toEqual([
      expect.stringMatching(/clients refuse this certificate now: .* 2021 GMT$/),
    ]);
    expect(await expiry(service)).toBe(Date.parse('2021-01-01T00:00:00Z') / 1000);
    put('server');
    const end = Date.parse(new X509Certificate(readFileSync(files.certFile)).validTo) / 1000;
    await expect.poll(() => expiry(service)).toBe(end);
    const another = await runTls(files);
    expect(await expiry(another)).toBe(end);
    expect(warnings(another)).toEqual([]);
  });

  it('a certificate that clients refuse now changes nothing', async () => {
    const files = tlsFiles();
    const service = await runTls(files);
    copyFileSync(tlsFixture('expired.pem'), files.certFile);
    copyFileSync(tlsFixture('expired.key'), files.keyFile);
    await reread(service, 'refused', 1);
    const shown = openTls(undefined, 'TLSv1.3', { host: '127.0.0.1', port: service.port });
    await once(shown, 'secureConnect');
    expect(Date.parse(shown.getPeerCertificate().valid_to)).toBeGreaterThan(Date.now());
    shown.destroy();
  });

  it.for([
    ['is cut off', (whole: string) => whole.slice(0, 100), 'do not match, or are not PEM'],
    ['is of another certificate', () => readFileSync(tlsFixture('other.key'), 'utf8'), 'key values mismatch'],
  ] as const)('a key that %s changes nothing, and nothing of it is logged', async ([, change, reason]) => {
    const files = tlsFiles();
    const service = await runTls(files);
    const key = readFileSync(files.keyFile, 'utf8');
    writeFileSync(files.keyFile, change(key));
    await reread(service, 'refused', 1);
    expect(await ask(`${service.url}/healthz`)).toMatchObject({ status: 200, name: 'localhost' });
    const logged = JSON.stringify(service.logger.lines);
    expect(logged).toContain(reason);
    for (const line of `${key}${readFileSync(tlsFixture('other.key'), 'utf8')}`.split('\n')) {
      if (line !== '' && !line.startsWith('-----')) {
        expect(logged).not.toContain(line.slice(0, 20));
      }
    }
  });
});

describe('while certificate and key do not match', () => {
  it('tokens are replaced all the same', async () => {
    const files = tlsFiles();
    const tokens = temporaryFile('tokens', 'old-0123456789abcdef\n');
    const service = await runTls(files, { tokens_file: tokens });
    copyFileSync(tlsFixture('other.pem'), files.certFile);
    await reread(service, 'refused', 1);
    writeFileSync(tokens, 'new-0123456789abcdef\n');
    await reread(service, 'refused', 2);
    const page = (token: string) => ask(`${service.url}/`, { headers: { 'X-Auth-Token': token } });
    expect(await page('new-0123456789abcdef')).toMatchObject({ status: 200 });
    expect(await page('old-0123456789abcdef')).toMatchObject({ status: 401 });
  });

  it('a reload is refused, and made up for as soon as they match again', async () => {
    const files = tlsFiles();
    const service = await runTls(files);
    copyFileSync(tlsFixture('other.pem'), files.certFile);
    await reread(service, 'refused', 1);
    expect(await service.service.reload()).toBe(false);
    expect(await ask(`${service.url}/readyz`)).toMatchObject({ status: 503 });
    copyFileSync(tlsFixture('other.key'), files.keyFile);
    await expect.poll(() => ask(`${service.url}/readyz`)).toMatchObject({ status: 200 });
  });
});

describe('with client_ca_file', () => {
  it('only those get in who show a certificate for which it vouches', async () => {
    const files = tlsFiles();
    const { url } = await runTls(files, { client_ca_file: files.caFile });
    expect(await ask(`${url}/healthz`)).toBe('refused');
    expect(await ask(`${url}/healthz`, { client: 'second-client' })).toBe('refused');
    expect(await ask(`${url}/healthz`, { client: 'client' })).toMatchObject({ status: 200 });
  });

  it.for(['TLSv1.2', 'TLSv1.3'] as const)(
    'an authority that has gone from it lets nobody in any more, nor lets stay: %s',
    async (version) => {
      const files = tlsFiles();
      const service = await runTls(files, { client_ca_file: files.caFile });
      const { url, port } = service;
      const agent = new Agent({ keepAlive: true, minVersion: version, maxVersion: version });
      onTestFinished(() => agent.destroy());
      expect(await ask(`${url}/healthz`, { client: 'client', agent })).toMatchObject({ status: 200 });
      const first = await askResuming(port, 'client', version);
      const again = await askResuming(port, 'client', version, first.session);
      expect(again).toMatchObject({ answer: 'HTTP/1.1 200 OK', resumed: true });
      const underWay = openTls('client', version, { host: '127.0.0.1', port });
      await once(underWay, 'secureConnect');
      underWay.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n');
      const half = connect(port, '127.0.0.1');
      await once(half, 'connect');

      copyFileSync(tlsFixture('second-ca.pem'), files.caFile);
      await expect
        .poll(() => ask(`${url}/healthz`, { client: 'second-client' }))
        .toMatchObject({ status: 200 });
      expect(await ask(`${url}/healthz`, { client: 'client' })).toBe('refused');
      expect(await askResuming(port, 'client', version, first.session)).toMatchObject({ answer: '' });
      expect(await askResuming(port, 'client', version, again.session)).toMatchObject({ answer: '' });
      expect(await ask(`${url}/healthz`, { client: 'client', agent })).toBe('refused');

      // What was under way is answered, and is the last on its connection; so is what began to shake hands before.
      underWay.write('\r\n');
      const shaken = openTls('client', version, { socket: half });
      shaken.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
      for (const answer of [await text(underWay), await text(shaken)]) {
        expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*Connection: close\r\n/);
      }
    },
  );

  it.for([['cut off in its second certificate', (whole: string) => whole + whole.slice(0, 300)]] as const)(
    'a new one that is %s changes nothing',
    async ([, change]) => {
      const files = tlsFiles();
      const service = await runTls(files, { client_ca_file: files.caFile });
      writeFileSync(files.caFile, change(readFileSync(files.caFile, 'utf8')));
      await reread(service, 'refused', 1, 'client');
      expect(await ask(`${service.url}/healthz`)).toBe('refused');
      expect(await ask(`${service.url}/healthz`, { client: 'client' })).toMatchObject({ status: 200 });
    },
  );
});
