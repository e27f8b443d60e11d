/** The wire format of admission webhooks, by itself; as it comes over HTTP: test/server/kubernetes*.test.ts. */
import { describe, expect, it } from 'vitest';
import {
  admissionAnswer,
  admissionAnswerSchema,
  type BindingRequest,
  type PodRequest,
  parseAdmissionReview,
} from '../../../src/kubernetes/admission/admission-review.ts';
import type { PodAdmissionOptions } from '../../../src/kubernetes/admission/pod-admission.ts';
import { readPolicyDocuments } from '../../../src/kubernetes/policies/documents/documents.ts';
import {
  SchedulingPolicies,
  type SchedulingPoliciesOptions,
} from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { temporaryFile } from '../../support/files.ts';
import {
  admissionReview,
  creating,
  grant,
  operationsOf,
  policies,
  policiesForAll,
  updating,
  type WireReview,
} from '../../support/kubernetes-service.ts';
import { deepFreeze } from '../../support/requests.ts';
import { reviewer } from './reviewer.ts';

describe('a parsed review', () => {
  it('has the request with the original pod', () => {
    const review = deepFreeze(admissionReview('create-by-replica-set'));
    const read = parseAdmissionReview(review);
    expect(read).toEqual({
      kind: 'pod',
      name: expect.stringMatching(/^web-/),
      groups: expect.arrayContaining(['system:authenticated']),
      uid: '9f1c0a52-3f0e-4a7e-8d5b-6a4f2f9d1c11',
      namespace: 'shop',
      pod: review.request.object,
      current: undefined,
      isUpdate: false,
      username: 'system:serviceaccount:kube-system:replicaset-controller',
      dryRun: false,
    });
    expect(read.pod).toBe(review.request.object);
  });

  it('has no current pod in a creation, or if an update lacks it', () => {
    for (const oldObject of [null, undefined]) {
      expect(parseAdmissionReview(updating({}, {}, { oldObject }))).toMatchObject({
        isUpdate: true,
        current: undefined,
      });
    }
    const stray = creating({}, { oldObject: { spec: 7 } });
    expect(parseAdmissionReview(stray)).toMatchObject({ isUpdate: false, current: undefined });
  });

  it('of other objects has only the uid', () => {
    const services = { group: '', version: 'v1', resource: 'services' };
    for (const changes of [{ resource: services }, { subResource: 'status' }, { operation: 'DELETE' }]) {
      const review = creating({}, { ...changes, object: 's3cret', namespace: undefined });
      expect(parseAdmissionReview(review)).toEqual({ kind: 'other', uid: 'u-1', pod: undefined });
    }
  });
});

it('the answer has the patch in base64, the reason as status, and the warnings', () => {
  const patch = [{ op: 'add', path: '/spec/nodeSelector', value: { größe: '🚀', other: '??????' } }];
  const answer = admissionAnswer('u-1', { allowed: false, message: 'no', patch, warnings: ['careful'] });
  const { response } = answer;
  expect(response).toMatchObject({
    patchType: 'JSONPatch',
    patch: expect.stringMatching(/^[A-Za-z0-9+/]*\/[A-Za-z0-9+/]*=*$/),
  });
  expect(operationsOf(response)).toEqual(patch);
  expect(response).toMatchObject({
    allowed: false,
    status: { code: 403, reason: 'Forbidden', message: 'no' },
    warnings: ['careful'],
  });
  expect(admissionAnswerSchema.parse(answer)).toEqual(answer);
});

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const CONTROLLER = 'system:serviceaccount:kube-system:daemon-set-controller';
const requiredTerms = (...nodeSelectorTerms: object[]) => ({
  nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } },
});
const GPU = { key: 'gpu', operator: 'In', values: ['true'] };
const HAS_GPU = requiredTerms({ matchExpressions: [GPU] });
/** As the controller leaves the affinity of a pod: see test/peers. */
const ON_N1 = requiredTerms({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] });
const NO_RULES = { free: { allowed: { schedulerNames: ['default-scheduler'] } } };

function admission(text: string, options: PodAdmissionOptions = {}, more: SchedulingPoliciesOptions = {}) {
  const documents = readPolicyDocuments([temporaryFile('policies.yaml', text)]);
  expect(documents.problems).toEqual([]);
  return reviewer(new SchedulingPolicies(documents, more), options);
}

function requestOf<Kind extends 'pod' | 'template' | 'binding'>(kind: Kind, review: WireReview | object) {
  const request = parseAdmissionReview(review);
  expect(request.kind).toBe(kind);
  return request as Kind extends 'binding' ? BindingRequest : PodRequest;
}

