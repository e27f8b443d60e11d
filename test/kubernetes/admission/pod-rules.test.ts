import { describe, expect, it } from 'vitest';
import { rulesOfFailure } from '../../../src/filter/verdict.ts';
import { parseAdmissionReview } from '../../../src/kubernetes/admission/admission-review.ts';
import { PodAdmission } from '../../../src/kubernetes/admission/pod-admission.ts';
import { PodRules } from '../../../src/kubernetes/admission/pod-rules.ts';
import { WorkloadReview } from '../../../src/kubernetes/admission/workloads.ts';
import { temporaryFile } from '../../support/files.ts';
import { creating } from '../../support/kubernetes-service.ts';

const RULES = `rules:
- {name: two-gpus, on: pod, allow: gpus(pod) <= 2.0, message: {expression: '"At most 2 GPUs in " + pod.namespace + "."'}}
- {name: cpus, on: pod, allow: 'requested(pod, "cpu") <= 4.0', message: At most 4 cores.}
- {name: tried, on: pod, mode: audit, allow: 'requested(pod, "memory") < 1.0', message: No memory.}
`;

function admission(rules = RULES): PodAdmission {
  return new PodAdmission(undefined, { rules: PodRules.read(temporaryFile('rules.yaml', rules)) });
}

type Limits = Record<string, string | number>;

function asked(limits: Limits, more: { resource?: string; oldLimits?: Limits; object?: object } = {}) {
  const { resource = 'pods', oldLimits, object } = more;
  const pod = (own: Limits) => {
    const spec = { containers: [{ name: 'c', image: 'i', resources: { limits: own } }] };
    return { metadata: { name: 'p' }, spec: resource === 'pods' ? spec : { template: { spec } } };
  };
  const review = creating(undefined, {
    resource: { group: resource === 'pods' ? '' : 'apps', version: 'v1', resource },
    namespace: 'climate',
    userInfo: { username: 'ada', groups: ['students'] },
    object: object ?? pod(limits),
    ...(oldLimits !== undefined && { operation: 'UPDATE', oldObject: pod(oldLimits) }),
  });
  const request = parseAdmissionReview(review);
  if (request.kind !== 'pod' && request.kind !== 'template') {
    throw new Error(`expected a pod, got ${request.kind}`);
  }
  return request;
}

const judge = (limits: Limits, more?: Parameters<typeof asked>[1], rules?: string) =>
  admission(rules).admit(asked(limits, more), { addDefaults: true });

it.for<[Limits, string | null]>([
  [{ 'nvidia.com/gpu': 2 }, null],
  [{ 'nvidia.com/gpu': '3' }, 'At most 2 GPUs in climate.'],
  [{ 'nvidia.com/gpu': 2, 'amd.com/gpu': '1' }, 'At most 2 GPUs in climate.'],
  [{ cpu: '4000m' }, null],
  [{ cpu: '4001m' }, 'At most 4 cores.'],
  [{ cpu: 5, 'nvidia.com/mig-1g.5gb': '3' }, 'At most 2 GPUs in climate. At most 4 cores.'],
  [{ 'deviceclass.resource.kubernetes.io/mig.nvidia.com': '3' }, 'At most 2 GPUs in climate.'],
  [{ 'nvidia.com/gpu': 2, 'nvidia.com/gpumem': 3000, 'nvidia.com/gpucores': 30 }, null],
  [{ 'gpu.intel.com/i915': 2, 'gpu.intel.com/millicores': 500, 'gpu.intel.com/memory.max': '5M' }, null],
  [{ 'nvidia.com/gpu': 3, 'nvidia.com/gpumem-percentage': 50 }, 'At most 2 GPUs in climate.'],
  [{ 'aliyun.com/gpu-mem': 16 }, 'At most 2 GPUs in climate.'],
  [{ 'nvidia.com/gpu': 1, 'koordinator.sh/gpu-core': 800 }, 'At most 2 GPUs in climate.'],
])('judges a pod with the limits %j', async ([limits, message]) => {
  expect(await judge(limits)).toMatchObject({ allowed: message === null, message });
});

