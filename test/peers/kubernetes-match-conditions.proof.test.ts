/** `matchConditions` of the webhooks in etc/kubernetes, evaluated by Kubernetes itself: which requests reach the service. */
import { afterAll, describe, expect, it } from 'vitest';
import { type Manifest, manifests, only, RULES_MANIFEST } from '../etc/kubernetes/manifests.ts';
import { type AskedRequest, admissionJudge } from './admission-judge.ts';

const judge = admissionJudge();
afterAll(() => judge?.remove());

const webhooks: Manifest[] = [
  ...only(manifests('mutating-webhook-configuration.yaml'), 'MutatingWebhookConfiguration').webhooks,
  ...only(manifests('validating-webhook-configuration.yaml'), 'ValidatingWebhookConfiguration').webhooks,
  ...only(manifests(RULES_MANIFEST), 'ValidatingWebhookConfiguration').webhooks,
];

/** Each webhook as a policy that warns of every request that the webhook would be asked about. */
const policies = webhooks.flatMap(({ name, rules, matchConditions = [], namespaceSelector }) => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: { resourceRules: rules, ...(namespaceSelector && { namespaceSelector }) },
      matchConditions,
      validations: [{ expression: 'false', message: 'asked' }],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Warn'] },
  },
]);

const DEFAULTS = 'admission.scheduling.blazar-enforcement';
const PODS = 'validation.scheduling.blazar-enforcement';
const BINDINGS = 'binding.scheduling.blazar-enforcement';
const WORKLOADS = 'workloads.scheduling.blazar-enforcement';
const RULES = 'rules.scheduling.blazar-enforcement';

const CONTAINERS = [{ name: 'web', image: 'web' }];
const SPEC = { containers: CONTAINERS, schedulerName: 'default-scheduler' };
const pod = (spec: object = {}, metadata: object = {}) => ({
  metadata: { name: 'web', ...metadata },
  spec: { ...SPEC, ...spec },
});
const TOLERATION = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule' };
const SPREAD = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' };
const AFFINITY = {
  podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] },
};

type Case = readonly [what: string, asked: readonly string[], request: Partial<AskedRequest>];

const aPod = { resource: 'pods', kind: 'Pod', object: pod() };
const updated = (object: object, oldObject: object = pod()): Partial<AskedRequest> => ({
  ...aPod,
  operation: 'UPDATE',
  object,
  oldObject,
});
const bound = (user: string): Partial<AskedRequest> => ({
  resource: 'pods',
  subresource: 'binding',
  kind: 'Binding',
  user,
  object: { metadata: { name: 'web' }, target: { kind: 'Node', name: 'n1' } },
});
const workload = (kind: string, image: string, more: { metadata?: object; replicas?: number } = {}) => {
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image }] } };
  return {
    metadata: { name: 'web', ...more.metadata },
    spec:
      kind === 'CronJob'
        ? { schedule: '* * * * *', jobTemplate: { spec: { template } } }
        : { ...(kind !== 'Job' && { replicas: more.replicas ?? 1 }), template },
  };
};
const aDaemonSet = { group: 'apps', resource: 'daemonsets', kind: 'DaemonSet' };
const daemonSetWas = (oldObject: object): Partial<AskedRequest> => ({
  ...aDaemonSet,
  operation: 'UPDATE',
  object: workload('DaemonSet', 'x'),
  oldObject,
});
const OWNER = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: '1' };

const KINDS = [
  ['apps', 'Deployment'],
  ['apps', 'ReplicaSet'],
  ['apps', 'StatefulSet'],
  ['batch', 'Job'],
  ['batch', 'CronJob'],
  ['', 'ReplicationController'],
] as const;

