/** A real API server refuses a pod with the message of a rule. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Service, startService } from '../../src/server/service.ts';
import { manifests, only, RULES_MANIFEST } from '../etc/kubernetes/manifests.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { tlsFixture } from '../support/tls.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const TOKEN = '5d8c2f0a9b7e4613';
const there = peerProgram('KUBERNETES_PEER') !== undefined;

describe.skipIf(!there)('a real API server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-rules-'));
  let service: Service | undefined;
  let cluster: Cluster | undefined;

  beforeAll(async () => {
    const rules_path = join(folder, 'rules.yaml');
    const rule = `{name: cores, on: pod, allow: 'requested(pod, "cpu") <= 2.0', message: At most 2 cores.}`;
    const images = `{name: images, on: pod, allow: '!pod.containers.exists(one, one.image == "evil")', message: Not this image.}`;
    const teams = `{name: teams, on: pod, allow: 'has(pod.labels.team)', message: Name a team.}`;
    writeFileSync(rules_path, `rules:\n- ${rule}\n- ${images}\n- ${teams}\n`);
    const values = {
      enforcement: {},
      service: { port: 0, tls_cert_file: tlsFixture('server.pem'), tls_key_file: tlsFixture('server.key') },
      kubernetes: { rules_path, tokens: [TOKEN] },
    };
    const sources = { environment: {}, configFiles: [], values };
    service = await startService(sources, { logger: recordingLogger() });
    cluster = startCluster({ flags: '--feature-gates=EphemeralContainers=true' });
    const url = `https://localhost:${new URL(service.url).port}/kubernetes/admission/${TOKEN}`;
    const caBundle = readFileSync(tlsFixture('ca.pem')).toString('base64');
    await cluster?.apply([
      {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: 'rules' },
        webhooks: [
          {
            name: 'rules.example.org',
            clientConfig: { url, caBundle },
            rules: [
              { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
              ...only(manifests(RULES_MANIFEST), 'ValidatingWebhookConfiguration').webhooks[0].rules,
            ],
            ...{ failurePolicy: 'Fail', sideEffects: 'None', admissionReviewVersions: ['v1'] },
          },
        ],
      },
    ]);
  });

  afterAll(async () => {
    cluster?.stop();
    await service?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** In a process beside this one, which has to answer meanwhile. */
  const createPod = (name: string, cpu: string, dryRun = true) =>
    new Promise<string>((resolve) => {
      const resources = { requests: { cpu } };
      const pod = {
        ...{ apiVersion: 'v1', kind: 'Pod' },
        metadata: { name, namespace: 'default', labels: { team: 'a' } },
        spec: { containers: [{ name: 'main', image: 'example.org/none', resources }] },
      };
      const flags = ['create', ...(dryRun ? ['--dry-run=server'] : []), '-f', '-'];
      const child = execFile(
        'kubectl',
        ['--kubeconfig', join(cluster?.folder ?? '', 'admin.conf'), ...flags],
        (_, stdout, stderr) => resolve(stdout + stderr),
      );
      child.stdin?.end(JSON.stringify(pod));
    });

  it('refuses a pod with the message of the rule, and creates others', async () => {
    // The cache of the API server takes a moment for a new webhook.
    await vi.waitFor(async () => expect(await createPod('large', '2500m')).toContain('At most 2 cores.'), {
      timeout: 120_000,
      interval: 500,
    });
    expect(await createPod('small', '2')).toContain('pod/small created');
  });

  it('refuses what an update or an ephemeral container would make of a pod', async () => {
    const kubectl = async (...args: string[]) => {
      const answer = await cluster?.kubectl(['-n', 'default', ...args]);
      return `${answer?.stdout}${answer?.stderr}`;
    };
    await vi.waitFor(async () => expect(await createPod('kept', '1', false)).toContain('pod/kept created'), {
      timeout: 120_000,
      interval: 500,
    });
    expect(await kubectl('set', 'image', 'pod/kept', 'main=evil')).toContain('Not this image.');
    expect(await kubectl('label', 'pod', 'kept', 'team-')).toContain('Name a team.');
    expect(await kubectl('set', 'image', 'pod/kept', 'main=example.org/other')).toContain('updated');
    const path = '/api/v1/namespaces/default/pods/kept/ephemeralcontainers';
    const body = {
      ...{ apiVersion: 'v1', kind: 'EphemeralContainers', metadata: { name: 'kept', namespace: 'default' } },
      ephemeralContainers: [
        { name: 'debugger', image: 'evil', imagePullPolicy: 'Always', terminationMessagePolicy: 'File' },
      ],
    };
    const file = join(folder, 'debugger.json');
    writeFileSync(file, JSON.stringify(body));
    expect(await kubectl('replace', '--raw', path, '-f', file)).toContain(
      'Kubernetes 1.22 or newer sends it with its ephemeral containers',
    );
    expect(await kubectl('get', 'pod', 'kept', '-o', 'jsonpath={.spec.ephemeralContainers}')).toBe('');
  });
});
