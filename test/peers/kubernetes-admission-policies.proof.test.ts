/** The plugin of Kubernetes itself judges random requests by exported policies as the webhook does. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Subject } from '../../src/kubernetes/export/subject.ts';
import { serviceAccount } from '../../src/kubernetes/policies/access.ts';
import {
  type AdmissionCase,
  admissionCases,
  admissionRequest,
  bothOf,
  exportOf,
} from '../kubernetes/export/admission-policy-cases.ts';
import '../support/properties.ts';
import { type AskedRequest, admissionJudge, bindingIn, type Verdict } from './admission-judge.ts';

const judge = admissionJudge();
afterAll(() => judge?.remove());

/** Fields that no policy speaks of, as newer versions of Kubernetes have them. */
const others: fc.Arbitrary<object> = fc.record(
  {
    schedulingGates: fc.constant([{ name: 'example.com/wait' }]),
    resourceClaims: fc.constant([{ name: 'gpu', resourceClaimTemplateName: 'one-gpu' }]),
    initContainers: fc.constant([{ name: 'proxy', image: 'proxy', restartPolicy: 'Always' }]),
    resources: fc.constant({ requests: { cpu: '1' } }),
    runtimeClassName: fc.constant('kata'),
  },
  { requiredKeys: [] },
);

const SPREAD = {
  maxSkew: 1,
  topologyKey: 'kubernetes.io/hostname',
  matchLabelKeys: ['pod-template-hash'],
  labelSelector: { matchLabels: { app: 'web' } },
  nodeTaintsPolicy: 'Honor',
};

interface TriedCase {
  readonly one: AdmissionCase;
  readonly isTrial: boolean;
}

const triedCases: fc.Arbitrary<TriedCase> = fc
  .record({ one: admissionCases, more: others, isTrial: fc.boolean() })
  .map(({ one, more, isTrial }) => {
    const whole = (pod: AdmissionCase['pod']): AdmissionCase['pod'] => {
      const { topologySpreadConstraints: spread, ...spec } = pod.spec;
      return {
        ...pod,
        spec: {
          ...more,
          ...spec,
          ...(spread && {
            topologySpreadConstraints: spread.map((constraint) => ({ ...SPREAD, ...constraint })),
          }),
        },
      };
    };
    return {
      isTrial,
      one: { ...one, pod: whole(one.pod), current: one.current && whole(one.current) },
    };
  });

const RESOURCES: Readonly<
  Record<Subject, Pick<AskedRequest, 'group' | 'resource' | 'kind' | 'subresource'>>
> = {
  pods: { resource: 'pods', kind: 'Pod' },
  daemonsets: { group: 'apps', resource: 'daemonsets', kind: 'DaemonSet' },
  bindings: { resource: 'pods', subresource: 'binding', kind: 'Binding' },
};

/** The request of a case, in a namespace of its own. */
function asked(one: AdmissionCase, namespace: string): AskedRequest {
  const { operation, userInfo, object, oldObject, authorizer } = admissionRequest(one);
  const user = one.subject === 'bindings' ? userInfo.username : serviceAccount('research', 'trainer').user;
  const inNamespace = user.replace(':research:', `:${namespace}:`);
  return {
    ...RESOURCES[one.subject],
    operation,
    namespace,
    user: userInfo.username,
    groups: userInfo.groups ?? [],
    object: object as object,
    oldObject: oldObject as object | null,
    allowed: one.policies
      .filter(({ name, group }) =>
        authorizer({ user, group, resource: 'schedulingpolicies', namespace: 'research', name, verb: 'use' }),
      )
      .map(({ name, group }) => `use/${group}/schedulingpolicies/${name}@${inNamespace}`),
  };
}

/** Few enough that a slow machine compiles them in time. */
const BATCH = 60;
/** How many pods each set of policies judges. */
const PODS = 8;

/** Random policies, each with requests of other cases about the same kind of object beside its own. */
function batches(count: number): (readonly (readonly TriedCase[])[])[] {
  const samples = fc.sample(triedCases, count * BATCH);
  const sets = samples.map(({ one, isTrial }, index) => {
    const later = [...samples.slice(index), ...samples.slice(0, index)];
    return later
      .filter((other) => other.one.subject === one.subject)
      .slice(0, PODS)
      .map(({ one: { pod, current, username, node, rights } }) => ({
        isTrial,
        one: { ...one, pod, current, username, node, rights },
      }));
  });
  return Array.from({ length: count }, (_, batch) => sets.slice(batch * BATCH, (batch + 1) * BATCH));
}

/** What the policy says in a verdict, without what Kubernetes puts before it. */
function said({ message, warnings }: Verdict): string[] {
  return [...warnings, ...(message === '' ? [] : [message])].map((text) =>
    text.replace(/^.*?(?:with binding '[^']*'(?: denied request)?): /s, ''),
  );
}

describe.skipIf(judge === undefined)('exported policies in the admission plugin of Kubernetes', () => {
  it('judge random requests as the webhook does, with these messages', async () => {
    const seen = new Set<string>();
    const judgeAll = async (sets: readonly (readonly TriedCase[])[]) => {
      const named = sets.map((tried, index) => ({ tried, name: `case-${index}` }));
      const policies = named.flatMap(({ tried: [first], name }) => {
        if (first === undefined) {
          return [];
        }
        const policy = exportOf(first.one, name);
        return [policy, bindingIn(policy.metadata.name, name, first.isTrial ? ['Warn', 'Audit'] : ['Deny'])];
      });
      const all = named.flatMap(({ tried, name }) => tried.map((one) => ({ ...one, name })));
      const verdicts = await judge?.judge(
        policies,
        all.map(({ one, name }) => asked(one, name)),
      );
      for (const [index, { one, isTrial, name }] of all.entries()) {
        const { webhook, exported } = bothOf(one);
        const expected = webhook
          ? { allowed: true, said: [] }
          : { allowed: isTrial, said: isTrial ? exported.messages : exported.messages.slice(0, 1) };
        const verdict = verdicts?.[index];
        const got = verdict && { allowed: verdict.allowed, said: said(verdict) };
        if (!isDeepStrictEqual(got, expected)) {
          const request = asked(one, name);
          expect({ got, request, one }).toEqual({ got: expected, request, one });
        }
        seen.add(`${one.strategy} ${one.subject} ${isTrial} ${webhook}`);
      }
    };
    await Promise.all(batches(4).map(judgeAll));
    // Each strategy has allowed and refused each kind of object, on trial and not.
    expect(seen.size).toBe(4 * 3 * 2 * 2);
  });
});
