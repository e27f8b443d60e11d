/** What `scheduling-policy scan`, `who-can` and `check --cluster` say of a real cluster, against what happens there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { Manifest } from '../etc/kubernetes/manifests.ts';
import {
  ANSWERS,
  type Answers,
  OBJECTS,
  POLICY_NAMES,
  QUESTIONS,
  type Question,
} from '../support/access-questions.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { temporaryFile } from '../support/files.ts';
import { accessInForce } from './asked-access.ts';
import { GROUP, namespace, priorityClass, schedulingPolicy, serviceAccount } from './cluster-objects.ts';
import { granted, pod, policedClusterOfFile } from './policed-cluster.ts';

const { started, police, here } = policedClusterOfFile();

const SETTLED = { timeout: 120_000, interval: 300 };
/** As the controller creates their pods. */
const AS_DAEMON_SETS = [
  '--as',
  'system:serviceaccount:kube-system:daemon-set-controller',
  '--as-group',
  'system:serviceaccounts',
  '--as-group',
  'system:masters',
];
const AUTHENTICATED = 'system:authenticated';
const CONTAINERS = [{ name: 'c', image: 'example.org/none' }];

const nodeAffinity = (key: string, operator: string, values: string[]) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key, operator, values }] }],
    },
  },
});

/** What pods ask for, by name. */
const SPECS: Readonly<Record<string, object>> = {
  plain: {},
  ssd: { nodeSelector: { disk: 'ssd' } },
  tape: { nodeSelector: { disk: 'tape' } },
  'ssd-and-gpu': { nodeSelector: { disk: 'ssd', gpu: 'a' } },
  'own-scheduler': { schedulerName: 'own' },
  'named-scheduler': { schedulerName: 'default-scheduler' },
  urgent: { priorityClassName: 'urgent' },
  usual: { priorityClassName: 'usual' },
  node: { nodeName: 'n1' },
  'node-and-tolerations': { nodeName: 'n2', tolerations: [{ operator: 'Exists' }] },
  tolerant: { tolerations: [{ key: 'ci', operator: 'Exists' }] },
  'very-tolerant': { tolerations: [{ operator: 'Exists' }] },
  'seconds-of-its-own': {
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 7 },
    ],
  },
  'like-a-daemon': {
    tolerations: [{ key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' }],
  },
  zone: { affinity: nodeAffinity('zone', 'In', ['a']) },
  'other-zone': { affinity: nodeAffinity('zone', 'In', ['c']) },
  apart: {
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { a: 'b' } } },
        ],
      },
    },
  },
};

/** By namespace, its service accounts. */
const ACCOUNTS = { shop: ['default', 'web'], ci: ['default', 'builder'] } as const;
const NAMESPACES = Object.keys(ACCOUNTS) as (keyof typeof ACCOUNTS)[];

const barePods = NAMESPACES.flatMap((namespace) =>
  ACCOUNTS[namespace].flatMap((account) =>
    Object.entries(SPECS).map(([name, spec]) =>
      pod(namespace, `${account}-${name}`, {
        serviceAccountName: account,
        automountServiceAccountToken: false,
        ...spec,
      }),
    ),
  ),
);

function workload(kind: string, name: string, spec: object): object {
  const template = {
    metadata: { labels: { app: name } },
    spec: {
      containers: CONTAINERS,
      automountServiceAccountToken: false,
      ...(kind === 'Job' && { restartPolicy: 'Never' }),
      ...spec,
    },
  };
  return {
    apiVersion: kind === 'Job' ? 'batch/v1' : 'apps/v1',
    kind,
    metadata: { name, namespace: 'shop' },
    spec: {
      ...(kind === 'Job' ? { parallelism: 3, completions: 3 } : { selector: { matchLabels: { app: name } } }),
      ...((kind === 'Deployment' || kind === 'StatefulSet') && { replicas: 3 }),
      ...(kind === 'StatefulSet' && { serviceName: name, podManagementPolicy: 'Parallel' }),
      template,
    },
  };
}

const WORKLOADS = [
  workload('Deployment', 'front', { nodeSelector: { disk: 'tape' } }),
  workload('Deployment', 'back', { nodeSelector: { disk: 'hdd' } }),
  workload('StatefulSet', 'store', { priorityClassName: 'urgent' }),
  workload('Job', 'sum', { tolerations: [{ key: 'ci', operator: 'Exists' }] }),
  workload('DaemonSet', 'agent', {}),
  workload('DaemonSet', 'tape-agent', { nodeSelector: { disk: 'tape' } }),
];

