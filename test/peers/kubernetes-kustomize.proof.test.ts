/**
 * All of etc/kubernetes and etc/kubernetes-files, as kubectl builds them, in a real cluster: certificates, tokens in paths, the address of
 * the service. There is no kubelet, so the service runs here, with the files that its pod would have.
 */
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Manifest, only, parse } from '../etc/kubernetes/manifests.ts';
import { projectFile } from '../support/files.ts';
import { skipAloud } from '../support/peers.ts';
import { type RunningCommand, watched } from '../support/run-command.ts';
import { startCluster } from './kubernetes.ts';
import { pod } from './policed-cluster.ts';
import { kubeconfigOfService } from './served-cluster.ts';

/** Endpoints of a service cannot be loopback addresses. */
const address = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
if (address === undefined) {
  skipAloud(
    'KUBERNETES_PEER',
    'this machine has no address but loopback, so no service can have endpoints here',
  );
}
/** The API server looks for the endpoints of services itself, since nothing here routes to cluster addresses. */
const started =
  address === undefined ? undefined : startCluster({ flags: '--enable-aggregator-routing=true' });
/** The tests below are skipped where there is none. */
function here() {
  if (started === undefined) {
    throw new Error('there is no cluster');
  }
  return started;
}

const SETTLED = { timeout: 120_000, interval: 200 };
const NAME = 'blazar-enforcement';
let running: RunningCommand | undefined;

async function stopService(): Promise<void> {
  running?.process.kill('SIGTERM');
  await running?.ended;
  running = undefined;
}

afterAll(async () => {
  await stopService();
  started?.stop();
});

/** A copy of etc with what certificate.sh makes, and what kubectl builds of one of its folders. */
function built(folder: string): Manifest[] {
  const etc = join(here().folder, 'etc');
  cpSync(projectFile('etc'), etc, { recursive: true });
  for (const name of ['policies.yaml', 'roles.yaml']) {
    // As etc/kubernetes-files/kustomization.yaml says.
    copyFileSync(join(etc, 'kubernetes', name), join(etc, 'kubernetes-files', name));
  }
  const certificate = spawnSync('sh', [join(etc, 'kubernetes/certificate.sh')], { encoding: 'utf8' });
  expect(certificate.status, certificate.stderr).toBe(0);
  const { stdout, stderr } = spawnSync('kubectl', ['kustomize', join(etc, folder)], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return parse(stdout);
}

/** What 1.20 knows by other names, or adds less of than newer versions. */
function for120(object: Manifest): Manifest {
  const metadata = { ...object.metadata };
  if (object.kind === 'Namespace') {
    metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name };
  }
  const apiVersion = object.kind === 'PodDisruptionBudget' ? 'policy/v1beta1' : object.apiVersion;
  return { ...object, apiVersion, metadata };
}

/** Runs the service with the files of its volumes, and makes it the endpoint of the Service. */
async function serve(objects: readonly Manifest[], folder: string, kubeconfig?: string): Promise<void> {
  const root = join(here().folder, `pod-${folder}`);
  const volumes = only(objects, 'Deployment').spec.template.spec.volumes as Manifest[];
  const [container] = only(objects, 'Deployment').spec.template.spec.containers as Manifest[];
  for (const { name, mountPath } of container.volumeMounts as Manifest[]) {
    const volume = volumes.find((one) => one.name === name);
    const wanted = volume?.configMap?.name ?? volume?.secret?.secretName;
    const object = objects.find(
      ({ kind, metadata }) => /ConfigMap|Secret/.test(kind) && metadata.name === wanted,
    );
    if (object === undefined) {
      continue;
    }
    mkdirSync(join(root, mountPath), { recursive: true, mode: 0o700 });
    for (const [file, data] of Object.entries(object.data as Record<string, string>)) {
      const content = object.kind === 'Secret' ? Buffer.from(data, 'base64').toString() : data;
      writeFileSync(join(root, mountPath, file), content, { mode: 0o600 });
    }
  }
  const file = join(root, '/etc/blazar-enforcement/configuration/policy-service.conf');
  const conf = readFileSync(file, 'utf8').replaceAll(
    '/etc/blazar-enforcement',
    join(root, '/etc/blazar-enforcement'),
  );
  writeFileSync(file, kubeconfig === undefined ? conf : `${conf}\nkubeconfig = ${kubeconfig}\n`);
  const args = [projectFile('dist/src/cli/main.js'), 'serve', '--config-file', file];
  const environment = { OS_SERVICE__HOST: '0.0.0.0', OS_SERVICE__PORT: '0', PATH: process.env.PATH };
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
  running = watched(child);
  const [, port] = await running.printed(/Listening on https:\S+?:(\d+)/);
  const subset = { addresses: [{ ip: address }], ports: [{ name: 'https', port: Number(port) }] };
  const metadata = { name: NAME, namespace: NAME };
  await here().apply([{ apiVersion: 'v1', kind: 'Endpoints', metadata, subsets: [subset] }]);
}

let number = 0;
async function said(spec: object = {}, namespace = 'shop'): Promise<string> {
  number += 1;
  const stdin = JSON.stringify(pod(namespace, `pod-${number}`, spec));
  const { stderr } = await here().kubectl(['create', '--validate=false', '-f', '-'], { stdin });
  return stderr.replace(/^Warning:.*\n/gm, '');
}

