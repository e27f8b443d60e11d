/**
 * Workloads in a real cluster: whoever stores one whose pods are refused later is warned, and nobody else is. The webhooks of
 * etc/kubernetes ask a service that runs here and reads its policies from files.
 */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import type { ApiClient } from '../../src/kubernetes/cluster/api/contract.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { type Manifest, manifests } from '../etc/kubernetes/manifests.ts';
import { recordingLogger } from '../support/logger.ts';
import {
  accountSubject,
  binding,
  clusterRole,
  namespace,
  priorityClass,
  schedulingPolicy,
  serviceAccount,
  useOf,
  webhooksAt,
} from './cluster-objects.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { pod } from './policed-cluster.ts';

const { cluster, here, closing } = clusterOfFile();
let admin: ApiClient;

const SETTLED = { timeout: 120_000, interval: 300 };
/** The controller of CronJobs looks every ten seconds. */
const STARTED = { timeout: 900_000, interval: 500 };
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const KINDS = ['Deployment', 'ReplicaSet', 'ReplicationController', 'StatefulSet', 'Job', 'CronJob'] as const;
type Kind = (typeof KINDS)[number];

const disks = {
  required: { nodeSelectors: { disk: ['ssd', 'hdd'] } },
  allowed: { schedulerNames: ['default-scheduler'] },
};
/** The policies of each service account. */
const ACCOUNTS: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  default: { disks: { ...disks, default: { nodeSelector: { disk: 'ssd' } } } },
  strict: { strict: disks },
  wide: {
    wide: {
      allowed: {
        schedulerNames: ['default-scheduler', 'batch'],
        priorityClassNames: ['high'],
        tolerations: [{ keys: ['gpu'] }],
        affinities: { nodeAffinities: { [REQUIRED]: {} } },
      },
      default: { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
    },
  },
  classy: {
    classy: {
      required: { priorityClassNames: ['everybody'] },
      allowed: { schedulerNames: ['default-scheduler'] },
    },
  },
  high: {
    high: { allowed: { schedulerNames: ['default-scheduler'] }, default: { priorityClassName: 'high' } },
  },
  nobody: {},
};

const gpu = {
  [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }] },
};
const spread = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} };
const as = (serviceAccountName: string, spec: object = {}) => ({ serviceAccountName, ...spec });
const tolerating = (...tolerations: object[]) => ({ tolerations });
const TEMPLATES: Readonly<Record<string, object>> = {
  plain: {},
  ssd: { nodeSelector: { disk: 'ssd' } },
  tape: { nodeSelector: { disk: 'tape' } },
  'no-disk': as('strict'),
  hdd: as('strict', { nodeSelector: { disk: 'hdd' } }),
  'no-policy': as('nobody'),
  'no-policy-by-its-old-name': { serviceAccount: 'nobody' },
  'other-scheduler': { schedulerName: 'batch' },
  'allowed-scheduler': as('wide', { schedulerName: 'batch' }),
  'forbidden-class': { priorityClassName: 'high' },
  'allowed-class': as('wide', { priorityClassName: 'high' }),
  'class-of-the-cluster': as('classy'),
  'other-class': as('classy', { priorityClassName: 'high' }),
  'class-by-default': as('high'),
  'forbidden-toleration': tolerating({ key: 'gpu', operator: 'Exists' }),
  'allowed-toleration': as('wide', tolerating({ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' })),
  'toleration-of-the-api-server': tolerating({
    key: 'node.kubernetes.io/not-ready',
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  }),
  'toleration-for-ever': tolerating({ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }),
  'toleration-of-daemon-sets': tolerating({
    key: 'node.kubernetes.io/network-unavailable',
    operator: 'Exists',
    effect: 'NoSchedule',
  }),
  'forbidden-affinity': { affinity: { nodeAffinity: gpu } },
  'allowed-affinity': as('wide', { affinity: { nodeAffinity: gpu } }),
  'a-node': { nodeName: 'n1' },
  spread: { topologySpreadConstraints: [spread] },
};

const NAMESPACE = 'shop';

function workload(kind: Kind, name: string, spec: object, metadata: object = {}): Manifest {
  const labels = { a: name };
  const isJob = kind === 'Job' || kind === 'CronJob';
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: 'c', image: 'x' }], ...(isJob && { restartPolicy: 'Never' }), ...spec },
  };
  const selector = kind === 'ReplicationController' ? labels : { matchLabels: labels };
  const body = isJob
    ? { template }
    : { selector, template, ...(kind === 'StatefulSet' && { serviceName: '' }) };
  const version = { CronJob: 'batch/v1beta1', Job: 'batch/v1', ReplicationController: 'v1' } as const;
  return {
    apiVersion: version[kind as keyof typeof version] ?? 'apps/v1',
    kind,
    metadata: { name, namespace: NAMESPACE, ...metadata },
    spec: kind === 'CronJob' ? { schedule: '* * * * *', jobTemplate: { spec: body } } : body,
  };
}