const POLICIES = [
  schedulingPolicy('disks', {
    allowed: { schedulerNames: ['default-scheduler'], nodeSelectors: { disk: ['ssd', 'hdd'] } },
    default: { nodeSelector: { disk: 'ssd' } },
  }),
  schedulingPolicy('ci', {
    allowed: { tolerations: [{ keys: ['ci'], operators: ['Exists'], effects: [] }], schedulerNames: ['own'] },
  }),
  schedulingPolicy('zones', {
    allowed: {
      affinities: {
        nodeAffinities: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchExpressions: [{ keys: ['zone'], operators: ['In'], values: ['a', 'b'] }] },
            ],
          },
        },
      },
    },
  }),
  // The last: once it is in force, all are.
  schedulingPolicy('everything', {
    allowed: {
      schedulerNames: [],
      priorityClassNames: [],
      nodeSelectors: {},
      tolerations: [],
      affinities: { nodeAffinities: {}, podAffinities: {}, podAntiAffinities: {} },
    },
  }),
];

interface ScanAnswer {
  readonly scanned: { readonly pods: number };
  readonly would_be_refused: { readonly pods: number };
  readonly not_scanned: { readonly exempt: number; readonly mirror: number };
  readonly refusals: readonly {
    readonly namespace: string;
    readonly owner: { readonly kind: string; readonly name: string };
    readonly count: number;
    readonly names: readonly string[];
    readonly reasons: readonly { readonly message: string }[];
  }[];
}

function command(...args: string[]) {
  const kubeconfig = join(here().cluster.folder, 'admin.conf');
  return runProgramInProcess(['scheduling-policy', ...args, '--kubeconfig', kubeconfig]);
}

async function scanned(...flags: string[]): Promise<ScanAnswer> {
  const { stdout, stderr } = await command('scan', '--format', 'json', ...flags);
  expect(stderr).toBe('');
  return JSON.parse(stdout) as ScanAnswer;
}

/** A pod as it is created once more. */
function anew({ metadata, spec }: Manifest): Manifest {
  const isBound = metadata.annotations?.['test/bound'] === 'yes';
  const { nodeName, ...unbound } = spec;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `again-${metadata.name}`.slice(0, 60), namespace: metadata.namespace },
    spec: isBound ? unbound : { ...unbound, ...(nodeName !== undefined && { nodeName }) },
  };
}

const isOfDaemonSet = ({ metadata }: Manifest): boolean =>
  metadata.ownerReferences?.some(
    ({ controller, kind }: Manifest) => controller === true && kind === 'DaemonSet',
  ) === true;

/** What the webhooks say of each pod; empty = allowed. */
async function verdicts(pods: readonly Manifest[], ...flags: string[]): Promise<string[]> {
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods });
  const each = 'jsonpath={.metadata.namespace}/{.metadata.name}{"\\n"}';
  const args = ['create', '--dry-run=server', '--validate=false', ...flags, '-f', '-', '-o', each];
  const { stdout, stderr } = await here().cluster.kubectl(args, { stdin });
  const created = new Set(stdout.split('\n'));
  const refusals = stderr.split('\n').filter((line) => line.includes('denied the request'));
  const said = pods.map(({ metadata: { namespace, name } }) =>
    created.has(`${namespace}/${name}`) ? '' : (refusals.shift() ?? 'no answer'),
  );
  expect(refusals, stderr).toEqual([]);
  return said;
}

