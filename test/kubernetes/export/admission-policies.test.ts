import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { admissionPolicies, admissionPolicy } from '../../../src/kubernetes/export/admission-policies.ts';
import { MERGE_STRATEGIES } from '../../../src/kubernetes/policies/merge.ts';
import { pod, policy, proposalPolicies } from '../../support/scheduling-policies.ts';
import {
  type AdmissionCase,
  admissionCases,
  admissionRequest,
  bothOf,
  OPTIONS,
} from './admission-policy-cases.ts';
import { judge } from './admission-policy-evaluator.ts';

const REQUEST: AdmissionCase = {
  policies: [],
  rights: ['cluster', 'cluster', 'cluster'],
  strategy: 'deep',
  subject: 'pods',
  pod: pod({ schedulerName: 'default-scheduler', serviceAccountName: 'trainer' }),
  current: undefined,
  username: 'lin',
  node: 'node-1',
  refusesTopologySpread: false,
  defaultPriorityClass: undefined,
};

const DISKS = policy('disks', {
  allowed: { schedulerNames: ['default-scheduler'], nodeSelectors: { disk: ['ssd', "o'hdd"] } },
});

const messagesFor = (one: Partial<AdmissionCase>) => bothOf({ ...REQUEST, ...one }).exported.messages;
const wanting = (spec: object) =>
  pod({ schedulerName: 'default-scheduler', serviceAccountName: 'trainer', ...spec });

const EVERYTHING = { schedulerNames: [], tolerations: [], affinities: {} };
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const ABOUT_ARCH = { nodeSelectorTerms: [{ matchExpressions: [{ keys: ['arch'] }] }] };
const PREFERRING = policy('preferring', {
  required: { affinities: { nodeAffinities: { [PREFERRED]: ABOUT_ARCH } } },
  allowed: EVERYTHING,
});

const tolerating = (rule: object) =>
  policy('tolerating', { allowed: { schedulerNames: [], tolerations: [rule] } });
const binder = (name: string, priorityClassNames: string[]) =>
  policy(name, { required: { priorityClassNames }, allowed: EVERYTHING });

const DAEMON = { username: 'system:serviceaccount:kube-system:daemon-set-controller' };

/** Of a node that is not ready. Allows no toleration but those of the system. */
const tolerated = (tolerationSeconds: number | undefined, more: object = {}): Partial<AdmissionCase> => ({
  policies: [policy('any', { allowed: { schedulerNames: [] } })],
  pod: wanting({
    tolerations: [
      {
        key: 'node.kubernetes.io/not-ready',
        operator: 'Exists',
        effect: 'NoExecute',
        ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
      },
    ],
  }),
  ...more,
});

function preferring(...keys: string[]) {
  const preferences = keys.map((key) => ({
    weight: 1,
    preference: { matchExpressions: [{ key, operator: 'Exists' }] },
  }));
  return wanting({ affinity: { nodeAffinity: { [PREFERRED]: preferences } } });
}

const expression = z
  .string()
  .min(1)
  .regex(/^[ -~]*$/);
const named = z.strictObject({ name: z.string().regex(/^[A-Za-z][A-Za-z0-9-]*$/), expression });
const metadata = z.strictObject({ name: z.string().regex(/^[a-z0-9.-]+$/) });

/** admissionregistration.k8s.io/v1, as far as it is used. */
const POLICY = z.strictObject({
  apiVersion: z.literal('admissionregistration.k8s.io/v1'),
  kind: z.literal('ValidatingAdmissionPolicy'),
  metadata,
  spec: z.strictObject({
    failurePolicy: z.literal('Fail'),
    matchConstraints: z.strictObject({
      resourceRules: z.array(
        z.strictObject({
          apiGroups: z.array(z.string()),
          apiVersions: z.array(z.literal('v1')),
          operations: z.array(z.enum(['CREATE', 'UPDATE'])),
          resources: z.array(z.string()),
          scope: z.literal('Namespaced'),
        }),
      ),
    }),
    matchConditions: z.array(named).max(64),
    variables: z.array(named),
    validations: z.array(
      z.strictObject({
        expression,
        message: z.string().min(1).regex(/^.*$/),
        messageExpression: expression.optional(),
        reason: z.literal('Forbidden'),
      }),
    ),
  }),
});