/** The warnings of kubectl, and whatever else it says about a failure. */
async function told(args: readonly string[]) {
  const { stderr } = await here().kubectl(['-n', NAMESPACE, ...args]);
  const warnings = [...stderr.matchAll(/^Warning: (.*)$/gm)].map(([, text]) => text ?? '');
  return { warnings, error: stderr.replace(/^Warning:.*\n/gm, '') };
}
async function create(object: object, isDryRun = false) {
  const { warnings, error } = await here().create(object, { isDryRun });
  return { warnings, error };
}

/** The controller of CronJobs starts one at once that it thinks late, instead of with the next minute. */
async function missMinutes(name: string): Promise<void> {
  const path = `/apis/batch/v1beta1/namespaces/${NAMESPACE}/cronjobs/${name}/status`;
  const lastScheduleTime = new Date(Date.now() - 150_000).toISOString().replace(/\.\d+/, '');
  await admin.request({ method: 'PATCH', path, body: { status: { lastScheduleTime } } });
}

async function listed(kind: 'pods' | 'events'): Promise<Manifest[]> {
  const path = `/api/v1/namespaces/${NAMESPACE}/${kind}`;
  return ((await admin.request({ method: 'GET', path })) as Manifest).items;
}

/** What became of the pods with a label: of their workloads, only those that are refused have such an event. */
async function fates() {
  const [pods, events] = await Promise.all([listed('pods'), listed('events')]);
  const refused: string[] = events
    .filter(
      ({ reason, message }: Manifest) =>
        reason === 'FailedCreate' && message.includes('does not fit the scheduling policies'),
    )
    .map(({ involvedObject }: Manifest) => involvedObject.name);
  const came = new Set<string>(pods.map(({ metadata }: Manifest) => metadata.labels?.a));
  return (name: string): 'came' | 'refused' | undefined =>
    came.has(name) ? 'came' : refused.some((one) => one === name || isOf(one, name)) ? 'refused' : undefined;
}
/** A ReplicaSet of a Deployment has a hash behind its name, a Job of a CronJob a time. */
const isOf = (child: string, name: string) =>
  child.startsWith(`${name}-`) && /^[a-z0-9]{6,}$/.test(child.slice(name.length + 1));

