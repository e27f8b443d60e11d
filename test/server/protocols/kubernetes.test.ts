/** What the API server of Kubernetes is answered. Source: RFC 6902, and Kubernetes docs, "Dynamic Admission Control". */
import { describe, expect, it } from 'vitest';
import { schedulingPolicy } from '../../peers/cluster-objects.ts';
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

describe('a plain pod', () => {
  it('gets the defaults by a minimal patch', async () => {
    const { ask } = await runKubernetes(policiesForAll({ parts: PARTS }));
    const review = admissionReview('create-by-replica-set');
    const { patch, uid, answer, ...came } = await ask(review);
    expect(came).toMatchObject({ status: 200, allowed: true, message: undefined, warnings: [] });
    expect(uid).toBe('9f1c0a52-3f0e-4a7e-8d5b-6a4f2f9d1c11');
    expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('X-Enforcement-Generation')).toBe('1');
    expect(answer.json).toMatchObject({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' });
    expect([...patch].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { op: 'add', path: '/spec/nodeSelector', value: { 'kubernetes.io/arch': 'amd64' } },
      { op: 'remove', path: '/spec/preemptionPolicy' },
      { op: 'remove', path: '/spec/priority' },
      { op: 'add', path: '/spec/priorityClassName', value: 'low' },
      { op: 'replace', path: '/spec/schedulerName', value: 'batch' },
      { op: 'add', path: '/spec/tolerations/2', value: DEDICATED },
    ]);
    const { object } = patched(review, patch).request;
    const { priority: _, preemptionPolicy: __, ...spec } = review.request.object.spec;
    const tolerations = [...(spec.tolerations as object[]), DEDICATED];
    expect(object).toEqual({ ...review.request.object, spec: { ...spec, ...PARTS.default, tolerations } });
  });

  it('keeps its own labels, and gets missing ones with escaped names', async () => {
    const nodeSelector = { 'kubernetes.io/arch': 'amd64', 'a~b/c': 'd' };
    const { ask } = await runKubernetes(
      policiesForAll({ labels: { allowed: { nodeSelectors: {} }, default: { nodeSelector } } }),
    );
    const review = creating({ nodeSelector: { disk: 'ssd' } });
    const { patch } = await ask(review);
    expect(patch.map(({ path }) => path).sort()).toEqual([
      '/spec/nodeSelector/a~0b~1c',
      '/spec/nodeSelector/kubernetes.io~1arch',
    ]);
    expect(patched(review, patch).request.object.spec.nodeSelector).toEqual({ disk: 'ssd', ...nodeSelector });
  });
});

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
  const of = (group: string, name: string) => ({ resource: { group, version: 'v1', resource: name } });
  const OTHERS: readonly [what: string, changes: Readonly<Record<string, unknown>>][] = [
    ['a service', of('', 'services')],
    ['a pod template', of('', 'podtemplates')],
    ['deployments of another group', of('x.y', 'deployments')],
    ['the scale of a Deployment', { ...of('apps', 'deployments'), subResource: 'scale' }],
    ['pods of another group', of('metrics.k8s.io', 'pods')],
    ['pods/exec', { subResource: 'exec', operation: 'CONNECT' }],
    ['pods/status', { subResource: 'status', operation: 'UPDATE' }],
    ['the status of a DaemonSet', { ...of('apps', 'daemonsets'), subResource: 'status' }],
    ['DELETE', { operation: 'DELETE', object: null }],
  ];

  it('is allowed unchanged, whatever the object', async () => {
    const { ask } = await runKubernetes(policies({ disks: DISKS }));
    for (const [what, changes] of OTHERS) {
      for (const object of [{ spec: { nodeSelector: { disk: 'tape' } } }, [7]]) {
        const { answer, ...came } = await ask(creating({}, { object, ...changes, namespace: null }));
        expect({ what, ...came }).toEqual({ what, uid: 'u-1', ...UNTOUCHED });
        expect(answer.headers.get('X-Enforcement-Generation'), what).toBe('1');
      }
    }
    const judged = creating({ nodeSelector: { disk: 'tape' } }, { subResource: '' });
    expect((await ask(judged)).allowed).toBe(false);
  });
});

describe('a node that is named', () => {
  it('is not judged again by a change of a scheduled pod', async () => {
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

  it('may be that of a pod of a DaemonSet, which has the tolerations of Kubernetes', async () => {
    const { ask } = await runKubernetes(policiesForAll({ plain: { allowed: { schedulerNames: [] } } }));
    const review = admissionReview('create-by-daemon-set');
    expect(await ask(review)).toMatchObject(UNTOUCHED);
    const userInfo = { username: 'lin', groups: [] };
    expect((await ask({ ...review, request: { ...review.request, userInfo } })).allowed).toBe(false);
  });
});

describe('what is judged apart from pods', () => {
  const POLICIES = {
    resource: { group: 'scheduling.blazar-enforcement', version: 'v1alpha1', resource: 'schedulingpolicies' },
    namespace: null,
  };

  it('is a scheduling policy, which may not have unknown fields', async () => {
    const { ask } = await runKubernetes(policiesForAll({ disks: DISKS }));
    const judge = (spec: object) =>
      ask(creating({}, { ...POLICIES, object: schedulingPolicy('p', spec) }), VALIDATION);
    expect(await judge({ required: { nodeSelectors: { disk: ['ssd'] } } })).toMatchObject(UNTOUCHED);
    expect(await judge({ required: { nodeSelector: { disk: ['ssd'] } } })).toMatchObject({
      allowed: false,
      message:
        'the scheduling policy is invalid: spec.required.nodeSelector: unknown field; the nearest right name is "nodeSelectors"',
    });
    const gone = creating({}, { ...POLICIES, operation: 'DELETE', object: null });
    expect(await ask(gone, VALIDATION)).toMatchObject(UNTOUCHED);
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
    for (const path of [`${ADMISSION}/`, '/Kubernetes/admission', '/kubernetes', `/v1${ADMISSION}`]) {
      expect((await ask(creating(), path)).status, path).toBe(404);
    }
  });
});
