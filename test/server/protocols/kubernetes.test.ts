/** What the API server of Kubernetes is answered. Source: Kubernetes docs, "Dynamic Admission Control". */
import { describe, expect, it } from 'vitest';
import {
  ADMISSION,
  admissionReview,
  creating,
  DEDICATED,
  grant,
  PARTS,
  patched,
  policies,
  policiesForAll,
  runKubernetes,
  updating,
  VALIDATION,
} from '../../support/kubernetes-service.ts';

const DISKS = { required: { nodeSelectors: { disk: ['ssd', 'hdd'] } }, allowed: { schedulerNames: [] } };
const UNTOUCHED = { status: 200, allowed: true, patch: [], warnings: [], message: undefined };

describe('a pod that is rejected', () => {
  it('gets 403 within 200, with field, values and policy in the message', async () => {
    const { ask } = await runKubernetes(policiesForAll({ disks: DISKS, more: PARTS }));
    const { answer, ...came } = await ask(creating({ nodeSelector: { disk: 'tape' } }));
    const message =
      'the pod does not fit the scheduling policies of system:serviceaccount:shop:default: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)';
    expect(came).toEqual({ status: 200, uid: 'u-1', allowed: false, message, warnings: [], patch: [] });
    expect(answer.json).toMatchObject({ response: { status: { code: 403, reason: 'Forbidden', message } } });
  });
});

describe('whose policies count', () => {
  const ssd = { required: { nodeSelectors: { disk: ['ssd'] } }, allowed: { schedulerNames: [] } };
  const hdd = { required: { nodeSelectors: { disk: ['hdd'] } }, allowed: { schedulerNames: [] } };

  it('is decided by the service account and namespace of each request', async () => {
    const { ask } = await runKubernetes(
      [
        policies({ ssd, hdd }),
        grant(['ssd'], ['ServiceAccount', 'fast', 'shop']),
        grant(['hdd'], ['Group', 'system:serviceaccounts'], 'archive'),
      ].join('---\n'),
    );
    const asks = (namespace: string, account: string | undefined, disk: string) => {
      const spec = { nodeSelector: { disk }, ...(account && { serviceAccountName: account }) };
      const review = creating(spec, { namespace });
      review.request.object.metadata.namespace = namespace === 'shop' ? 'archive' : 'shop';
      return ask(review);
    };
    const answers = await Promise.all([
      asks('shop', 'fast', 'ssd'),
      asks('archive', undefined, 'hdd'),
      asks('shop', 'fast', 'hdd'),
      asks('archive', 'fast', 'ssd'),
      asks('shop', undefined, 'hdd'),
      asks('shop', 'default', 'ssd'),
    ]);
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false, false, false, false]);
  });
});

describe('the validating webhook', () => {
  it('never patches, and rejects pods without required parts', async () => {
    const spec = { ...DISKS, default: { nodeSelector: { disk: 'ssd' } } };
    const { ask } = await runKubernetes(policiesForAll({ disks: spec }));
    const review = creating();
    const admitted = await ask(review);
    expect(admitted).toMatchObject({ allowed: true, patch: [{ op: 'add', path: '/spec/nodeSelector' }] });
    expect(await ask(review, VALIDATION)).toMatchObject({
      status: 200,
      allowed: false,
      message: expect.stringContaining('nodeSelector disk: expected ssd or hdd, got nothing'),
      patch: [],
    });
    expect(await ask(patched(review, admitted.patch), VALIDATION)).toMatchObject(UNTOUCHED);
  });
});

describe('what is not judged', () => {
  const { resource } = creating().request;
  const OTHERS: readonly [what: string, changes: Readonly<Record<string, unknown>>][] = [
    ['a service', { resource: { group: '', version: 'v1', resource: 'services' } }],
    ['a pod template', { resource: { group: '', version: 'v1', resource: 'podtemplates' } }],
    ['deployments of another group', { resource: { group: 'x.y', version: 'v1', resource: 'deployments' } }],
    [
      'the scale of a Deployment',
      { resource: { group: 'apps', version: 'v1', resource: 'deployments' }, subResource: 'scale' },
    ],
    ['pods of another group', { resource: { group: 'metrics.k8s.io', version: 'v1', resource: 'pods' } }],
    ['pods/exec', { resource, subResource: 'exec', operation: 'CONNECT' }],
    ['pods/status', { resource, subResource: 'status', operation: 'UPDATE' }],
    [
      'the status of a DaemonSet',
      { resource: { group: 'apps', version: 'v1', resource: 'daemonsets' }, subResource: 'status' },
    ],
    ['DELETE', { operation: 'DELETE', object: null }],
    ['CONNECT', { operation: 'CONNECT' }],
  ];

  it('is allowed unchanged, whatever the object', async () => {
    const { ask } = await runKubernetes(policies({ disks: DISKS }));
    for (const [what, changes] of OTHERS) {
      for (const object of [{ spec: { nodeSelector: { disk: 'tape' } } }, null, undefined, [7]]) {
        for (const path of [ADMISSION, VALIDATION]) {
          const { answer, ...came } = await ask(creating({}, { object, ...changes, namespace: null }), path);
          expect({ what, ...came }).toEqual({ what, uid: 'u-1', ...UNTOUCHED });
          expect(answer.headers.get('X-Enforcement-Generation'), what).toBe('1');
        }
      }
    }
    const judged = creating({ nodeSelector: { disk: 'tape' } }, { subResource: '' });
    expect((await ask(judged)).allowed).toBe(false);
  });
});