describe.skipIf(cluster === undefined)('workloads in a real cluster', () => {
  let service: Service;
  let write: (workloads: string, further?: string) => void = () => {};
  const reload = async (workloads: string, further?: string) => {
    write(workloads, further);
    expect(await service.reload()).toBe(true);
  };

  beforeAll(async () => {
    if (cluster === undefined) {
      return;
    }
    const file = (name: string) => join(cluster.folder, name);
    admin = createApiClient({ kubeconfig: file('admin.conf') });
    closing.push(() => admin.close());
    closing.push(startReplicationController(cluster.folder));
    writeFileSync(file('policies.yaml'), policiesOf(ACCOUNTS));
    const configuration = file('policy-service.conf');
    write = (workloads, further = '') =>
      writeFileSync(
        configuration,
        [
          '[service]',
          'host = 127.0.0.1',
          'port = 0',
          `tls_cert_file = ${file('api.crt')}`,
          `tls_key_file = ${file('api.key')}`,
          '[kubernetes]',
          `scheduling_policies = ${file('policies.yaml')}`,
          'tokens = token-put-by-kustomize',
          'default_priority_class = everybody',
          `workloads = ${workloads}`,
          further,
          '',
        ].join('\n'),
      );
    write('warn');
    service = await startService(
      { environment: {}, configFiles: [configuration] },
      { logger: recordingLogger() },
    );
    closing.push(() => service.close());
    await cluster.apply([
      ...[NAMESPACE, 'kube-system'].map((name) => namespace(name)),
      ...Object.keys(ACCOUNTS).map((name) => serviceAccount(name, NAMESPACE)),
      priorityClass('everybody', 7, { globalDefault: true }),
      priorityClass('high', 9),
      {
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: { name: 'slow' },
        handler: 'slow',
        scheduling: { nodeSelector: { disk: 'tape' } },
      },
    ]);
    const webhooks = manifests(
      'mutating-webhook-configuration.yaml',
      'validating-webhook-configuration.yaml',
    );
    await cluster.apply(webhooks.map(webhooksAt(service.url, cluster.folder)));
    // The API server takes a moment to know webhooks and accounts.
    const early = () => create(workload('Job', 'early', { nodeName: 'n1' }), true);
    await vi.waitUntil(async () => (await early()).warnings.length > 0, SETTLED);
    await vi.waitUntil(
      async () => (await create(pod(NAMESPACE, 'early', { nodeName: 'n1' }), true)).error.includes('denied'),
      SETTLED,
    );
    await vi.waitUntil(async () => (await create(pod(NAMESPACE, 'early'), true)).error === '', SETTLED);
  });

  it('are warned of if, and only if, their pods are refused later: 23 templates of 6 kinds', async () => {
    const all = Object.entries(TEMPLATES).flatMap(([template, spec]) =>
      KINDS.map((kind) => ({ kind, spec, name: `${template}-in-${kind.toLowerCase()}` })),
    );
    const warned = new Map<string, readonly string[]>();
    const waiting = [...all];
    const next = async (): Promise<void> => {
      for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
        const { warnings, error } = await create(workload(one.kind, one.name, one.spec));
        expect(error, one.name).toBe('');
        if (one.kind === 'CronJob') {
          await missMinutes(one.name);
        }
        warned.set(one.name, warnings);
        for (const warning of warnings) {
          expect(warning).toMatch(new RegExp(`^this ${one.kind}'s pods would be refused: `));
        }
      }
    };
    await Promise.all([next(), next(), next()]);
    let fate = await fates();
    await vi.waitUntil(async () => {
      fate = await fates();
      return all.every(({ name }) => fate(name) !== undefined);
    }, STARTED);
    const promised = all.map(({ name }) => [name, warned.get(name)?.length ? 'refused' : 'came']);
    expect(promised).toEqual(all.map(({ name }) => [name, fate(name)]));
    const counts = promised.filter(([, one]) => one === 'refused').length;
    expect([counts, all.length], 'so that it is no comparison of one of them alone').toEqual([72, 138]);
  });

  it('are warned of again when their template changes, and not for anything else', async () => {
    const object = workload('Deployment', 'changed', { nodeSelector: { disk: 'ssd' } });
    expect(await create(object)).toEqual({ warnings: [], error: '' });
    const patch = (change: object) => told(['patch', 'deployment', 'changed', '-p', JSON.stringify(change)]);
    const ofPods = (spec: object) => patch({ spec: { template: { spec } } });
    const warnings = [
      'this Deployment\'s pods would be refused: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)',
    ];
    expect(await ofPods({ nodeSelector: { disk: 'tape' } })).toEqual({ warnings, error: '' });
    expect(await told(['label', 'deployment', 'changed', 'x=y'])).toEqual({ warnings: [], error: '' });
    expect(await told(['scale', 'deployment', 'changed', '--replicas=2'])).toEqual({
      warnings: [],
      error: '',
    });
    expect(await patch({ spec: { replicas: 1 } })).toEqual({ warnings: [], error: '' });
    // New pods, although nothing about where they run has changed.
    expect(await told(['rollout', 'restart', 'deployment', 'changed'])).toEqual({ warnings, error: '' });
    expect(await ofPods({ nodeSelector: { disk: 'hdd' } })).toEqual({ warnings: [], error: '' });
    const { warnings: others } = await ofPods({ serviceAccountName: 'nobody' });
    expect(others).toHaveLength(2);
    for (const warning of others) {
      expect(warning).toContain('(no scheduling policy of the account mentions it)');
    }
  });

  it('are warned of in other words by policies in audit mode, and their pods come', async () => {
    await reload('warn', 'audit = disks');
    expect(await create(workload('Job', 'audited', { nodeSelector: { disk: 'tape' } }))).toEqual({
      warnings: [
        'a scheduling policy in audit mode would reject this Job\'s pods: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)',
      ],
      error: '',
    });
    await vi.waitUntil(async () => (await fates())('audited') !== undefined, SETTLED);
    expect((await fates())('audited')).toBe('came');
    await reload('warn');
  });

  it('are not warned of what only the pods show: here the nodes of a RuntimeClass', async () => {
    const object = workload('Job', 'slow', { runtimeClassName: 'slow' });
    expect(await create(object)).toEqual({ warnings: [], error: '' });
    await vi.waitUntil(async () => (await fates())('slow') !== undefined, SETTLED);
    expect((await fates())('slow')).toBe('refused');
  });

  it.each(['Deployment', 'CronJob'] as const)('are refused with workloads = refuse: %s', async (kind) => {
    await reload('refuse');
    const spec = { nodeSelector: { disk: 'tape' } };
    const { warnings, error } = await create(workload(kind, `refused-${kind.toLowerCase()}`, spec));
    expect(warnings).toEqual([]);
    expect(error).toContain(
      `denied the request: this ${kind}'s pods would be refused: they do not fit the scheduling policies of system:serviceaccount:shop:default: nodeSelector disk: `,
    );
    expect(await create(workload(kind, `accepted-${kind.toLowerCase()}`, {}))).toEqual({
      warnings: [],
      error: '',
    });
    await reload('warn');
  });

  it('are stored while the service is away, since it only warns of them', async () => {
    await service.close();
    expect(await create(workload('Deployment', 'unseen', { nodeSelector: { disk: 'tape' } }))).toEqual({
      warnings: [],
      error: '',
    });
    const events = async () => JSON.stringify(await listed('events'));
    await expect.poll(events, SETTLED).toMatch(/unseen[^{]*failed calling webhook/);
  });
});

/** Each policy, and a binding for its account. */
function policiesOf(accounts: typeof ACCOUNTS): string {
  const objects = Object.entries(accounts).flatMap(([account, policies]) =>
    Object.entries(policies).flatMap(([name, spec]) => [
      schedulingPolicy(name, spec),
      clusterRole(name, useOf(name)),
      binding(name, name, [accountSubject(account, NAMESPACE)]),
    ]),
  );
  // JSON is YAML.
  return objects.map((object) => JSON.stringify(object)).join('\n---\n');
}

/** The control plane runs without this controller: a second one has it alone. Returns what stops it. */
function startReplicationController(folder: string): () => void {
  const pid = readFileSync(join(folder, 'kube-controller-manager.pid'), 'utf8').trim();
  const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  const own = args.map((arg) =>
    arg.startsWith('--controllers=') ? '--controllers=replicationcontroller' : arg,
  );
  const child = spawn(program, own, { cwd: folder, stdio: 'ignore' });
  return () => child.kill();
}