describe.skipIf(started === undefined)('in a real cluster', () => {
  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    await started.apply([
      ...NAMESPACES.map((name) => namespace(name)),
      ...['n1', 'n2'].map((name) => ({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels: { disk: 'tape' } },
      })),
      priorityClass('urgent', 1000),
      priorityClass('usual', 10),
    ]);
    await started.kubectl(['taint', 'nodes', '--all', 'node.kubernetes.io/not-ready:NoSchedule-']);
    await started.apply(
      NAMESPACES.flatMap((namespace) =>
        ACCOUNTS[namespace]
          .filter((name) => name !== 'default')
          .map((name) => serviceAccount(name, namespace)),
      ),
    );
    for (const namespace of NAMESPACES) {
      const account = ['-n', namespace, 'get', 'serviceaccount', 'default'];
      await vi.waitUntil(async () => (await started.kubectl(account)).status === 0, SETTLED);
    }
    await started.apply([...barePods, ...WORKLOADS]);
    const running = async () =>
      ((await started.get('-n', 'shop', 'get', 'pods', '-l', 'app')) as Manifest).items.length;
    // Three of each of four, and one on each node of two.
    await vi.waitUntil(async () => (await running()) === 16, SETTLED);
    // What a scheduler would do: there is none here.
    for (const name of ['default-ssd', 'default-tape', 'web-plain', 'web-urgent']) {
      const body = {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace: 'shop', annotations: { 'test/bound': 'yes' } },
        target: { kind: 'Node', name: 'n1' },
      };
      const path = `/api/v1/namespaces/shop/pods/${name}/binding`;
      const bound = await started.kubectl(['create', '--raw', path, '-f', '-'], {
        stdin: JSON.stringify(body),
      });
      expect(bound.stderr).toBe('');
    }
    await police(started);
    await started.apply([
      ...POLICIES,
      ...granted('shop', 'default', 'disks'),
      ...granted('shop', 'web', 'disks', 'zones'),
      ...granted('ci', 'builder', 'ci'),
      ...granted('ci', 'default', 'everything'),
    ]);
    await vi.waitUntil(
      async () =>
        (await here().create(
          pod('ci', 'any', { schedulerName: 'any', automountServiceAccountToken: false }),
        )) === '',
      SETTLED,
    );
    await started.kubectl(['-n', 'ci', 'delete', 'pod', 'any', '--wait=false', '--force']);
  });

  it('scan refuses the pods that webhooks refuse when they are created anew, for the same reasons', async () => {
    const { items } = (await here().cluster.get('get', 'pods', '-A')) as Manifest;
    const pods = items.filter(({ metadata }: Manifest) => NAMESPACES.includes(metadata.namespace));
    expect(pods).toHaveLength(barePods.length + 16);
    const flags = NAMESPACES.flatMap((name) => ['--namespace', name]);
    const { scanned: all, would_be_refused, refusals } = await scanned(...flags);
    const byPod = new Map(
      refusals.flatMap(({ namespace, names, reasons }) =>
        names.map((name) => [`${namespace}/${name}`, reasons.map(({ message }) => message)] as const),
      ),
    );
    const ofDaemonSets = pods.filter(isOfDaemonSet);
    const others = pods.filter((one: Manifest) => !isOfDaemonSet(one));
    const answers = new Map<Manifest, string>();
    for (const [some, ...flags] of [[others], [ofDaemonSets, ...AS_DAEMON_SETS]] as const) {
      const said = await verdicts(some.map(anew), ...flags);
      for (const [index, one] of some.entries()) {
        answers.set(one, said[index] ?? '');
      }
    }
    let refused = 0;
    for (const [one, answer] of answers) {
      const { namespace, name } = one.metadata;
      const reasons = byPod.get(`${namespace}/${name}`);
      expect({ namespace, name, allowed: reasons === undefined, answer }).toEqual({
        namespace,
        name,
        answer,
        allowed: answer === '',
      });
      refused += answer === '' ? 0 : 1;
      for (const reason of reasons ?? []) {
        expect(answer).toContain(reason);
      }
    }
    expect(all.pods).toBe(pods.length);
    expect(would_be_refused.pods).toBe(refused);
    expect(refused).toBeGreaterThan(20);
    expect(pods.length - refused).toBeGreaterThan(20);
  });

  it('check says of the running pods that kubectl shows what scan says', async () => {
    const args = ['get', 'pods', '-n', 'shop', '--show-managed-fields', '-o', 'yaml'];
    const { stdout: pods } = await here().cluster.kubectl(args);
    const file = temporaryFile('pods.yaml', pods);
    const { stdout } = await command('check', file, '--cluster', '--format', 'json');
    const { objects } = JSON.parse(stdout) as {
      objects: readonly { readonly name: string; readonly allowed: boolean }[];
    };
    const { refusals } = await scanned('--namespace', 'shop');
    expect(objects.flatMap(({ name, allowed }) => (allowed ? [] : [name])).sort()).toEqual(
      refusals.flatMap(({ names }) => names).sort(),
    );
    expect(new Set(objects.map(({ allowed }) => allowed)).size).toBe(2);
  });

  it('scan finds templates that have no pods', async () => {
    await here().cluster.kubectl(['-n', 'shop', 'scale', 'deployment', 'front', '--replicas=0']);
    await vi.waitUntil(async () => {
      const { items } = (await here().cluster.get(
        '-n',
        'shop',
        'get',
        'pods',
        '-l',
        'app=front',
      )) as Manifest;
      return items.length === 0;
    }, SETTLED);
    const { stdout, code } = await command('scan', '--namespace', 'shop', '--workloads');
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^shop +Deployment front +template +nodeSelector disk: expected ssd or hdd, got "tape"/m,
    );
    expect(stdout).not.toMatch(/^shop +Deployment back /m);
  });

  it('check --cluster answers as the webhooks do', async () => {
    const pods = barePods.slice(0, 2 * Object.keys(SPECS).length);
    const file = temporaryFile('pods.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods }));
    const { stdout } = await command('check', file, '--cluster', '--format', 'json');
    const { objects } = JSON.parse(stdout) as { objects: readonly { readonly allowed: boolean }[] };
    const said = await verdicts(pods.map(anew));
    expect(objects.map(({ allowed }, index) => [pods[index]?.metadata.name, allowed])).toEqual(
      pods.map(({ metadata }, index) => [metadata.name, said[index] === '']),
    );
  });

  it('every command says which right is missing', async () => {
    const alice = join(here().cluster.folder, 'alice.conf');
    const file = temporaryFile('pod.json', JSON.stringify(barePods[0]));
    for (const [args, missing] of [
      [['scan'], 'cannot list resource "schedulingpolicies"'],
      [['who-can', 'disks'], 'cannot get resource "schedulingpolicies"'],
      [['check', file, '--cluster'], 'cannot list resource "schedulingpolicies"'],
    ] as const) {
      const { code, stderr } = await runProgramInProcess([
        'scheduling-policy',
        ...args,
        '--kubeconfig',
        alice,
      ]);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(missing) });
    }
  });

  it('who-can agrees with the reviews of the API server, for every account', async () => {
    const { apply } = here().cluster;
    const namespaces = new Set(QUESTIONS.flatMap(({ namespace }) => namespace ?? []));
    await apply([...namespaces].map((name) => namespace(name)));
    await apply(OBJECTS);
    await apply(POLICY_NAMES.map((name) => schedulingPolicy(name, { allowed: {} })));
    // From then on, the API server answers as is recorded.
    await accessInForce(here().cluster);
    const { answers } = JSON.parse(readFileSync(ANSWERS, 'utf8')) as Answers;
    for (const name of POLICY_NAMES) {
      const { users } = JSON.parse((await command('who-can', name, '--format', 'json')).stdout) as {
        users: readonly ListedUser[];
      };
      for (const [index, { usable, ...question }] of answers.entries()) {
        // Whoever is authenticated is in this group, as kubectl and who-can know.
        const yes = question.groups.includes(AUTHENTICATED)
          ? usable[GROUP]?.includes(name) === true
          : await canI(name, question);
        expect({ name, ...question, listed: isListed(users, question) }).toEqual({
          name,
          ...question,
          listed: yes,
        });
        // For one account, the command asks the API server the same.
        if (index % 8 === 0) {
          const { code } = await command('who-can', name, ...flagsOf(question));
          expect({ name, ...question, code }).toEqual({ name, ...question, code: yes ? 0 : 1 });
        }
      }
    }
  });
});

