/** The chart in a real cluster: its objects, exactly its rights, and certificates that change while API servers call. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { CertificateKeeper } from '../../src/kubernetes/cluster/certificates/certificate-keeper.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { CHART, namesOf, RELEASES, type Release, rendered } from '../etc/helm/chart.ts';
import { type Manifest, only, parse } from '../etc/kubernetes/manifests.ts';
import { rbacTable } from '../etc/kubernetes/rbac-table.ts';
import { recordingLogger } from '../support/logger.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { kubeconfigOfAccount } from './service-account.ts';

const { cluster, here, closing } = clusterOfFile();

const SETTLED = { timeout: 120_000, interval: 200 };
const [release] = RELEASES as [Release];
const { namespace } = release;
const { own, cluster: clusterName } = namesOf(release);
const objects = rendered(release);
const ACCOUNT = `system:serviceaccount:${namespace}:${own}`;
/** The API server calls the services here by this name. */
const HOST = 'localhost';
/** A certificate lives for 75 s: another is due after 50, and there is time left for a busy API server to hear of it. */
const TIMING = { lifeMs: 75_000, intervalMs: 500, settleMs: 6000 };

interface Replica {
  readonly folder: string;
  readonly keeper: CertificateKeeper;
  readonly service: Service;
}
const replicas: Replica[] = [];
const logger = recordingLogger();

const of = (...kinds: string[]) => objects.filter(({ kind }) => kinds.includes(kind));
const secretName = `${own}-certificate`;
const pod = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop' },
  spec: { containers: [{ name: 'c', image: 'x' }], ...spec },
});
const create = async (object: object, ...args: string[]) =>
  (
    await here().kubectl(['create', '--validate=false', ...args, '-f', '-'], {
      stdin: JSON.stringify(object),
    })
  ).stderr;

const { kubernetes: options } = {
  kubernetes: only(objects, 'ConfigMap').data['policy-service.conf'] as string,
};

