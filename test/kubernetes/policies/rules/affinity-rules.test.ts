import { describe, expect, it } from 'vitest';
import type { SchedulingPolicy } from '../../../../src/kubernetes/policies/policy.ts';
import { pod, policy, proposalPolicies, reasonsOf, review } from '../../../support/scheduling-policies.ts';
import { ofPods, preferring, requiring } from './affinities.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const REGION = 'failure-domain.beta.kubernetes.io/region';
const IN_THE_FIRST = `affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms[0]`;

const judged = (policies: readonly SchedulingPolicy[], affinity: unknown) =>
  reasonsOf(review(policies, pod({ affinity })));
const allowing = (affinities: unknown) => [policy('a', { allowed: { affinities } })];
const allowingTerms = (...nodeSelectorTerms: unknown[]) =>
  allowing({ nodeAffinities: { [REQUIRED]: { nodeSelectorTerms } } });
const allowingExpressions = (...matchExpressions: unknown[]) => allowingTerms({ matchExpressions });

/** One of each place. */
const PLACES = [
  requiring(['arch Exists']),
  preferring(['arch Exists']),
  ofPods('podAffinity', 'required', 'zone'),
  ofPods('podAffinity', 'preferred', 'zone'),
  ofPods('podAntiAffinity', 'required', 'zone'),
  ofPods('podAntiAffinity', 'preferred', 'zone'),
];
const allowedAmong = (policies: readonly SchedulingPolicy[]) =>
  PLACES.map((affinity) => judged(policies, affinity).length === 0);

describe('an affinity', () => {
  it('is rejected if no policy mentions affinities, whatever its kind', () => {
    expect(allowedAmong([policy('a', {})])).toEqual(PLACES.map(() => false));
    expect(judged([], requiring(['arch Exists']))).toEqual([
      `${IN_THE_FIRST}: expected nothing, got a term (no scheduling policy of the account mentions it)`,
    ]);
    expect(judged([], ofPods('podAffinity', 'required', 'zone'))).toEqual([
      `affinity.podAffinity.${REQUIRED}[0]: expected nothing, got another term (no scheduling policy of the account mentions it)`,
    ]);
  });

  it.each([
    undefined,
    null,
    {},
    { nodeAffinity: { [REQUIRED]: null } },
    { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [] } } },
    { podAntiAffinity: { [REQUIRED]: [] } },
  ])('may be empty: %j', (affinity) => {
    expect(judged([], affinity)).toEqual([]);
  });

  it.each<object>([
    { rackAffinity: { [REQUIRED]: [{ topologyKey: 'rack' }] } },
    { rackAffinity: 'rack-1' },
    { nodeAffinity: { sometimes: [{ matchExpressions: [{ key: 'arch', operator: 'Exists' }] }] } },
    { nodeAffinity: { sometimes: [{ matchFields: 5 }] } },
    { podAffinity: { sometimes: [{}] } },
    { constructor: { [REQUIRED]: [{}] } },
  ])('of an unknown kind or time needs permission for all: %j', (affinity) => {
    for (const isForOneNode of [false, true]) {
      const judge = (policies: SchedulingPolicy[]) =>
        review(policies, pod({ affinity }), 'deep', { isForOneNode }).allowed;
      expect(judge(allowing({ nodeAffinities: {}, podAffinities: {}, podAntiAffinities: {} }))).toBe(false);
      expect(judge([])).toBe(false);
      expect(judge(allowing({}))).toBe(true);
    }
  });
});

it('the basic policies of the proposal reject another value with a message that lists the allowed ones', () => {
  const basic = proposalPolicies(17);
  const arch = 'beta.kubernetes.io/arch';
  expect(judged(basic, requiring([`${arch} In amd64`, `${REGION} In eu-2 eu-3`]))).toEqual([
    `${IN_THE_FIRST}.matchExpressions[1]: expected an expression that is allowed ` +
      `(${REGION} or kubernetes.io/authorized-region In or NotIn eu-2 or us-1, ${arch} In amd64 or arm64 or ${arch} In amd64), ` +
      `got "${REGION}" In "eu-2" or "eu-3" (scheduling policy example)`,
  ]);
});

it('an expression is judged in each of the terms and preferences, and named by its place', () => {
  const rule = { keys: ['region', 'zone'], values: ['1', '2'] };
  const fields = (affinity: object, time: string) =>
    review(
      allowing({ nodeAffinities: { [time]: { nodeSelectorTerms: [{ matchExpressions: [rule] }] } } }),
      pod({ affinity }),
    ).reasons.map(({ field }) => field);
  expect(fields(requiring(['zone In 1'], ['zone In 1', 'disk Exists']), REQUIRED)).toEqual([
    `affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms[1].matchExpressions[1]`,
  ]);
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  expect(fields(preferring(['zone In 1'], ['disk Exists']), preferred)).toEqual([
    `affinity.nodeAffinity.${preferred}[1].preference.matchExpressions[0]`,
  ]);
});

describe('node fields', () => {
  const named = (operator: string, ...values: string[]) => ({
    nodeAffinity: {
      [REQUIRED]: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator, values }] }] },
    },
  });

  it('need rules of their own', () => {
    expect(judged(allowingExpressions({}), named('In', 'node-1'))).toEqual([
      `${IN_THE_FIRST}.matchFields[0]: expected nothing, got "metadata.name" In "node-1" (scheduling policy a)`,
    ]);
    const rules = allowingTerms({ matchFields: [{ keys: ['metadata.name'], values: ['node-1'] }] });
    expect(judged(rules, named('In', 'node-1'))).toEqual([]);
    expect(judged(rules, named('In', 'node-2'))).toHaveLength(1);
    expect(judged(rules, requiring(['metadata.name In node-1']))).toHaveLength(1);
  });

  it('may name the node that a DaemonSet creates a pod for, and nothing else', () => {
    const judge = (affinity: object, isForOneNode: boolean) =>
      review([], pod({ affinity }), 'deep', { isForOneNode }).allowed;
    expect(judge(named('In', 'node-1'), true)).toBe(true);
    expect(judge(named('In', 'node-1'), false)).toBe(false);
    expect(judge(named('In', 'node-1', 'node-2'), true)).toBe(false);
    expect(judge(named('NotIn', 'node-1'), true)).toBe(false);
    expect(judge(requiring(['metadata.name In node-1']), true)).toBe(false);
    expect(judge(ofPods('podAffinity', 'required', 'host'), true)).toBe(false);
  });
});