describe.skipIf(started === undefined).each([
  { folder: 'kubernetes', source: 'the cluster' },
  { folder: 'kubernetes-files', source: 'files' },
])('etc/$folder in a real cluster', ({ folder }) => {
  let objects: Manifest[] = [];
  const asksCluster = folder === 'kubernetes';

  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    const { apply, kubectl } = started;
    await stopService();
    const webhooks = 'mutatingwebhookconfiguration,validatingwebhookconfiguration';
    await kubectl(['delete', webhooks, NAME, '--ignore-not-found']);
    // Files need no rights: neither may any be left.
    await kubectl(['delete', 'clusterrole,clusterrolebinding', NAME, '--ignore-not-found']);
    objects = built(folder);
    const of = (kinds: RegExp) => objects.filter(({ kind }) => kinds.test(kind)).map(for120);
    await apply(of(/^(CustomResourceDefinition|Namespace)$/));
    await apply(
      ['shop', 'kube-system'].map((name) =>
        for120({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
      ),
    );
    await vi.waitUntil(async () => (await kubectl(['get', 'schedpol'])).status === 0, SETTLED);
    // In the order of kubectl, which applies webhooks last.
    await apply(of(/^(?!CustomResourceDefinition|Namespace|.*WebhookConfiguration)/));
    await serve(objects, folder, asksCluster ? await kubeconfigOfService(started) : undefined);
    await apply(of(/WebhookConfiguration$/));
    await vi.waitUntil(async () => (await said({ nodeName: 'n1' })).includes('nodeName: '), SETTLED);
  });

  it('everything is there, and can be applied again', async () => {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects.map(for120) });
    const apply = ['apply', '--validate=false', '-f', '-'];
    const { stdout, stderr, status } = await here().kubectl(apply, { stdin });
    expect(status, stderr).toBe(0);
    const lines = stdout.trim().split('\n');
    expect(lines).toHaveLength(objects.length);
    // 1.20 drops fields that came later, so that some objects look different each time; none was missing.
    expect(lines.filter((line) => / created$/.test(line))).toEqual([]);
  });

  it('judges by its certificate, its token and its policies', async () => {
    await vi.waitUntil(async () => (await said()) === '', SETTLED);
    expect(await said({ nodeSelector: { disk: 'ssd' } })).toMatch(/denied the request.*nodeSelector disk: /);
    expect(await said({ tolerations: [{ operator: 'Exists' }] })).toMatch(/denied the request.*tolerations/);
    expect(await said({ schedulerName: 'own' })).toMatch(/denied the request.*schedulerName: /);
    // The webhooks do not look there.
    expect(await said({ tolerations: [{ operator: 'Exists' }] }, 'kube-system')).toBe('');
    const wrong = JSON.stringify(
      parse(readFileSync(projectFile('etc/kubernetes/policies.yaml'), 'utf8'))[0],
    ).replace('schedulerNames', 'schedulerName');
    const refused = await here().kubectl(['apply', '--validate=false', '-f', '-'], { stdin: wrong });
    expect(refused.stderr).toMatch(/denied the request.*schedulerName/);
  });

  it.skipIf(folder !== 'kubernetes')(
    'policies say that API servers would not ask about all pods',
    async () => {
      const { get, kubectl } = here();
      const enforced = async () => {
        const { status } = (await get('get', 'schedpol', 'restricted')) as Manifest;
        const { reason, message } = status.conditions.find(({ type }: Manifest) => type === 'Enforced');
        return `${reason}: ${message}`;
      };
      await expect.poll(enforced, SETTLED).toContain('Enforced: ');
      const where = ['validatingwebhookconfiguration', NAME];
      const patched = async (path: string, value: unknown) => {
        const patch = JSON.stringify([{ op: 'replace', path: `/webhooks/0/${path}`, value }]);
        expect(await kubectl(['patch', ...where, '--type=json', '-p', patch])).toMatchObject({ status: 0 });
      };
      await patched('failurePolicy', 'Ignore');
      await expect
        .poll(enforced, SETTLED)
        .toMatch(/^NotAsked: .*: validation\S+: failurePolicy is "Ignore"$/);
      await patched('failurePolicy', 'Fail');
      await patched('namespaceSelector/matchExpressions/0/values', [NAME, 'kube-system', 'shop']);
      await expect.poll(enforced, SETTLED).toMatch(/^NotAsked: .*namespaceSelector is .*"shop"/);
      await kubectl(['delete', ...where]);
      await expect
        .poll(enforced, SETTLED)
        .toContain('ValidatingWebhookConfiguration blazar-enforcement is missing');
    },
  );

  it('pods of the Deployment are created while the service is away, and no others', async () => {
    await stopService();
    const { kubectl } = here();
    await vi.waitUntil(async () => (await said()) !== '', SETTLED);
    expect(await said({ nodeSelector: { disk: 'ssd' } })).toMatch(/failed calling webhook/);
    await kubectl(['-n', NAME, 'delete', 'pods', '--all', '--grace-period=0', '--force']);
    const pods = async () => (await kubectl(['-n', NAME, 'get', 'pods', '-o', 'name'])).stdout;
    await expect.poll(pods, SETTLED).toMatch(/^pod\//);
  });
});
