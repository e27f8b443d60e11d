/** What `scheduling-policy export` prints, judged by Kubernetes itself: objects and requests that have nothing random. */
import { afterAll, describe, expect, it } from 'vitest';
import { policy, policyFile, run } from '../cli/scheduling-policy/files.ts';
import { parse } from '../etc/kubernetes/manifests.ts';
import { type AskedRequest, admissionJudge } from './admission-judge.ts';

const judge = admissionJudge();
afterAll(() => judge?.remove());

const NAME = 'team.gpu-2.v1';
const POLICIES = policy(
  NAME,
  "{allowed: {schedulerNames: [default-scheduler], nodeSelectors: {example.com/o'disk: [ssd]}, tolerations: [{keys: [gpu]}]}}",
);
const FLAGS = ['--name', 'scheduling.v1', '--exempt-namespace', 'infra'];
const RIGHT = `use/extensions/schedulingpolicies/${NAME}`;

const pod = (spec: object = {}, metadata: object = {}) => ({
  metadata: { name: 'web', ...metadata },
  spec: { containers: [{ name: 'web', image: 'web' }], schedulerName: 'default-scheduler', ...spec },
});
const aPod: AskedRequest = {
  operation: 'CREATE',
  resource: 'pods',
  kind: 'Pod',
  namespace: 'shop',
  user: 'lin',
  object: pod(),
  allowed: [`${RIGHT}@system:serviceaccount:shop:default`],
};
const NOT_ALLOWED = pod({ nodeName: 'n1' });
const onSubresource = (subresource: string): Partial<AskedRequest> => ({
  operation: 'UPDATE',
  subresource,
  object: NOT_ALLOWED,
  oldObject: pod(),
});
const template = (spec: object) => ({
  metadata: { name: 'web' },
  spec: { selector: {}, template: { ...pod(spec), metadata: { labels: { a: 'b' } } } },
});
const bound = (resource: string, subresource = ''): Partial<AskedRequest> => ({
  resource,
  subresource,
  kind: 'Binding',
  object: { metadata: { name: 'web' }, target: { kind: 'Node', name: 'n1' } },
  allowed: [`${RIGHT}@lin`],
});
const MIRROR = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
const KUBELET = { user: 'system:node:n1', groups: ['system:nodes'] };

const NODE =
  'nodeName: expected nothing, because a pod that names its node bypasses schedulers and taints, got n1';
const BINDING = 'nodeName: expected nothing, because a binding bypasses schedulers and taints';
const BY = `(scheduling policy ${NAME})`;

const CASES: readonly (readonly [what: string, request: Partial<AskedRequest>, refusal?: string])[] = [
  ['a pod', {}],
  ['a pod of an account without a right', { allowed: [] }, 'the account may use no scheduling policy'],
  [
    'a pod of another account',
    { object: pod({ serviceAccountName: 'a' }) },
    'the account may use no scheduling policy',
  ],
  ['a pod that names its node', { object: NOT_ALLOWED }, `${NODE} ${BY}`],
  ['one in an exempt namespace', { object: NOT_ALLOWED, namespace: 'infra' }],
  [
    'a value that is not allowed',
    { object: pod({ nodeSelector: { "example.com/o'disk": 'hdd' } }) },
    `nodeSelector example.com/o'disk: expected a value that is allowed, got hdd ${BY}`,
  ],
  ['a value that is allowed', { object: pod({ nodeSelector: { "example.com/o'disk": 'ssd' } }) }],
  ...['Lt', 'Gt'].map(
    (operator) =>
      [
        `a toleration with ${operator}`,
        { object: pod({ tolerations: [{ key: 'gpu', operator, value: '3', effect: 'NoSchedule' }] }) },
      ] as const,
  ),
  ['a deletion', { operation: 'DELETE', object: null, oldObject: NOT_ALLOWED }],
  ['a debugger', onSubresource('ephemeralcontainers')],
  ['a resize', onSubresource('resize')],
  ['a status', onSubresource('status')],
  [
    'an update that changes no field of it',
    { operation: 'UPDATE', object: NOT_ALLOWED, oldObject: NOT_ALLOWED },
  ],
  [
    'the node that a scheduler has chosen',
    {
      operation: 'UPDATE',
      object: pod({ nodeName: 'n1', tolerations: [{ key: 'gpu', operator: 'Exists' }] }),
      oldObject: NOT_ALLOWED,
    },
  ],
  ['a static pod, by the kubelet', { ...KUBELET, object: pod({ nodeName: 'n1' }, MIRROR) }],
  ['a static pod, by a person', { object: pod({ nodeName: 'n1' }, MIRROR) }, `${NODE} ${BY}`],
  [
    'a static pod of another node',
    { ...KUBELET, user: 'system:node:n2', object: pod({ nodeName: 'n1' }, MIRROR) },
    `${NODE} ${BY}`,
  ],
  ['a binding', bound('pods', 'binding'), BINDING],
  ['a binding of its own', bound('bindings'), BINDING],
  ['a binding by the scheduler', { ...bound('pods', 'binding'), user: 'system:kube-scheduler' }],
  [
    'a DaemonSet',
    { group: 'apps', resource: 'daemonsets', kind: 'DaemonSet', object: template({ nodeName: 'n1' }) },
    `${NODE} ${BY}`,
  ],
  [
    'a Deployment',
    { group: 'apps', resource: 'deployments', kind: 'Deployment', object: template({ nodeName: 'n1' }) },
  ],
];

describe.skipIf(judge === undefined)('what scheduling-policy export prints, in Kubernetes', () => {
  it.each([[], ['--warn-only']])(
    'refuses, or warns of, what the policies do not allow: %s',
    async (...more) => {
      const { stdout, stderr } = await run('export', '--policies', policyFile(POLICIES), ...FLAGS, ...more);
      expect(stderr).toBe('');
      const verdicts = await judge?.judge(
        parse(stdout),
        CASES.map(([, request]) => ({ ...aPod, ...request })),
      );
      const isTrial = more.length > 0;
      const got = CASES.map(([what], index) => {
        const { allowed, message, warnings } = verdicts?.[index] ?? {};
        const said = [...(warnings ?? []), message]
          .join('')
          .replace(/^.*with binding '[^']*'(?: denied request)?: /s, '');
        return [what, allowed, said];
      });
      expect(got).toEqual(
        CASES.map(([what, , refusal]) => [what, isTrial || refusal === undefined, refusal ?? '']),
      );
    },
  );
});
