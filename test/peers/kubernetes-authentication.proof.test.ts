/** How a real API server proves who it is: by a token behind the path, and by its kubeconfig for webhooks. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Service, startService } from '../../src/server/service.ts';
import { valuesOnly } from '../support/files.ts';
import { policiesForAll } from '../support/kubernetes-service.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { tlsFixture } from '../support/tls.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const TOKEN = '5d8c2f0a9b7e4613';
const FLAGS = 'EXTRA_APISERVER_FLAGS';
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
    const before = process.env[FLAGS];
    process.env[FLAGS] = `--admission-control-config-file=${join(folder, 'admission.conf')}`;
    cluster = startCluster();
    if (before === undefined) {
      delete process.env[FLAGS];
    } else {
      process.env[FLAGS] = before;
    }
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
    await cluster?.apply(Object.keys(urls).map(namespace));
    await cluster?.apply([webhooks(urls)]);
    if (cluster !== undefined) {
      // The API server reads new webhooks from a cache: until it has them, it would create every pod.
      await vi.waitFor(
        async () =>
          expect(await createPod('unreachable', '--dry-run=server')).toContain('failed calling webhook'),
        { timeout: 240_000, interval: 500 },
      );
    }
  });

  afterAll(async () => {
    cluster?.stop();
    await Promise.all(services.map((service) => service.close()));
    rmSync(folder, { recursive: true, force: true });
  });

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
        ['--kubeconfig', join(cluster?.folder ?? '', 'admin.conf'), 'create', ...flags, '-f', '-'],
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
    expect(cluster, 'the cluster has started').toBeDefined();
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