/** A DaemonSet that is to be created, or changed from another template. */
function daemonSet(spec: object, before?: object) {
  const object = (template: object) => ({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agents', namespace: 'shop' },
    spec: { selector: {}, template: { metadata: { labels: { a: 'b' } }, spec: template } },
  });
  return creating(
    {},
    {
      resource: { group: 'apps', version: 'v1', resource: 'daemonsets' },
      object: object(spec),
      ...(before !== undefined && { operation: 'UPDATE', oldObject: object(before) }),
      userInfo: { username: 'lin', groups: ['system:authenticated'] },
    },
  );
}

describe('the template of a DaemonSet', () => {
  const judge = (specs: Record<string, object>, review: object, addDefaults = true) =>
    admission(policiesForAll(specs)).review(requestOf('template', review), { addDefaults });

  it('is judged when it is created, for its service account', () => {
    expect(judge(NO_RULES, daemonSet({ schedulerName: 'default-scheduler' }))).toMatchObject({
      allowed: true,
      patch: [],
    });
    const spec = { serviceAccountName: 'agent', affinity: HAS_GPU, tolerations: [{ operator: 'Exists' }] };
    const { allowed, message, account } = judge(NO_RULES, daemonSet(spec));
    expect({ allowed, user: account.user }).toEqual({
      allowed: false,
      user: 'system:serviceaccount:shop:agent',
    });
    expect(message).toMatch(
      /^the pod template of the DaemonSet does not fit the scheduling policies of system:serviceaccount:shop:agent: tolerations\[0\]: .*affinity\.nodeAffinity\./,
    );
  });

  it('is judged when a change affects where its pods run, or their account', () => {
    const refused = (spec: object, before: object) => !judge(NO_RULES, daemonSet(spec, before)).allowed;
    const wrong = { affinity: HAS_GPU };
    expect(refused(wrong, {})).toBe(true);
    expect(refused({ ...wrong, containers: [{}] }, wrong)).toBe(false);
    expect(refused({ ...wrong, serviceAccountName: 'other' }, wrong)).toBe(true);
    expect(refused({ ...wrong, nodeName: 'n1' }, wrong)).toBe(true);
  });

  it('gets defaults in its template, when created and when changed', () => {
    const specs = { a: { ...NO_RULES.free, default: { nodeSelector: { disk: 'ssd' } } } };
    const add = { op: 'add', path: '/spec/template/spec/nodeSelector', value: { disk: 'ssd' } };
    expect(judge(specs, daemonSet({})).patch).toEqual([add]);
    expect(judge(specs, daemonSet({ priorityClassName: '' }, { priorityClassName: 'x' })).patch).toEqual([
      add,
    ]);
    expect(judge(specs, daemonSet({}), false).patch).toEqual([]);
  });

  it('may not have the tolerations that its controller adds to its pods', () => {
    const claimed = daemonSet({
      tolerations: [
        { key: 'node.kubernetes.io/network-unavailable', operator: 'Exists', effect: 'NoSchedule' },
      ],
    });
    for (const username of ['lin', CONTROLLER]) {
      claimed.request.userInfo = { username };
      expect(judge(NO_RULES, claimed).allowed, username).toBe(false);
    }
  });

  it('must have what is required, which its pods need not repeat', () => {
    const rule = { keys: ['gpu'], operators: ['In'], values: ['true'] };
    const affinities = {
      nodeAffinities: { [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: [rule] }] } },
    };
    const specs = { gpus: { ...NO_RULES.free, required: { affinities } } };
    expect(judge(specs, daemonSet({})).allowed).toBe(false);
    expect(judge(specs, daemonSet({ affinity: HAS_GPU })).allowed).toBe(true);
    const podBy = (username: string, affinity: object) =>
      admission(policiesForAll(specs)).review(
        requestOf('pod', creating({ affinity }, { userInfo: { username } })),
        { addDefaults: true },
      ).allowed;
    expect(podBy(CONTROLLER, ON_N1)).toBe(true);
    expect(podBy('lin', ON_N1)).toBe(false);
    // What another webhook has added is judged.
    const term = { matchExpressions: [{ key: 'disk', operator: 'Exists' }] };
    expect(podBy(CONTROLLER, requiredTerms(term))).toBe(false);
    expect(
      podBy(CONTROLLER, requiredTerms({ ...ON_N1.nodeAffinity[REQUIRED].nodeSelectorTerms[0], ...term })),
    ).toBe(false);
  });

  it.each([{}, { spec: null }, { spec: {} }, { spec: { template: 7 } }, null, [], 'x'])(
    'is rejected if it is malformed: %j',
    (object) => {
      const review = daemonSet({});
      expect(() => parseAdmissionReview({ ...review, request: { ...review.request, object } })).toThrow(
        /^request\.object/,
      );
    },
  );
});