interface ListedUser {
  readonly subject: { readonly kind: string; readonly name: string; readonly namespace: string | null };
  readonly namespace: string | null;
  readonly confirmed: boolean;
}

function isListed(users: readonly ListedUser[], { user, groups, namespace }: Question): boolean {
  return users.some(
    ({ subject, namespace: place, confirmed }) =>
      confirmed &&
      (place === null || place === namespace) &&
      (subject.kind === 'Group'
        ? [...groups, AUTHENTICATED].includes(subject.name)
        : user ===
          (subject.kind === 'User'
            ? subject.name
            : `system:serviceaccount:${subject.namespace}:${subject.name}`)),
  );
}

async function canI(name: string, { user, groups, namespace }: Question): Promise<boolean> {
  const { object } = await here().cluster.create({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    metadata: {},
    spec: {
      user,
      groups: [...groups, AUTHENTICATED],
      resourceAttributes: { verb: 'use', group: GROUP, resource: 'schedulingpolicies', name, namespace },
    },
  });
  return object.status.allowed;
}

function flagsOf({ user, groups, namespace }: Question): string[] {
  const [, of, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? [];
  return of !== undefined && of === namespace
    ? ['--service-account', `${of}/${name}`]
    : [
        '--user',
        user,
        ...groups.flatMap((group) => ['--group', group]),
        ...(namespace === undefined ? [] : ['--namespace', namespace]),
      ];
}