it('counts memory of GPUs in a container that requests no number of them beside another that does', async () => {
  const container = (limits: Limits) => ({ name: 'c', image: 'i', resources: { limits } });
  const ofContainers = (...containers: object[]) =>
    judge({}, { object: { metadata: { name: 'p' }, spec: { containers } } });
  const whole = container({ 'volcano.sh/vgpu-number': 1, 'volcano.sh/vgpu-memory': 3000 });
  const part = container({ 'volcano.sh/vgpu-memory': 3000 });
  expect(await ofContainers(whole, whole)).toMatchObject({ allowed: true });
  expect(await ofContainers(whole, part)).toMatchObject({ message: 'At most 2 GPUs in climate.' });
});

const cpus = (requests: string, more: object = {}) => ({
  resources: { requests: { cpu: requests } },
  ...more,
});
const ALWAYS = { restartPolicy: 'Always' };

/** As the scheduler counts. Source: Kubernetes, `PodRequests` of k8s.io/component-helpers. */
it.for<[number, object]>([
  [3, { containers: [cpus('1'), cpus('2000m')] }],
  [5, { containers: [cpus('1')], initContainers: [cpus('5'), cpus('2')] }],
  [4, { containers: [cpus('1')], initContainers: [cpus('3', ALWAYS), cpus('500m')] }],
  [8, { containers: [cpus('1')], initContainers: [cpus('3', ALWAYS), cpus('5')] }],
  [6, { containers: [cpus('1')], initContainers: [cpus('5'), cpus('3', ALWAYS)], overhead: { cpu: '1' } }],
  [7, { containers: [cpus('1'), {}], ...cpus('7') }],
  [1, { containers: [cpus('1'), {}], resources: { limits: { cpu: '7' } } }],
  [7, { containers: [{}], resources: { limits: { cpu: '7' } } }],
])('counts %d cores of %j', async ([cores, spec]) => {
  const rule = (allow: string) => `rules:\n- {name: a, on: pod, message: 'No.', allow: '${allow}'}\n`;
  const object = { metadata: { name: 'p' }, spec };
  const exactly = rule(`requested(pod, "cpu") == ${cores}.0`);
  expect(await judge({}, { object }, exactly)).toMatchObject({ allowed: true });
});

it('only warns of what a rule in audit mode would refuse', async () => {
  expect(await judge({ memory: '1Gi' })).toMatchObject({
    allowed: true,
    isAudited: true,
    warnings: ['a rule in audit mode would reject this pod: rule tried: No memory.'],
  });
});

it('judges an update that changes something, and no other', async () => {
  const limits = { cpu: '5' };
  expect(await judge(limits, { oldLimits: limits })).toMatchObject({ allowed: true });
  expect(await judge(limits, { oldLimits: { cpu: '1' } })).toMatchObject({ allowed: false });
  // Otherwise nobody could remove the finalizers of one that a later rule refuses.
  const resource = 'daemonsets';
  expect(await judge(limits, { resource, oldLimits: limits })).toMatchObject({ allowed: true });
  expect(await judge(limits, { resource, oldLimits: { cpu: '1' } })).toMatchObject({ allowed: false });
  expect(await judge(limits, { resource })).toMatchObject({ allowed: false });
});

it('fails for a pod that cannot be read, and for a rule that breaks', async () => {
  await expect(judge({ cpu: 'many' })).rejects.toThrow(/rules\.yaml:2: rule two-gpus: allow failed/);
  const broken = 'rules:\n- {name: a, on: pod, allow: pod.spec.nodeName != "x", message: No.}\n';
  await expect(judge({}, {}, broken)).rejects.toThrow(/rule a: allow failed: pod\.spec\.nodeName is missing/);
});