async function startReplica(kubeconfig: string, name: string): Promise<Replica> {
  const folder = join(here().folder, name);
  mkdirSync(folder);
  const client = createApiClient({ kubeconfig });
  const keeper = new CertificateKeeper(
    client,
    {
      ...TIMING,
      secret: secretName,
      folder: join(folder, 'own'),
      names: [HOST],
      webhookConfigurations: [clusterName],
    },
    logger,
  );
  await keeper.prepare();
  const file = join(folder, 'own', 'server.pem');
  const [, token = ''] =
    /\/admission\/(\S+)/
      .exec(JSON.stringify(objects.map(({ webhooks }) => webhooks)))?.[0]
      ?.split(/admission\/|"/) ?? [];
  const service = await startService(
    {
      environment: {},
      configFiles: [],
      values: {
        service: { host: '127.0.0.1', port: 0, tls_cert_file: file, tls_key_file: file },
        kubernetes: { source: 'cluster', kubeconfig, tokens: [token] },
      },
    },
    { logger: recordingLogger(), pollMs: 50 },
  );
  keeper.start();
  closing.push(async () => {
    await service.close();
    await keeper.close();
    await client.close();
  });
  return { folder, keeper, service };
}

const bundles = async (): Promise<string[]> => {
  const kinds = ['mutatingwebhookconfiguration', 'validatingwebhookconfiguration'];
  const read = await Promise.all(kinds.map((kind) => here().get('get', kind, clusterName)));
  return (read as Manifest[]).flatMap(({ webhooks }) =>
    webhooks.map(({ clientConfig }: Manifest) =>
      Buffer.from(clientConfig.caBundle ?? '', 'base64').toString(),
    ),
  );
};

describe.skipIf(cluster === undefined)('the chart in a real cluster', () => {
  beforeAll(async () => {
    if (cluster === undefined) {
      return;
    }
    const { apply } = cluster;
    await apply([
      ...['shop', namespace].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
      ...parse(readFileSync(join(CHART, 'crds/custom-resource-definition.yaml'), 'utf8')),
    ]);
    await vi.waitUntil(async () => (await cluster.kubectl(['get', 'schedpol'])).status === 0, SETTLED);
    await apply(of('SchedulingPolicy'));
    // 1.20 has no policy/v1.
    await apply(of('PodDisruptionBudget').map((one) => ({ ...one, apiVersion: 'policy/v1beta1' })));
    await apply(objects.filter(({ kind }) => !/Policy$|Budget|Webhook/.test(kind)));
    await cluster.kubectl(['-n', namespace, 'scale', 'deployment', own, '--replicas=0']);
    const kubeconfig = await kubeconfigOfAccount(cluster, namespace, own);
    // Before there are webhooks: as when a chart is installed.
    for (const name of ['a', 'b']) {
      replicas.push(await startReplica(kubeconfig, name));
    }
    const url = (kind: string) => replicas[kind.startsWith('Mutating') ? 0 : 1]?.service.url ?? '';
    await apply(
      of('MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration').map((configuration) => ({
        ...configuration,
        webhooks: configuration.webhooks.map(({ clientConfig, ...webhook }: Manifest) => ({
          ...webhook,
          // 1.20 gives namespaces no label of their name; only this namespace has pods here.
          namespaceSelector: undefined,
          clientConfig: {
            url: new URL(clientConfig.service.path, url(configuration.kind)).href.replace('127.0.0.1', HOST),
          },
        })),
      })),
    );
    await vi.waitUntil(async () => (await create(pod('first'))) === '', SETTLED);
  });

  it.each(rbacTable().flatMap(({ rights }) => rights))(
    'the service account may $verb $resource ($where)',
    async ({ where, group, resource, named, verb }) => {
      const [kind = '', subresource] = resource.split('/');
      const name =
        group === '' && resource === 'secrets' ? secretName : where === 'cluster' ? clusterName : own;
      const target = `${kind}${group && `.${group}`}${named ? `/${name}` : ''}`;
      const ask = (...more: string[]) =>
        here().kubectl([
          'auth',
          'can-i',
          verb,
          ...more,
          '--as',
          ACCOUNT,
          ...(subresource ? [`--subresource=${subresource}`] : []),
        ]);
      const inNamespace = ['-n', where === 'cluster' ? 'shop' : namespace];
      expect((await ask(target, ...inNamespace)).stdout.trim()).toBe('yes');
      if (named) {
        const other = `${kind}${group && `.${group}`}/another`;
        expect((await ask(other, ...inNamespace)).stdout.trim()).toBe('no');
      }
      if (where === 'own namespace') {
        expect((await ask(target, '-n', 'shop')).stdout.trim()).toBe('no');
      }
    },
  );

  it.each([
    ['list', 'secrets'],
    ['create', 'secrets'],
    ['delete', `secrets/${secretName}`],
    ['get', 'pods'],
    ['create', 'pods'],
    ['update', 'schedulingpolicies.scheduling.blazar-enforcement'],
    ['patch', 'schedulingpolicies.scheduling.blazar-enforcement'],
    ['use', 'schedulingpolicies.scheduling.blazar-enforcement/privileged'],
    ['create', 'clusterrolebindings.rbac.authorization.k8s.io'],
    ['escalate', 'clusterroles.rbac.authorization.k8s.io'],
    ['impersonate', 'serviceaccounts'],
    ['delete', `validatingwebhookconfigurations.admissionregistration.k8s.io/${clusterName}`],
    ['create', 'mutatingwebhookconfigurations.admissionregistration.k8s.io'],
    ['*', '*'],
  ])('the service account may not %s %s', async (verb, target) => {
    for (const where of ['shop', namespace]) {
      const { stdout } = await here().kubectl(['auth', 'can-i', verb, target, '--as', ACCOUNT, '-n', where]);
      expect(stdout.trim()).toBe('no');
    }
  });

  it('policies of the cluster decide, by these rights', async () => {
    expect(await create(pod('tolerant', { nodeName: 'n1' }))).toContain('nodeName: ');
    expect(await create(pod('plain'))).toBe('');
    const condition = async () =>
      ((await here().get('get', 'schedpol', 'restricted')) as Manifest).status?.conditions?.map(
        ({ type, status }: Manifest) => `${type} ${status}`,
      ) ?? [];
    await expect.poll(condition, SETTLED).toContain('Accepted True');
    expect(options).toContain('source = cluster');
  });

  it('certificates change, and no call of the API server fails', async () => {
    const secret = async () => (await here().get('-n', namespace, 'get', 'secret', secretName)) as Manifest;
    const serving = new Set<string>();
    const answers: string[] = [];
    const end = Date.now() + 900_000;
    for (let count = 0; (serving.size < 3 || answers.length <= 50) && Date.now() < end; count += 1) {
      const [good, bad] = await Promise.all([
        create(pod(`good-${count}`), '--dry-run=server'),
        create(pod(`bad-${count}`, { nodeName: 'n1' }), '--dry-run=server'),
      ]);
      answers.push(good.replaceAll(/^Warning:.*\n/gm, ''));
      expect(bad).toContain('nodeName: ');
      serving.add((await secret()).data['tls.crt']);
    }
    expect(answers.filter((answer) => answer !== '')).toEqual([]);
    expect(answers.length).toBeGreaterThan(50);
    console.info(`${answers.length * 2} pods, ${serving.size} certificates`);
    expect(serving.size).toBeGreaterThanOrEqual(3);
    for (const bundle of await bundles()) {
      expect(bundle.match(/BEGIN CERTIFICATE/g)?.length).toBeLessThanOrEqual(3);
    }
    expect(JSON.stringify(logger.lines)).not.toContain('PRIVATE KEY');
  });
});
