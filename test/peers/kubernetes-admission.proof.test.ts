/** What etc/kubernetes does in a real cluster: applied as it is, but for the address of the service, which runs here. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { startService } from '../../src/server/service.ts';
import { FOLDER, type Manifest, manifests } from '../etc/kubernetes/manifests.ts';
import { recordingLogger } from '../support/logger.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { POLICY_MISTAKES } from './policy-mistakes.ts';

const { cluster, here, closing } = clusterOfFile();

const POLICIES = ['policies.yaml', 'roles.yaml'].map((name) => join(FOLDER, name));
const SETTLED = { timeout: 120_000, interval: 300 };
const CONTAINERS = [{ name: 'c', image: 'x' }];
const GPU = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }],
    },
  },
};

const pod = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop', ...metadata },
  spec: { containers: CONTAINERS, ...spec },
});
const workload = (kind: string, name: string, spec: object = {}) => ({
  apiVersion: kind === 'Job' ? 'batch/v1' : 'apps/v1',
  kind,
  metadata: { name, namespace: 'shop' },
  spec: {
    ...(kind !== 'Job' && { selector: { matchLabels: { a: name } } }),
    template: {
      metadata: { labels: { a: name } },
      spec: { containers: CONTAINERS, ...(kind === 'Job' && { restartPolicy: 'Never' }), ...spec },
    },
  },
});
const policy = (spec: unknown) => ({
  apiVersion: 'scheduling.blazar-enforcement/v1alpha1',
  kind: 'SchedulingPolicy',
  metadata: { name: 'tried' },
  spec,
});

async function create(object: object, as?: string): Promise<string> {
  const options = { stdin: JSON.stringify(object), ...(as !== undefined && { as }) };
  return (await here().kubectl(['create', '--validate=false', '-f', '-'], options)).stderr.replace(
    /^Warning:.*\n/gm,
    '',
  );
}

const podsOf = async (name: string): Promise<Manifest[]> =>
  ((await here().get('-n', 'shop', 'get', 'pods', '-l', `a=${name}`)) as Manifest).items;

describe.skipIf(cluster === undefined)('etc/kubernetes in a real cluster', () => {
  beforeAll(async () => {
    if (cluster === undefined) {
      return;
    }
    const file = (name: string) => join(cluster.folder, name);
    const service = await startService(
      {
        environment: {},
        configFiles: [],
        values: {
          // The certificate of the API server is for 127.0.0.1 too.
          service: {
            host: '127.0.0.1',
            port: 0,
            tls_cert_file: file('api.crt'),
            tls_key_file: file('api.key'),
          },
          // What stands in the paths, before kustomization.yaml puts a token of its own there.
          kubernetes: {
            scheduling_policies: POLICIES,
            default_priority_class: 'everybody',
            tokens: ['token-put-by-kustomize'],
          },
        },
      },
      { logger: recordingLogger() },
    );
    const { url } = service;
    closing.push(() => service.close());
    const caBundle = readFileSync(file('ca.crt')).toString('base64');
    const all = manifests().map((manifest) =>
      !manifest.kind.endsWith('WebhookConfiguration')
        ? manifest
        : {
            ...manifest,
            webhooks: manifest.webhooks.map(({ clientConfig, matchConditions, ...webhook }: Manifest) => ({
              ...webhook,
              // 1.20 knows no `matchConditions`: it drops them.
              ...(matchConditions && { matchConditions }),
              clientConfig: { caBundle, url: new URL(clientConfig.service.path, url).href },
            })),
          },
    );
    const { apply } = cluster;
    const of = (...kinds: string[]) => all.filter(({ kind }) => kinds.includes(kind));
    await apply(of('CustomResourceDefinition', 'Namespace'));
    await vi.waitUntil(async () => (await cluster.kubectl(['get', 'schedpol'])).status === 0, SETTLED);
    // 1.20 has no policy/v1: the version before has the same fields but the newest.
    await apply(of('PodDisruptionBudget').map((one) => ({ ...one, apiVersion: 'policy/v1beta1' })));
    await apply(all.filter(({ kind }) => !/Definition|Namespace|Budget|Webhook/.test(kind)));
    await apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { gpu: 'true' } } },
      {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name: 'everybody' },
        globalDefault: true,
        value: 7,
      },
    ]);
    await cluster.kubectl(['taint', 'nodes', 'n1', 'node.kubernetes.io/not-ready:NoSchedule-']);
    await apply(all.filter(({ kind }) => kind.includes('Webhook')));
    // The API server takes a moment to know them.
    await vi.waitUntil(
      async () => (await create(pod('early', { nodeName: 'n1' }))).includes('denied'),
      SETTLED,
    );
    await vi.waitUntil(async () => (await create(policy({ odd: 1 }))).includes('denied'), SETTLED);
    await vi.waitUntil(async () => (await create(pod('first'))) === '', SETTLED);
  });

  it('a plain pod runs, with the priority class of the cluster', async () => {
    expect(await create(pod('plain'))).toBe('');
    const { spec } = (await here().get('-n', 'shop', 'get', 'pod', 'plain')) as Manifest;
    expect(spec).toMatchObject({ schedulerName: 'default-scheduler', priorityClassName: 'everybody' });
  });

  it.each([
    ['a node', { nodeName: 'n1' }, 'nodeName: '],
    [
      'a toleration of DaemonSets',
      {
        tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' }],
      },
      'tolerations[0]: ',
    ],
    ['an affinity', { affinity: GPU }, 'affinity.nodeAffinity'],
  ])('a pod with %s is refused', async (_, spec, reason) => {
    expect(await create(pod('refused', spec))).toContain(reason);
  });

  it('a DaemonSet is refused for its template, and one that fits has its pods', async () => {
    expect(await create(workload('DaemonSet', 'gpus', { affinity: GPU }))).toContain(
      'the pod template of the DaemonSet does not fit the scheduling policies of system:serviceaccount:shop:default: affinity.nodeAffinity',
    );
    expect(await create(workload('DaemonSet', 'agents'))).toBe('');
    await expect.poll(async () => (await podsOf('agents')).length, SETTLED).toBe(1);
    const patch = JSON.stringify({ spec: { template: { spec: { affinity: GPU } } } });
    expect((await here().kubectl(['-n', 'shop', 'patch', 'ds', 'agents', '-p', patch])).stderr).toContain(
      'denied',
    );
    const label = await here().kubectl(['-n', 'shop', 'label', 'ds', 'agents', 'x=y']);
    expect(label.status).toBe(0);
    // Whoever updates a pod of it may leave on it what the controller has put there.
    const name = (await podsOf('agents'))[0].metadata.name;
    const add = async (key: string) => {
      const { spec } = (await here().get('-n', 'shop', 'get', 'pod', name)) as Manifest;
      const tolerations = [...spec.tolerations, { key, operator: 'Exists', effect: 'NoExecute' }];
      return here().kubectl([
        '-n',
        'shop',
        'patch',
        'pod',
        name,
        '-p',
        JSON.stringify({ spec: { tolerations } }),
      ]);
    };
    const index = (await podsOf('agents'))[0].spec.tolerations.length;
    expect((await add('own')).stderr).toMatch(
      new RegExp(`scheduling policies of \\S+: tolerations\\[${index}\\]: [^;]*$`),
    );
  });

  it.each(['Deployment', 'Job'])('a %s is let in, and its pods are refused that do not fit', async (kind) => {
    const name = kind.toLowerCase();
    expect(await create(workload(kind, name, { affinity: GPU }))).toBe('');
    const events = async () => JSON.stringify(await here().get('-n', 'shop', 'get', 'events'));
    await expect.poll(events, SETTLED).toMatch(new RegExp(`${name}.*does not fit the scheduling policies`));
    expect(await podsOf(name)).toEqual([]);
    expect(await create(workload(kind, `good-${name}`))).toBe('');
    await expect.poll(async () => (await podsOf(`good-${name}`)).length, SETTLED).toBe(1);
  });

  it.each(['bindings', 'pods/plain/binding'])('nobody binds a pod past the scheduler: %s', async (path) => {
    const target = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'plain', namespace: 'shop' },
      target,
    };
    const bind = (as?: string) =>
      here().kubectl(['create', '--raw', `/api/v1/namespaces/shop/${path}`, '-f', '-'], {
        stdin: JSON.stringify(binding),
        ...(as !== undefined && { as }),
      });
    expect((await bind()).stderr).toContain(
      'the binding does not fit the scheduling policies of admin: nodeName: ',
    );
    if (path !== 'bindings') {
      expect((await bind(here().user('system:kube-scheduler', 'system:authenticated'))).status).toBe(0);
    }
  });

  it('a kubelet reports its static pods in any namespace, and nobody else can', async () => {
    const metadata = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
    const spec = { nodeName: 'n1', tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] };
    expect(await create(pod('static-other', spec, metadata))).toContain('denied');
    expect(
      await create(pod('static-n1', spec, metadata), here().user('system:node:n1', 'system:nodes')),
    ).toBe('');
  });

  it('a policy with a typo is rejected, and no field is dropped', async () => {
    expect(await create(policy({ required: { nodeSelector: { disk: ['ssd'] } } }))).toContain(
      'spec.required.nodeSelector: unknown field; the nearest right name is "nodeSelectors"',
    );
    expect(await create({ ...policy({}), required: {} })).toContain(
      'required: unknown field; it belongs under spec',
    );
    expect(await create({ ...policy({}), Kind: 'SchedulingPolicy' })).toContain(
      'Kind: expected nothing, because kind is set too',
    );
    const good = { required: { nodeSelectors: { disk: ['ssd'] }, tolerations: [{ keys: ['gpu'] }] } };
    expect(await create(policy(good))).toBe('');
    expect(await here().get('get', 'schedpol', 'tried')).toMatchObject({ spec: good });
    const { stdout } = await here().kubectl(['get', 'scheduling']);
    expect(stdout).toMatch(
      /^NAME +ACCEPTED +ENFORCED +REQUIRED SCHEDULERS +ALLOWED SCHEDULERS +DEFAULT SCHEDULER +AGE\n/,
    );
  });

  it.each(POLICY_MISTAKES)('a policy with a mistake is refused in plain words: %s', async (words, spec) => {
    const said = await create(policy(spec));
    expect(said).toContain('denied the request: the scheduling policy is invalid: ');
    expect(said).toContain(words);
  });

  it('a policy that was invalid before the webhooks loses its finalizers, and stays as it is', async () => {
    const { kubectl } = here();
    const old = { ...policy({ allow: {} }), metadata: { name: 'old', finalizers: ['example.org/x'] } };
    const both = 'validatingwebhookconfiguration,mutatingwebhookconfiguration';
    const { items: kept } = (await here().get('get', both)) as Manifest;
    await kubectl(['delete', both, 'blazar-enforcement']);
    await vi.waitUntil(async () => (await create(old)) === '', SETTLED);
    await here().apply(
      kept.map(({ metadata: { name }, ...one }: Manifest) => ({ ...one, metadata: { name } })),
    );
    await vi.waitUntil(async () => (await create(policy({ odd: 1 }))).includes('denied'), SETTLED);
    const patch = (change: object) =>
      kubectl(['patch', 'schedpol', 'old', '--type', 'merge', '-p', JSON.stringify(change)]);
    expect((await patch({ spec: { permitted: {} } })).stderr).toContain('spec.permitted: unknown field');
    expect((await patch({ metadata: { labels: { a: 'b' } } })).stderr).toMatch(
      /^Warning: the scheduling policy is invalid: spec\.allow: unknown field/,
    );
    expect((await kubectl(['delete', 'schedpol', 'old', '--wait=false'])).status).toBe(0);
    expect((await patch({ metadata: { finalizers: [] } })).status).toBe(0);
    expect((await kubectl(['get', 'schedpol', 'old'])).stderr).toContain('not found');
  });

  it('a dry run gets a response, because the webhook declares NoneOnDryRun', async () => {
    const dry = (object: object) =>
      here().kubectl(['create', '--dry-run=server', '--validate=false', '-f', '-'], {
        stdin: JSON.stringify(object),
      });
    expect((await dry(pod('dry'))).status).toBe(0);
    expect((await dry(pod('dry', { nodeName: 'n1' }))).stderr).toContain('nodeName: ');
  });
});