const BINDING = z.strictObject({
  apiVersion: z.literal('admissionregistration.k8s.io/v1'),
  kind: z.literal('ValidatingAdmissionPolicyBinding'),
  metadata,
  spec: z.strictObject({
    policyName: z.string(),
    validationActions: z.array(z.enum(['Deny', 'Warn', 'Audit'])),
    matchResources: z.object({ namespaceSelector: z.object({}) }).optional(),
  }),
});

describe('an exported ValidatingAdmissionPolicy', () => {
  it('judges requests as the webhook does', () => {
    fc.assert(
      fc.property(admissionCases, (one) => {
        const { webhook, exported } = bothOf(one);
        expect(exported).toMatchObject({ allowed: webhook });
      }),
      { numRuns: 25 },
    );
  });

  // Where random requests seldom look: what is expected is written here too.
  it.each<[why: string, allowed: boolean, request: Partial<AdmissionCase>]>([
    [
      'a toleration of all values, by a rule that lists Exists and a value',
      true,
      {
        policies: [tolerating({ operators: ['Exists', 'Equal'], values: ['1'] })],
        pod: wanting({ tolerations: [{ key: 'gpu', operator: 'Exists' }] }),
      },
    ],
    [
      'a toleration of all values, by a rule that lists only a value',
      false,
      {
        policies: [tolerating({ values: ['1'] })],
        pod: wanting({ tolerations: [{ key: 'gpu', operator: 'Exists' }] }),
      },
    ],
    [
      'one of two preferences, where a preference is required',
      true,
      { policies: [PREFERRING], pod: preferring('arch', 'zone') },
    ],
    [
      'no such preference, where one is required',
      false,
      { policies: [PREFERRING], pod: preferring('zone', 'disk') },
    ],
    ['a toleration that the system adds', true, tolerated(300)],
    ['such a toleration for another time', false, tolerated(301)],
    ['such a toleration without an end', false, tolerated(undefined)],
    ['a toleration of daemons, by a pod of theirs', true, tolerated(undefined, DAEMON)],
    ['such a toleration with an end', false, tolerated(60, DAEMON)],
    ['a binding by who may bind', true, { subject: 'bindings', policies: [binder('a', ['gold'])] }],
    [
      'a binding by policies that no pod can satisfy',
      false,
      {
        subject: 'bindings',
        strategy: 'intersection',
        policies: [binder('a', ['gold']), binder('b', ['iron'])],
      },
    ],
    [
      'a binding by policies that some pod can satisfy',
      true,
      {
        subject: 'bindings',
        strategy: 'intersection',
        policies: [binder('a', ['gold']), binder('b', ['iron', 'gold'])],
      },
    ],
  ])('%s: allowed %s, as by the webhook', (_, allowed, request) => {
    const { webhook, exported } = bothOf({ ...REQUEST, ...request });
    expect({ webhook, exported: exported.allowed }).toEqual({ webhook: allowed, exported: allowed });
  });

  it('says which label is wrong, in words of the webhook', () => {
    const policies = [DISKS];
    expect(messagesFor({ policies, pod: wanting({ nodeSelector: { disk: "o'hdd" } }) })).toEqual([]);
    expect(messagesFor({ policies, pod: wanting({ nodeSelector: { disk: 'tape' } }) })).toEqual([
      'nodeSelector disk: expected a value that is allowed, got tape (scheduling policy disks)',
    ]);
    expect(messagesFor({ policies, pod: wanting({ schedulerName: 'own' }) })).toEqual([
      'schedulerName: expected default-scheduler, got own (scheduling policy disks)',
    ]);
  });

  it('refuses where a right is unknown, because that policy may require something', () => {
    const policies = [policy('a', { required: { nodeSelectors: { disk: [] } } }), DISKS];
    const request = admissionRequest({ ...REQUEST, policies });
    const exported = admissionPolicy(policies, 'pods', OPTIONS);
    const may = (a: boolean | undefined) =>
      judge(exported, { ...request, authorizer: ({ name }) => (name === 'a' ? a : true) }).messages;
    expect(may(false)).toEqual([]);
    expect(may(true)).toEqual([expect.stringContaining('nodeSelector disk: ')]);
    expect(may(undefined)).toEqual(['it is unknown which scheduling policies the account may use']);
  });

  it('asks for the right in the namespace of the pod, for its service account, in the group of the policy', () => {
    const asked: unknown[] = [];
    const request = admissionRequest({ ...REQUEST, policies: [DISKS] });
    const authorizer = (question: unknown) => asked.push(question) > 0;
    judge(admissionPolicy([DISKS], 'pods', OPTIONS), { ...request, authorizer });
    expect(asked).toEqual([
      {
        user: 'system:serviceaccount:research:trainer',
        group: 'extensions',
        resource: 'schedulingpolicies',
        namespace: 'research',
        name: 'disks',
        verb: 'use',
      },
    ]);
  });

  it('has the fields of the API and texts of one line, whatever the policies are called', () => {
    const hostile = "x' || true //\n\u202e";
    const policies = [
      ...[2, 7, 12, 15, 17, 20]
        .flatMap(proposalPolicies)
        .map((one, index) => ({ ...one, name: `${hostile}${index}` })),
      policy('z', { allowed: { nodeSelectors: { [hostile]: [hostile] }, schedulerNames: [hostile] } }),
    ];
    for (const strategy of MERGE_STRATEGIES) {
      const objects = admissionPolicies(policies, {
        ...OPTIONS,
        strategy,
        exemptNamespaces: ['kube-system'],
      });
      expect(objects.map(({ metadata: { name } }) => name)).toEqual(
        ['pods', 'pods', 'daemonsets', 'daemonsets', 'bindings', 'bindings'].map((one) => `test-${one}`),
      );
      for (const object of objects) {
        expect(z.union([POLICY, BINDING]).safeParse(object).error).toBeUndefined();
      }
    }
    expect(messagesFor({ policies: [{ ...DISKS, name: hostile }], rights: ['none'] })).toEqual([
      'the account may use no scheduling policy',
    ]);
  });

  it('is not written for more policies than Kubernetes would ask for', () => {
    const many = Array.from({ length: 50 }, (_, index) => policy(`p${index}`, {}));
    expect(() => admissionPolicies(many, OPTIONS)).toThrow(
      /^test-pods: expected a cost, to which each policy adds 350000 for a check of rights, of at most 10000000, got 17\d{6}: /,
    );
    expect(admissionPolicies(many.slice(0, 28), OPTIONS)).toHaveLength(6);
  });

  it.each<[what: string, spec: object, message: RegExp]>([
    [
      'could not read',
      { allowed: { nodeSelectors: { disk: values(5000) } } },
      /^test-pods: expected expressions of at most 100000, got \d+: /,
    ],
    [
      'could not evaluate',
      {
        default: {
          affinity: {
            podAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: values(600, 'web').map((app) => ({
                topologyKey: 'z',
                labelSelector: { matchLabels: { app } },
              })),
            },
          },
        },
      },
      /^test-pods: expected an expression with a cost of at most 1000000, got \d+: /,
    ],
    [
      'could not store',
      {
        allowed: { nodeSelectors: Object.fromEntries(values(400, 'l').map((label) => [label, values(150)])) },
      },
      /^test-pods: expected an object of at most 1400000, got \d+: /,
    ],
  ])('is not written with what Kubernetes %s', (_, spec, message) => {
    expect(() => admissionPolicies([policy('long', spec)], OPTIONS)).toThrow(message);
  });
});

function values(count: number, name = 'a-value-with-a-long-name'): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}