describe('a Deployment', () => {
  const review = (rules: string | undefined, mode: 'warn' | 'refuse', spec: object = {}) =>
    new WorkloadReview(admission(rules), { mode }).admit({
      kind: 'workload',
      uid: 'u',
      username: 'ada',
      groups: ['students'],
      dryRun: false,
      name: 'd',
      workload: 'Deployment',
      namespace: 'climate',
      pod: undefined,
      current: undefined,
      object: {
        metadata: { name: 'd' },
        spec: {
          template: { spec: { containers: [{ name: 'c', resources: { limits: { cpu: '9' } } }], ...spec } },
        },
      },
    });
  const one = (text: string) => `rules:\n- {name: one, on: pod, message: 'No.', ${text}}\n`;

  it('whose pods rules would refuse is warned of, or refused', async () => {
    const words = "this Deployment's pods would be refused: At most 4 cores.";
    expect(await review(RULES, 'warn')).toMatchObject({
      allowed: true,
      warnings: [words],
      rules: [{ rule: 'cpus', outcome: 'rejected', audit: true }],
    });
    expect(await review(RULES, 'refuse')).toMatchObject({ allowed: false, message: words });
  });

  it('is told of rules in audit mode', async () => {
    const { warnings, allowed } = await review(one('mode: audit, allow: "false"'), 'refuse');
    expect(allowed).toBe(true);
    expect(warnings).toEqual(["a rule in audit mode would reject this Deployment's pods: rule one: No."]);
  });

  it.each([
    'allow: user.name == "ada"',
    'allow: has(user.name)',
    'allow: user.?name.orValue("") == "ada"',
    'allow: \'"teachers" in user.groups\'',
    `allow: 'user.groups.exists(one, one == "teachers")'`,
    'match: user.name != "system:admin", allow: "false"',
    'allow: \'requested(pod, "cpu") <= 4.0 || user.name == "ada"\'',
    'allow: pod.name.startsWith("x")',
    'allow: \'user.name == "ada"\', mode: audit',
    'allow: "false", exempt: {users: ["system:serviceaccount:kube-system:replicaset-controller"]}',
  ])('is left to its pods by a rule that must know more: %s', async (text) => {
    expect(await review(one(text), 'refuse')).toMatchObject({
      allowed: true,
      warnings: [],
      isAudited: false,
    });
    expect(await review(one(text), 'warn')).toMatchObject({ allowed: true, warnings: [] });
  });

  it('is judged by what is known, where that decides', async () => {
    const text = 'allow: \'requested(pod, "cpu") <= 4.0 && user.name == "ada"\', exempt: {users: [ada]}';
    expect(await review(one(text), 'refuse')).toMatchObject({ allowed: false });
    const said = `rules:\n- {name: one, on: pod, allow: 'false', message: {expression: '"Not by " + user.name'}}\n`;
    expect((await review(said, 'refuse')).message).toBe(
      "this Deployment's pods would be refused: The rule one refuses them.",
    );
    await expect(review(one('allow: pod.spec.absent == 1'), 'warn')).rejects.toThrow(/absent is missing/);
  });
});

it('says which rules refuse or break, for the decision', async () => {
  const rules = `rules:
- {name: broken, on: pod, allow: pod.spec.absent == 1, message: No.}
- {name: always, on: pod, allow: 'false', message: 'No.'}
`;
  const thrown: unknown = await judge({}, {}, rules).catch((error: unknown) => error);
  expect(rulesOfFailure(thrown)).toMatchObject([
    { rule: 'always', outcome: 'rejected' },
    { rule: 'broken', outcome: 'failed', audit: false },
  ]);
  expect(await judge({ cpu: 5, memory: 2 })).toMatchObject({
    rules: [
      { rule: 'cpus', outcome: 'rejected', audit: false },
      { rule: 'tried', outcome: 'rejected', audit: true },
    ],
  });
});
