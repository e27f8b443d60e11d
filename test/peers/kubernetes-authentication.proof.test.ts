/**
 * How a real API server proves who it is: by a token behind the path, and by its kubeconfig for webhooks. And how a service logs in there with
 * the credential plugin of a kubeconfig: with a client certificate, and with a token that is revoked.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { valuesOnly } from '../support/files.ts';
import { policiesForAll } from '../support/kubernetes-service.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { tlsFixture } from '../support/tls.ts';
import { accountSubject, binding, serviceAccount } from './cluster-objects.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const TOKEN = '5d8c2f0a9b7e4613';
const VERSION = 'client.authentication.k8s.io/v1beta1';
const NAMESPACES = { method: 'GET', path: '/api/v1/namespaces/default' } as const;
const there = peerProgram('KUBERNETES_PEER') !== undefined;
const base64 = (name: string) => readFileSync(tlsFixture(name)).toString('base64');

/** Where a service is asked: by its own ways, and by wrong ones. */
const WAYS = ['path', 'bearer', 'certificate'] as const;

describe.skipIf(!there)('a real API server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-doors-'));
  const services: Service[] = [];
  let cluster: Cluster | undefined;

  const start = async (kubernetes: object): Promise<string> => {
    const policies = join(folder, 'policies.yaml');
    writeFileSync(policies, policiesForAll({ everything: { allowed: { schedulerNames: [] } } }));
    const values = {
      enforcement: {},
      service: { port: 0, tls_cert_file: tlsFixture('server.pem'), tls_key_file: tlsFixture('server.key') },
      kubernetes: { scheduling_policies: [policies], ...kubernetes },
    };
    const service = await startService(valuesOnly(values), { logger: recordingLogger() });
    services.push(service);
    return `localhost:${new URL(service.url).port}`;
  };

  beforeAll(async () => {
    const authority = { client_ca_file: tlsFixture('ca.pem') };
    const hosts = {
      path: await start({ tokens: [TOKEN] }),
      bearer: await start({ tokens: [TOKEN] }),
      certificate: await start(authority),
    };
    const certificate = {
      'client-certificate-data': base64('client.pem'),
      'client-key-data': base64('client.key'),
    };
    writeFileSync(
      join(folder, 'webhooks.conf'),
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        users: [
          { name: hosts.bearer, user: { token: TOKEN } },
          { name: hosts.certificate, user: certificate },
        ],
      }),
    );
    const configuration = {
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'WebhookAdmissionConfiguration',
      kubeConfigFile: join(folder, 'webhooks.conf'),
    };
    writeFileSync(
      join(folder, 'admission.conf'),
      JSON.stringify({
        apiVersion: 'apiserver.config.k8s.io/v1',
        kind: 'AdmissionConfiguration',
        plugins: ['MutatingAdmissionWebhook', 'ValidatingAdmissionWebhook'].map((name) => ({
          name,
          configuration,
        })),
      }),
    );
    cluster = startCluster({ flags: `--admission-control-config-file=${join(folder, 'admission.conf')}` });
    const urls = {
      path: `https://${hosts.path}/kubernetes/admission/${TOKEN}`,
      bearer: `https://${hosts.bearer}/kubernetes/admission`,
      certificate: `https://${hosts.certificate}/kubernetes/admission`,
      unreachable: `https://localhost:1/kubernetes/admission/${TOKEN}`,
      'wrong-path': `https://${hosts.path}/kubernetes/admission/${TOKEN.slice(1)}`,
      'no-proof': `https://${hosts.path}/kubernetes/admission`,
      // Another name for the same place, which the kubeconfig does not know.
      'no-certificate': `https://127.0.0.1:${hosts.certificate.split(':')[1]}/kubernetes/admission`,
    };
    await here().apply(Object.keys(urls).map(namespace));
    await here().apply([webhooks(urls)]);
    // The API server reads new webhooks from a cache: until it has them, it would create every pod.
    await vi.waitFor(
      async () =>
        expect(await createPod('unreachable', '--dry-run=server')).toContain('failed calling webhook'),
      { timeout: 240_000, interval: 500 },
    );
  });

  afterAll(async () => {
    cluster?.stop();
    await Promise.all(services.map((service) => service.close()));
    rmSync(folder, { recursive: true, force: true });
  });

  const here = (): Cluster => {
    if (cluster === undefined) {
      throw new Error('the cluster does not start');
    }
    return cluster;
  };

  /** In a process beside this one, which has to answer meanwhile. */
  const createPod = (name: string, ...flags: string[]) =>
    new Promise<string>((resolve) => {
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web', namespace: name },
        spec: { containers: [{ name: 'main', image: 'example.org/none' }] },
      };
      const child = execFile(
        'kubectl',
        ['--kubeconfig', join(here().folder, 'admin.conf'), 'create', ...flags, '-f', '-'],
        (_, stdout, stderr) => resolve(stdout + stderr),
      );
      child.stdin?.end(JSON.stringify(pod));
    });
  const created = (name: string) =>
    vi.waitFor(
      async () => {
        const said = await createPod(name);
        // The cache of the API server and the controllers take a moment after the namespace.
        expect(said).not.toMatch(
          /namespaces "[^"]+" not found|serviceaccount "default" not found|error looking up service account|API token found/i,
        );
        return said;
      },
      { timeout: 240_000, interval: 500 },
    );

  it.for(WAYS)('is authenticated by its %s', async (way) => {
    expect(await created(way)).toBe('pod/web created\n');
  });

  it('shows the token in the path to users who create a pod while the service is down: docs/kubernetes.md', async () => {
    expect(await created('unreachable')).toContain(`/kubernetes/admission/${TOKEN}`);
  });

  it.for(['wrong-path', 'no-proof', 'no-certificate'])(
    'is refused with %s, and so is the pod',
    async (name) => {
      const said = await created(name);
      expect(said).toMatch(/failed calling webhook|Internal error occurred/);
      expect(said).toMatch(/Unauthorized|asked for the client to provide credentials|401/);
    },
  );

  describe('asked with a credential plugin', () => {
    /** A client whose plugin prints what a file beside it holds. */
    function loggedInBy(name: string, status: object) {
      const credential = join(here().folder, `${name}.json`);
      const print = (given: object) =>
        writeFileSync(
          credential,
          JSON.stringify({ kind: 'ExecCredential', apiVersion: VERSION, status: given }),
        );
      print(status);
      const program = join(here().folder, name);
      writeFileSync(program, `#!/bin/sh\necho run >>'${program}.runs'\nexec cat '${credential}'\n`);
      chmodSync(program, 0o755);
      const kubeconfig = join(here().folder, `${name}.conf`);
      const text = readFileSync(join(here().folder, 'admin.conf'), 'utf8');
      const exec = `exec: {apiVersion: ${VERSION}, command: ./${name}, provideClusterInfo: true}`;
      writeFileSync(kubeconfig, text.replace(/user: \{client.*\}\}\]/, `user: {${exec}}}]`));
      const client = createApiClient({ kubeconfig });
      onTestFinished(() => client.close());
      return { client, print, runs: () => readFileSync(`${program}.runs`, 'utf8').split('\n').length - 1 };
    }

    async function tokenOf(name: string): Promise<string> {
      const admin = createApiClient({ kubeconfig: join(here().folder, 'admin.conf') });
      onTestFinished(() => admin.close());
      const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`;
      const made = await admin.request({ method: 'POST', path, body: { spec: {} } });
      return (made as { readonly status: { readonly token: string } }).status.token;
    }

    it('logs in with a client certificate', async () => {
      const [clientCertificateData, clientKeyData] = ['crt', 'key'].map((ending) =>
        readFileSync(join(here().folder, `admin.${ending}`), 'utf8'),
      );
      const { client, runs } = loggedInBy('certificate', { clientCertificateData, clientKeyData });
      for (let call = 0; call < 3; call += 1) {
        expect(await client.request(NAMESPACES)).toMatchObject({ kind: 'Namespace' });
      }
      expect(runs()).toBe(1);
    });

    it('logs in again when its account, and so its token, is gone', async () => {
      const account = serviceAccount('reader', 'default');
      await here().apply([account, binding('reader', 'view', [accountSubject('reader', 'default')])]);
      const { client, print, runs } = loggedInBy('token', { token: await tokenOf('reader') });
      // The API server learns of a new binding a moment after it has been made.
      await expect
        .poll(() => client.request(NAMESPACES).then(() => 'read', String), { timeout: 120_000 })
        .toBe('read');
      await here().kubectl(['delete', 'serviceaccount', 'reader']);
      await here().apply([account]);
      const fresh = { token: await tokenOf('reader') };
      // The API server learns of the new account a moment after it has been made.
      const probe = loggedInBy('probe', fresh);
      await expect
        .poll(() => probe.client.request(NAMESPACES).then(() => 'read', String), { timeout: 120_000 })
        .toBe('read');
      print(fresh);
      // The API server keeps what it has found out about a token for some seconds.
      await expect
        .poll(async () => [await client.request(NAMESPACES).then(() => 'read', String), runs()], {
          timeout: 120_000,
        })
        .toEqual(['read', 2]);
    });
  });
});

function namespace(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { name } } };
}

function webhooks(urls: Readonly<Record<string, string>>): object {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'doors' },
    webhooks: Object.entries(urls).map(([name, url]) => ({
      name: `${name}.doors.example.org`,
      clientConfig: { url, caBundle: base64('ca.pem') },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { name } },
      failurePolicy: 'Fail',
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      timeoutSeconds: 30,
    })),
  };
}
