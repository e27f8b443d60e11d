/** Deployments, Jobs and the like: what is said about the pods that they would create. */
import { describe, expect, it } from 'vitest';
import {
  parseAdmissionReview,
  type WorkloadRequest,
} from '../../../src/kubernetes/admission/admission-review.ts';
import { PodAdmission, type PodAdmissionOptions } from '../../../src/kubernetes/admission/pod-admission.ts';
import { POD_KINDS, WORKLOAD_KINDS } from '../../../src/kubernetes/admission/pod-kinds.ts';
import { WorkloadReview, type WorkloadReviewOptions } from '../../../src/kubernetes/admission/workloads.ts';
import { type PolicySource, SourceUnavailableError } from '../../../src/kubernetes/policies/access.ts';
import { readPolicyDocuments } from '../../../src/kubernetes/policies/documents/documents.ts';
import {
  SchedulingPolicies,
  type SchedulingPoliciesOptions,
} from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { temporaryFile } from '../../support/files.ts';
import {
  admissionReview,
  type CapturedWorkload,
  creating,
  grant,
  policies,
  policiesForAll,
} from '../../support/kubernetes-service.ts';

const PLAIN = { schedulerName: 'default-scheduler' };
const TAPE = { ...PLAIN, nodeSelector: { disk: 'tape' } };
const disks = {
  required: { nodeSelectors: { disk: ['ssd', 'hdd'] } },
  allowed: { schedulerNames: ['default-scheduler'] },
};
const defaults = { ...disks, default: { nodeSelector: { disk: 'ssd' } } };

interface Further {
  readonly text?: string;
  readonly workloads?: WorkloadReviewOptions;
  readonly pods?: PodAdmissionOptions;
  readonly policies?: SchedulingPoliciesOptions;
}

function review({ text = policiesForAll({ disks: defaults }), ...options }: Further = {}) {
  const source = new SchedulingPolicies(
    readPolicyDocuments([temporaryFile('policies.yaml', text)]),
    options.policies,
  );
  return new WorkloadReview(new PodAdmission(source, options.pods), options.workloads);
}

/** An object of a kind with this pod spec in its template. */
function object(kind: string, spec: unknown, metadata: object = {}): object {
  const { path } = POD_KINDS[kind] ?? { path: [] };
  const template: unknown = { metadata: { labels: { a: 'b' } }, spec };
  const body = path.reduceRight<unknown>((inner, step) => ({ [step]: inner }), template) as object;
  return { kind, metadata: { name: 'web', namespace: 'shop', ...metadata }, ...body };
}

function request(kind: string, next: unknown, changes: Readonly<Record<string, unknown>> = {}) {
  const { resource, groups } = POD_KINDS[kind] ?? { resource: '', groups: [] };
  const parsed = parseAdmissionReview(
    creating({}, { resource: { group: groups[0], version: 'v1', resource }, object: next, ...changes }),
  );
  expect(parsed.kind).toBe('workload');
  return parsed as WorkloadRequest;
}
const of = (kind: string, spec: unknown) => request(kind, object(kind, spec));

describe('a workload whose pods would be refused', () => {
  it.each(WORKLOAD_KINDS)('gets a warning for each reason: %s', async (kind) => {
    const spec = { ...TAPE, priorityClassName: 'high' };
    expect(await review().admit(of(kind, spec))).toMatchObject({
      allowed: true,
      message: null,
      patch: [],
      isAudited: true,
      warnings: [
        `this ${kind}'s pods would be refused: priorityClassName: expected nothing, got "high" (no scheduling policy of the account mentions it)`,
        `this ${kind}'s pods would be refused: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)`,
      ],
    });
  });

  it('is told so in other words if only policies in audit mode would refuse them', async () => {
    for (const mode of ['warn', 'refuse'] as const) {
      expect(
        await review({ workloads: { mode }, pods: { audit: ['*'] } }).admit(of('Job', TAPE)),
      ).toMatchObject({
        allowed: true,
        isAudited: true,
        warnings: [
          'a scheduling policy in audit mode would reject this Job\'s pods: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)',
        ],
      });
    }
  });
});

