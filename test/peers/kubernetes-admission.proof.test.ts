/** What etc/kubernetes does in a real cluster: what is let in, what is refused and why, also by rules and where nothing can be read. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { type Manifest, manifests, RULES_MANIFEST } from '../etc/kubernetes/manifests.ts';
import { namespace, priorityClass, schedulingPolicy } from './cluster-objects.ts';
import { policedClusterOfFile } from './policed-cluster.ts';

const {
  started,
  police,
  here: policed,
} = policedClusterOfFile({ flags: '--feature-gates=EphemeralContainers=true' });
const here = () => policed().cluster;

const SETTLED = { timeout: 120_000, interval: 300 };
const OPTIONS = { default_priority_class: 'everybody' };
const WEBHOOKS = ['mutatingwebhookconfiguration', 'validatingwebhookconfiguration'];
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
const policy = (spec: unknown) => schedulingPolicy('tried', spec);

const create = (object: object, as?: string) => policed().create(object, as);

const podsOf = async (name: string): Promise<Manifest[]> =>
  ((await here().get('-n', 'shop', 'get', 'pods', '-l', `a=${name}`)) as Manifest).items;

describe.skipIf(started === undefined)('etc/kubernetes in a real cluster', () => {
  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    await police(started, OPTIONS);
    await started.apply([
      namespace('shop'),
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { gpu: 'true' } } },
      priorityClass('everybody', 7, { globalDefault: true }),
    ]);
    await started.kubectl(['taint', 'nodes', 'n1', 'node.kubernetes.io/not-ready:NoSchedule-']);
    // The API server takes a moment to know webhooks, classes and accounts.
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
    expect(await create(policy([]))).toContain('spec: expected a mapping, got an empty list');
    expect(await create(policy({ '\u202ea': 1 }))).toContain('spec.\\u202ea: unknown field');
    const huge = { allowed: { schedulerNames: Array(60_000).fill('default-scheduler'), x: 1 } };
    expect(await create(policy(huge))).toContain('spec.allowed.x: unknown field');
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

  it('a policy that was invalid before the webhooks loses its finalizers, and stays as it is', async () => {
    const { kubectl } = here();
    const old = { ...policy({ allow: {} }), metadata: { name: 'old', finalizers: ['example.org/x'] } };
    const both = WEBHOOKS.join();
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

  it('pods that cannot be read are refused also where webhooks may fail', async () => {
    for (const kind of WEBHOOKS) {
      const { webhooks } = (await here().get('get', kind, 'blazar-enforcement')) as Manifest;
      // A busy machine takes long for a large pod, and what is not answered in time passes.
      const changed = { failurePolicy: 'Ignore', timeoutSeconds: 30 };
      const ignored = webhooks.flatMap((_: unknown, index: number) =>
        Object.entries(changed).map(([field, value]) => ({
          op: 'replace',
          path: `/webhooks/${index}/${field}`,
          value,
        })),
      );
      const patch = ['patch', kind, 'blazar-enforcement', '--type=json', '-p', JSON.stringify(ignored)];
      expect((await here().kubectl(patch)).stderr).toBe('');
    }
    const client = createApiClient({ kubeconfig: join(here().folder, 'admin.conf') });
    /** What the API server says; empty = it is created. Not by kubectl, which escapes texts itself. */
    const tried = (spec: object, metadata: object = {}): Promise<string> =>
      client
        .request({
          method: 'POST',
          path: '/api/v1/namespaces/shop/pods',
          query: { dryRun: 'All' },
          body: pod('unread', spec, metadata),
        })
        .then(() => '', String);
    await vi.waitUntil(async () => (await tried({ nodeName: 'n1' })).includes('denied'), 120_000);
    const tolerations = Array.from({ length: 1001 }, (_, index) => ({
      key: `k${index}`,
      operator: 'Exists',
    }));
    expect(await tried({ nodeName: 'n1', tolerations })).toMatch(
      /denied the request: the pod cannot be judged: request\.object\.spec\.tolerations/,
    );
    // The API server escapes each of these letters by six.
    const env = [{ name: 'a', value: '<'.repeat(2_000_000) }];
    expect(await tried({ nodeName: 'n1', containers: [{ name: 'c', image: 'x', env }] })).toMatch(
      /denied the request: the pod cannot be judged: expected a body of at most 8388608 bytes/,
    );
    const labels = Object.fromEntries(Array.from({ length: 11_000 }, (_, index) => [`label-${index}`, 'x']));
    expect(await tried({ nodeName: 'n1' }, { labels })).toMatch(
      /denied the request: the pod (cannot be judged|does not fit)/,
    );
    await client.close();
  });

  it('rules refuse a pod with their messages, and what an update or an ephemeral container would make of one', async () => {
    const rules_path = join(here().folder, 'rules.yaml');
    const rule = `{name: cores, on: pod, allow: 'requested(pod, "cpu") <= 2.0', message: At most 2 cores.}`;
    const images = `{name: images, on: pod, allow: '!pod.containers.exists(one, one.image == "evil")', message: Not this image.}`;
    const teams = `{name: teams, on: pod, allow: 'has(pod.labels.team)', message: Name a team.}`;
    writeFileSync(rules_path, `rules:\n- ${rule}\n- ${images}\n- ${teams}\n`);
    await policed().configure({ ...OPTIONS, rules_path });
    await here().apply(manifests(RULES_MANIFEST).map(policed().toService));
    const ofTeam = (name: string, cpu: string) => {
      const containers = [{ name: 'main', image: 'example.org/none', resources: { requests: { cpu } } }];
      return pod(name, { containers }, { labels: { team: 'a' } });
    };
    expect(await create(ofTeam('large', '2500m'))).toContain('At most 2 cores.');
    expect(await create(ofTeam('kept', '2'))).toBe('');
    const said = async (...args: string[]) => {
      const { stdout, stderr } = await here().kubectl(['-n', 'shop', ...args]);
      return `${stdout}${stderr}`;
    };
    // The API server takes a moment to know the webhook for updates.
    const evil = () => said('set', 'image', 'pod/kept', 'main=evil', '--dry-run=server');
    await expect.poll(evil, SETTLED).toContain('Not this image.');
    expect(await said('label', 'pod', 'kept', 'team-')).toContain('Name a team.');
    expect(await said('set', 'image', 'pod/kept', 'main=example.org/other')).toContain('updated');
    const path = '/api/v1/namespaces/shop/pods/kept/ephemeralcontainers';
    const body = {
      apiVersion: 'v1',
      kind: 'EphemeralContainers',
      metadata: { name: 'kept', namespace: 'shop' },
      ephemeralContainers: [
        { name: 'debugger', image: 'evil', imagePullPolicy: 'Always', terminationMessagePolicy: 'File' },
      ],
    };
    const file = join(here().folder, 'debugger.json');
    writeFileSync(file, JSON.stringify(body));
    expect(await said('replace', '--raw', path, '-f', file)).toContain(
      'Kubernetes 1.22 or newer sends it with its ephemeral containers',
    );
    expect(await said('get', 'pod', 'kept', '-o', 'jsonpath={.spec.ephemeralContainers}')).toBe('');
  });
});