describe('a binding', () => {
  const binding = (user: string, node = 'n1', groups = ['system:authenticated']) => ({
    object: {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'web' },
      target: { kind: 'Node', name: node },
    },
    userInfo: { username: user, groups },
  });
  const FORMS = [
    { resource: { group: '', version: 'v1', resource: 'pods' }, subResource: 'binding' },
    { resource: { group: '', version: 'v1', resource: 'bindings' } },
  ];
  const all = { allowed: { schedulerNames: [], affinities: {}, tolerations: [] } };
  const text = [
    policies({ all, free: NO_RULES.free }),
    grant(['all'], ['User', 'own-scheduler']),
    grant(['all'], ['User', 'of-shop'], 'shop'),
    grant(['all'], ['User', 'of-other'], 'other'),
    grant(['free'], ['Group', 'system:authenticated']),
  ].join('---\n');

  it.each(FORMS)('is allowed for schedulers: %j', (form) => {
    const judge = (user: string, options: PodAdmissionOptions = {}) =>
      admission(text, options).review(requestOf('binding', creating({}, { ...form, ...binding(user) })), {
        addDefaults: false,
      });
    expect(judge('system:kube-scheduler')).toMatchObject({ allowed: true, warnings: [] });
    expect(judge('lin')).toMatchObject({
      allowed: false,
      message: expect.stringMatching(
        /^the binding does not fit the scheduling policies of lin: nodeName: expected nothing, because /,
      ),
      account: { user: 'lin', namespace: 'shop' },
    });
    expect(judge('lin', { schedulers: ['lin'] }).allowed).toBe(true);
    expect(judge('system:kube-scheduler', { schedulers: [] }).allowed).toBe(false);
    expect(judge('lin', { audit: ['*'] })).toMatchObject({ allowed: true, isAudited: true });
    expect(judge('lin', { audit: ['*'] }).warnings[0]).toContain('would reject this binding: nodeName: ');
  });

  it('is allowed for users whose policies allow it, in that namespace', () => {
    const allowed = (user: string) =>
      admission(text).review(requestOf('binding', creating({}, { ...FORMS[0], ...binding(user) })), {
        addDefaults: false,
      }).allowed;
    expect(['own-scheduler', 'of-shop', 'of-other', ''].map(allowed)).toEqual([true, true, false, false]);
    const nobody = creating({}, { ...FORMS[0], ...binding('own-scheduler'), userInfo: null });
    expect(admission(text).review(requestOf('binding', nobody), { addDefaults: false }).allowed).toBe(false);
  });

  it.each([{}, { target: null }, { target: {} }, null])('is rejected if it is malformed: %j', (object) => {
    const review = creating({}, { ...FORMS[0], ...binding('lin') });
    expect(() => parseAdmissionReview({ ...review, request: { ...review.request, object } })).toThrow(
      /^request\.object/,
    );
  });
});

describe('a mirror pod', () => {
  const mirror = (
    user: string,
    groups: string[],
    annotations: object = { 'kubernetes.io/config.mirror': 'x' },
  ) => {
    const review = creating(
      { nodeName: 'n1', tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] },
      { userInfo: { username: user, groups } },
    );
    review.request.object.metadata.annotations = annotations;
    return admission(
      policiesForAll({ a: { ...NO_RULES.free, default: { nodeSelector: { disk: 'ssd' } } } }),
    ).review(requestOf('pod', review), { addDefaults: true });
  };

  it('is admitted unchanged if the kubelet of its node creates it', () => {
    expect(mirror('system:node:n1', ['system:nodes', 'system:authenticated'])).toMatchObject({
      allowed: true,
      patch: [],
    });
  });

  it('is judged like any other pod if anyone else creates it', () => {
    for (const [user, groups, annotations] of [
      ['lin', ['system:authenticated']],
      ['lin', ['system:nodes']],
      ['system:node:n2', ['system:nodes']],
      ['system:node:n1', ['system:authenticated']],
      ['system:node:', ['system:nodes']],
      ['system:node:n1', ['system:nodes'], {}],
      ['system:node:n1', ['system:nodes'], { 'kubernetes.io/config.source': 'file' }],
    ] as const) {
      expect(mirror(user, [...groups], annotations).allowed, user).toBe(false);
    }
  });
});