describe('the pods of a workload are judged as they would be created', () => {
  const warned = async (spec: unknown, further: Further = {}) =>
    (await review(further).admit(of('Deployment', spec))).warnings.length > 0;

  it('with the defaults of policies', async () => {
    expect(await warned(PLAIN)).toBe(false);
    expect(await warned(PLAIN, { text: policiesForAll({ disks }) })).toBe(true);
  });

  it('with what the API server fills in', async () => {
    const settings = { defaultPriorityClass: 'everybody' };
    const text = policiesForAll({ disks: { ...defaults, required: { priorityClassNames: ['everybody'] } } });
    expect(await warned({}, { text, workloads: { settings }, policies: settings })).toBe(false);
    expect(await warned({}, { text })).toBe(true);
    // The two tolerations count as asked for where the operator says so.
    expect(await warned({}, { policies: { systemTolerations: [] } })).toBe(true);
    // As with --default-not-ready-toleration-seconds=60.
    const minute = {
      systemTolerations: ['unreachable', 'not-ready'].map((of) => `node.kubernetes.io/${of}:NoExecute:60`),
    };
    expect(await warned({}, { policies: minute, workloads: { settings: minute } })).toBe(false);
    const forever = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };
    expect(await warned({ tolerations: [forever] })).toBe(true);
  });

  it('for the service account of the template, in the namespace of the workload', async () => {
    const text = [policies({ defaults }), grant(['defaults'], ['ServiceAccount', 'builder', 'shop'])].join(
      '---\n',
    );
    expect(await warned({ ...PLAIN, serviceAccountName: 'builder' }, { text })).toBe(false);
    expect(await warned({ ...PLAIN, serviceAccount: 'builder' }, { text })).toBe(false);
    expect(await warned(PLAIN, { text })).toBe(true);
    const elsewhere = request('Job', object('Job', { ...PLAIN, serviceAccountName: 'builder' }), {
      namespace: 'other',
    });
    expect(await review({ text }).admit(elsewhere)).toMatchObject({
      account: { user: 'system:serviceaccount:other:builder' },
      isAudited: true,
    });
  });

  it('whoever creates the workload, and whatever annotations its pods have', async () => {
    const spec = { ...TAPE, nodeName: 'n1' };
    for (const [username, groups] of [
      ['system:node:n1', ['system:nodes']],
      ['system:serviceaccount:kube-system:daemon-set-controller', ['system:serviceaccounts']],
      ['system:kube-scheduler', []],
    ] as const) {
      const template = { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } }, spec };
      const mirrored = { ...object('Deployment', spec), spec: { template } };
      const by = request('Deployment', mirrored, { userInfo: { username, groups } });
      expect((await review().admit(by)).warnings, username).not.toEqual([]);
    }
  });

  it('and not at all if nothing can be known of them', async () => {
    const source: PolicySource = { policiesOf: () => Promise.reject(new SourceUnavailableError('away')) };
    for (const mode of ['warn', 'refuse'] as const) {
      const away = new WorkloadReview(new PodAdmission(source), { mode });
      await expect(away.admit(of('Deployment', PLAIN))).rejects.toThrow(SourceUnavailableError);
    }
    for (const spec of [null, 7, { tolerations: {} }, { nodeSelector: { disk: 7 } }]) {
      await expect(review().admit(of('Deployment', spec))).rejects.toThrow(
        /^request\.object\.spec\.template/,
      );
    }
    await expect(review().admit(request('Job', object('Job', {}), { namespace: null }))).rejects.toThrow(
      /^request\.namespace/,
    );
  });
});

describe('a workload is judged', () => {
  const update = (kind: string, next: object, before: object) =>
    review().concerns(request(kind, next, { operation: 'UPDATE', oldObject: before }));

  it.each(WORKLOAD_KINDS)('when its template changes, and not when something else does: %s', (kind) => {
    const before = object(kind, TAPE);
    expect(update(kind, { ...before, metadata: { labels: { a: 'b' } }, status: {} }, before)).toBe(false);
    const scaled = object(kind, TAPE) as { spec: object };
    expect(update(kind, { ...scaled, spec: { ...scaled.spec, replicas: 9 } }, before)).toBe(false);
    expect(update(kind, object(kind, { ...TAPE, containers: [{ image: 'y' }] }), before)).toBe(true);
    expect(update(kind, object(kind, { ...TAPE, serviceAccountName: 'y' }), before)).toBe(true);
    expect(update(kind, object(kind, PLAIN), before)).toBe(true);
  });

  it('unless another object controls it', () => {
    const owned = (ownerReferences: unknown) =>
      review().concerns(request('ReplicaSet', object('ReplicaSet', TAPE, { ownerReferences })));
    expect(owned([{ kind: 'Deployment', name: 'web', controller: true }])).toBe(false);
    expect(owned([{ kind: 'Application', name: 'shop' }, { controller: true }])).toBe(false);
    for (const none of [[], null, undefined, 7, [null], [{ controller: false }], [{ controller: 'true' }]]) {
      expect(owned(none)).toBe(true);
    }
  });

  it('and may be anything, as it is not judged here whether it is valid', () => {
    for (const next of [null, 7, 'x', [], {}, { spec: { template: [] } }, { metadata: 7 }]) {
      expect(review().concerns(request('Deployment', next))).toBe(true);
    }
  });
});

describe('what an API server sends', () => {
  const read = (name: CapturedWorkload) => parseAdmissionReview(admissionReview(name)) as WorkloadRequest;

  it.each([
    ['create-deployment', 'Deployment', 'default'],
    ['create-replication-controller', 'ReplicationController', 'default'],
    ['create-stateful-set', 'StatefulSet', 'default'],
    ['create-job', 'Job', 'default'],
    ['create-cron-job', 'CronJob', 'reporter'],
  ] as const)('is judged: %s', async (name, workload, account) => {
    expect(read(name)).toMatchObject({ kind: 'workload', workload, namespace: 'shop', dryRun: false });
    expect(review().concerns(read(name))).toBe(true);
    expect(await review().admit(read(name))).toMatchObject({
      account: { user: `system:serviceaccount:shop:${account}` },
      warnings: [expect.stringMatching(`^this ${workload}'s pods would be refused: nodeSelector disk: `)],
    });
  });
});