const CASES: readonly Case[] = [
  ['a new pod', [DEFAULTS, PODS], aPod],
  ['a new pod in an exempt namespace', [], { ...aPod, namespace: 'kube-system' }],
  ['a new DaemonSet', [DEFAULTS, PODS], { ...aDaemonSet, object: workload('DaemonSet', 'x') }],
  ['another template of a DaemonSet', [DEFAULTS, PODS], daemonSetWas(workload('DaemonSet', 'y'))],
  [
    'a finalizer of a DaemonSet',
    [],
    daemonSetWas(workload('DaemonSet', 'x', { metadata: { finalizers: ['foregroundDeletion'] } })),
  ],
  ['an update that changes nothing', [], updated(pod())],
  ['a finalizer', [], updated(pod({}, { finalizers: ['example.com/a'] }))],
  ['an owner', [], updated(pod({}, { ownerReferences: [OWNER] }))],
  ['a label', [RULES], updated(pod({}, { labels: { a: 'b' } }))],
  ['a label that goes', [RULES], updated(pod(), pod({}, { labels: { a: 'b' } }))],
  ['an annotation', [RULES], updated(pod({}, { annotations: { a: 'b' } }))],
  ['an image', [RULES], updated(pod({ containers: [{ name: 'web', image: 'other' }] }))],
  ['a scheduler', [PODS, RULES], updated(pod({ schedulerName: 'own' }))],
  ['a priority class', [PODS, RULES], updated(pod({ priorityClassName: 'gold' }))],
  ['a node', [PODS, RULES], updated(pod({ nodeName: 'n1' }))],
  ['a node selector', [PODS, RULES], updated(pod({ nodeSelector: { disk: 'ssd' } }))],
  ['a node selector that goes', [PODS, RULES], updated(pod(), pod({ nodeSelector: { disk: 'ssd' } }))],
  ['a toleration', [PODS, RULES], updated(pod({ tolerations: [TOLERATION] }))],
  ['an affinity', [PODS, RULES], updated(pod({ affinity: AFFINITY }))],
  ['a spread', [PODS, RULES], updated(pod({ topologySpreadConstraints: [SPREAD] }))],
  [
    'the same fields as before',
    [],
    updated(
      ...([1, 2].map(() => pod({ tolerations: [TOLERATION], affinity: AFFINITY, nodeName: 'n1' })) as [
        object,
        object,
      ]),
    ),
  ],
  [
    'a debugger',
    [RULES],
    {
      ...updated(pod({ ephemeralContainers: [{ name: 'debugger', image: 'x' }] })),
      subresource: 'ephemeralcontainers',
    },
  ],
  [
    'a resize',
    [RULES],
    {
      ...updated(pod({ containers: [{ name: 'web', image: 'web', resources: { limits: { cpu: '2' } } }] })),
      subresource: 'resize',
    },
  ],
  ['a status', [], { ...updated({ ...pod(), status: { phase: 'Running' } }), subresource: 'status' }],
  ['a deletion', [], { ...aPod, operation: 'DELETE', object: null, oldObject: pod() }],
  ['a binding by a person', [BINDINGS], bound('lin')],
  ['a binding by the scheduler', [], bound('system:kube-scheduler')],
  ...KINDS.flatMap(([group, kind]): Case[] => {
    const about = { group, kind, resource: `${kind.toLowerCase()}s` };
    const update = (...[image, more]: [image: string, more?: Parameters<typeof workload>[2]]) => ({
      ...about,
      operation: 'UPDATE' as const,
      object: workload(kind, image, more),
      oldObject: workload(kind, 'x'),
    });
    const owned = (controller: object) => ({ metadata: { ownerReferences: [{ ...OWNER, ...controller }] } });
    return [
      [`a new ${kind}`, [WORKLOADS], { ...about, object: workload(kind, 'x') }],
      [`a new ${kind} with an owner`, [WORKLOADS], { ...about, object: workload(kind, 'x', owned({})) }],
      [
        `a new ${kind} of a controller`,
        [],
        { ...about, object: workload(kind, 'x', owned({ controller: true })) },
      ],
      [`another template of a ${kind}`, [WORKLOADS], update('y')],
      [`another size of a ${kind}`, [], update('x', { replicas: 2, metadata: { labels: { a: 'b' } } })],
    ];
  }),
];

describe.skipIf(judge === undefined)('the match conditions of webhooks, in Kubernetes', () => {
  it('ask the service about what it judges, and about nothing else', async () => {
    const verdicts = await judge?.judge(
      policies,
      CASES.map(([, , request]) => ({ operation: 'CREATE', namespace: 'shop', ...aPod, ...request })),
    );
    const asked = CASES.map(([what], index) => [
      what,
      webhooks.flatMap(({ name }) =>
        verdicts?.[index]?.warnings.includes(
          `Validation failed for ValidatingAdmissionPolicy '${name}' with binding '${name}': asked`,
        )
          ? [name]
          : [],
      ),
      verdicts?.[index]?.message,
    ]);
    expect(asked).toEqual(CASES.map(([what, expected]) => [what, expected, '']));
  });
});