describe('a change of a pod', () => {
  it('of a scheduled pod does not judge its node', async () => {
    const { ask } = await runKubernetes(
      policiesForAll({ one: { allowed: { schedulerNames: ['batch'], tolerations: [] } } }),
    );
    const bound = { nodeName: 'n1', schedulerName: 'batch' };
    const tolerating = { ...bound, tolerations: [DEDICATED] };
    expect(await ask(updating(bound, tolerating))).toMatchObject(UNTOUCHED);
    const moved = await ask(updating(bound, { ...tolerating, nodeName: 'n2' }));
    expect(moved).toMatchObject({ allowed: false, message: expect.stringContaining('nodeName: ') });
    expect((await ask(creating(bound))).allowed).toBe(false);
  });
});

describe('a pod of a DaemonSet', () => {
  const run = () => runKubernetes(policiesForAll({ plain: { allowed: { schedulerNames: [] } } }));

  it('may name its node and have the tolerations of Kubernetes', async () => {
    const { ask } = await run();
    expect(await ask(admissionReview('create-by-daemon-set'))).toMatchObject(UNTOUCHED);
  });
});

describe('what is judged apart from pods', () => {
  const POLICIES = {
    resource: { group: 'scheduling.blazar-enforcement', version: 'v1alpha1', resource: 'schedulingpolicies' },
    namespace: null,
  };

  it('is a scheduling policy, which may not have unknown fields', async () => {
    const { ask } = await runKubernetes(policiesForAll({ disks: DISKS }));
    const judge = async (spec: object, changes: object = {}) => {
      const object = {
        apiVersion: 'scheduling.blazar-enforcement/v1alpha1',
        kind: 'SchedulingPolicy',
        metadata: { name: 'p', uid: 'x', managedFields: [{}] },
        spec,
        ...changes,
      };
      return await ask(creating({}, { ...POLICIES, object }), VALIDATION);
    };
    expect(await judge({ required: { nodeSelectors: { disk: ['ssd'] } } })).toMatchObject(UNTOUCHED);
    expect(await judge({ required: { nodeSelector: { disk: ['ssd'] } }, allow: {} })).toMatchObject({
      allowed: false,
      message:
        'the scheduling policy is invalid: spec.required.nodeSelector: unknown field; the nearest right name is "nodeSelectors"; spec.allow: unknown field; the nearest right name is "allowed"',
    });
    expect((await judge({}, { states: {} })).allowed).toBe(false);
    expect((await judge({}, { status: { conditions: [{}] } })).allowed).toBe(true);
    const gone = creating({}, { ...POLICIES, operation: 'DELETE', object: null });
    expect(await ask(gone, VALIDATION)).toMatchObject(UNTOUCHED);
    expect((await ask(creating({}, { ...POLICIES, object: null }), VALIDATION)).allowed).toBe(false);
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`x${index}`, 1]));
    expect((await judge(many)).message?.length).toBeLessThanOrEqual(2000);
  });
});

it('system_tolerations replaces the default ones', async () => {
  const text = policiesForAll({ plain: { allowed: { schedulerNames: [] } } });
  const system_tolerations = ['dedicated=web:NoSchedule'];
  const { ask } = await runKubernetes(text, { kubernetes: { system_tolerations } });
  expect(await ask(creating({ tolerations: [DEDICATED] }))).toMatchObject(UNTOUCHED);
  expect((await ask(creating({ tolerations: [{ ...DEDICATED, value: 'other' }] }))).allowed).toBe(false);
  expect((await ask(admissionReview('create-by-replica-set'))).message).toContain('tolerations[0]: ');
});

describe('the paths', () => {
  it('match literally', async () => {
    const { ask } = await runKubernetes(policiesForAll({ disks: DISKS }));
    for (const path of [
      `${ADMISSION}/`,
      `${VALIDATION}/`,
      '/Kubernetes/admission',
      '/kubernetes',
      `/v1${ADMISSION}`,
    ]) {
      expect((await ask(creating(), path)).status, path).toBe(404);
    }
  });
});
