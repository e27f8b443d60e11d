/** certificate.sh of etc/kubernetes: the API server trusts the service under the name that it calls. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { startProblems } from '../../../src/server/configuration/start-checks.ts';
import { startService } from '../../../src/server/service.ts';
import { projectFile } from '../../support/files.ts';
import { creating } from '../../support/kubernetes-service.ts';
import { recordingLogger } from '../../support/logger.ts';
import { need } from '../../support/peers.ts';
import { copyOfFolder, makeCertificate } from './certificate.ts';
import { manifests, only } from './manifests.ts';

const MOUNTS = '/etc/blazar-enforcement';
const { service } = only(manifests(), 'MutatingWebhookConfiguration').webhooks[0].clientConfig;
const NAME = `${service.name}.${service.namespace}.svc`;

const certificateAt = (path: string) => new X509Certificate(readFileSync(path));

describe('etc/kubernetes/certificate.sh', () => {
  it('makes a certificate for the name that the API server calls', (context) => {
    need(context, 'openssl', 'version');
    const folder = copyOfFolder();
    const { status, stdout, stderr } = makeCertificate(folder);
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining(NAME) });
    const made = join(folder, 'certificate');
    const tokens = ['kubernetes-token', 'service-token'];
    const secret = ['ca.key', 'tls.key', ...tokens];
    expect(readdirSync(made).sort()).toEqual(['.gitignore', 'ca.crt', 'tls.crt', ...secret].sort());
    expect(readFileSync(join(made, '.gitignore'), 'utf8'), 'packages of npm lose the one of a folder').toBe(
      '*\n',
    );
    for (const token of tokens) {
      expect(readFileSync(join(made, token), 'utf8')).toMatch(/^[0-9a-f]{64}$/);
    }

    const authority = certificateAt(join(made, 'ca.crt'));
    const certificate = certificateAt(join(made, 'tls.crt'));
    expect(certificate.subjectAltName).toBe(`DNS:${NAME}`);
    expect(certificate.checkHost(NAME)).toBe(NAME);
    expect(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)).toBe(true);
    expect([authority.ca, certificate.ca]).toEqual([true, false]);
    const days = (Date.parse(certificate.validTo) - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(730);
    expect(Buffer.from(stdout.trim(), 'base64').toString()).toBe(authority.toString());
    for (const key of ['.', ...secret]) {
      expect(statSync(join(made, key)).mode & 0o077, key).toBe(0);
    }
  });

  it('keeps the authority when it runs again, so that the previous certificate is trusted too', (context) => {
    need(context, 'openssl', 'version');
    const folder = copyOfFolder();
    const made = join(folder, 'elsewhere');
    const first = makeCertificate(folder, made);
    const before = certificateAt(join(made, 'tls.crt'));
    const second = makeCertificate(folder, made);
    expect(second.stdout).toBe(first.stdout);
    const after = certificateAt(join(made, 'tls.crt'));
    expect(after.serialNumber).not.toBe(before.serialNumber);
    for (const certificate of [before, after]) {
      expect(certificate.verify(certificateAt(join(made, 'ca.crt')).publicKey)).toBe(true);
    }

    rmSync(join(made, 'ca.key'));
    const third = makeCertificate(folder, made);
    expect(third.status).toBe(1);
    expect(third.stderr).toContain('ca.key is not there');
    expect(certificateAt(join(made, 'tls.crt')).serialNumber).toBe(after.serialNumber);
  });
});

describe('etc/kubernetes-files/policy-service.conf', () => {
  it('starts a service that the API server can call', async (context) => {
    need(context, 'openssl', 'version');
    const folder = copyOfFolder();
    const caBundle = Buffer.from(makeCertificate(folder).stdout, 'base64').toString();
    const root = join(folder, 'mounts');
    mount(root, 'policies', ['policies.yaml', 'roles.yaml'], folder);
    mount(root, 'tls', ['tls.crt', 'tls.key', 'ca.crt'], join(folder, 'certificate'));
    mount(root, 'tokens', ['kubernetes-token', 'service-token'], join(folder, 'certificate'));
    const conf = join(folder, 'policy-service.conf');
    const files = projectFile('etc/kubernetes-files/policy-service.conf');
    writeFileSync(conf, readFileSync(files, 'utf8').replaceAll(MOUNTS, root));
    // On the address of the image, no protocol is open to everyone.
    const values = { service: { host: '0.0.0.0' } };
    const configuration = await requireConfiguration(
      { environment: {}, configFiles: [conf], values },
      SECTIONS,
    );
    expect(startProblems(configuration)).toEqual([]);

    const running = await startService(
      { environment: {}, configFiles: [conf], values: { service: { host: '127.0.0.1', port: 0 } } },
      { logger: recordingLogger() },
    );
    onTestFinished(() => running.close());

    const ask = async (path: string, spec: object) => {
      const asking = request(new URL(`${path}?timeout=5s`, running.url), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        ca: caBundle,
        servername: NAME,
        agent: false,
      });
      asking.end(JSON.stringify(creating(spec, { userInfo: { username: 'alice' } })));
      const [answer] = await once(asking, 'response');
      return (await json(answer)) as { response: unknown };
    };
    for (const { webhooks } of manifests().filter(({ kind }) => kind.endsWith('WebhookConfiguration'))) {
      const token = readFileSync(join(folder, 'certificate/kubernetes-token'), 'utf8');
      const path = webhooks[0].clientConfig.service.path.replace(/[^/]+$/, token);
      expect((await ask(path, {})).response).toMatchObject({ uid: 'u-1', allowed: true });
      const refused = await ask(path, { tolerations: [{ key: 'gpu', operator: 'Exists' }] });
      expect(refused.response).toMatchObject({ allowed: false, status: { code: 403 } });
    }
  });
});

/** Like the kubelet: links to a folder that it replaces. */
function mount(root: string, volume: string, files: string[], from: string): void {
  const current = join(root, volume, '..2026_11_21');
  mkdirSync(current, { recursive: true });
  symlinkSync('..2026_11_21', join(root, volume, '..data'));
  for (const file of files) {
    writeFileSync(join(current, file), readFileSync(join(from, file)));
    symlinkSync(join('..data', file), join(root, volume, file));
  }
}
