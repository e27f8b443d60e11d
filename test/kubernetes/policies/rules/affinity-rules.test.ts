import { describe, expect, it } from 'vitest';
import type { SchedulingPolicy } from '../../../../src/kubernetes/policies/policy.ts';
import { pod, policy, proposalPolicies, reasonsOf, review } from '../../../support/scheduling-policies.ts';
import { affinitiesIn, expression, ofPods, preferring, requiring, wants } from './affinities.ts';
import { testJudgements } from './judgements.ts';

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

const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const AT = `affinity.nodeAffinity.${REQUIRED}`;

/** Expressions such as `arch In amd64`, a list for each term. */
type Lists = readonly string[][];

const terms = (...lists: readonly unknown[][]) => ({
  nodeSelectorTerms: lists.map((matchExpressions) => ({ matchExpressions })),
});
const demanding = (...lists: readonly unknown[][]) =>
  affinitiesIn('required', { nodeAffinities: { [REQUIRED]: terms(...lists) } });
const required = (...lists: Lists) => wants(requiring(...lists));
const preferred = (...lists: Lists) => wants(preferring(...lists));
const pods = (...one: Parameters<typeof ofPods>) => wants(ofPods(...one));

const EVERYTHING = 'allowed: {affinities: {}}';
const ARCH = { keys: ['arch'], operators: ['In'], values: ['amd64', 'arm64'] };

describe('a required affinity', () => {
  testJudgements(`
== is reported as missing, with what would be accepted
- ${demanding([ARCH])}
> {}
! ${AT}: expected arch In amd64 or arm64, got nothing (scheduling policy a)
x ${required()}
> ${pods('podAffinity', 'required', 'zone')}
!
! ${AT}: expected arch In amd64 or arm64, got nothing (scheduling policy a)
== must hold in each term, because the scheduler may choose any
- ${demanding([ARCH])}
- ${EVERYTHING}
> ${required(['arch In amd64'], ['arch In arm64', 'disk Exists'])}
> ${required(['arch In amd64'], ['disk Exists'])}
! ${AT}: expected arch In amd64 or arm64 in each of the terms, which are alternatives (scheduling policy a)
x ${required(['disk Exists'], ['arch In amd64'])}
x ${required(['arch In amd64'], [])}
== of several expressions needs all of them
- ${demanding([ARCH, { keys: ['os'] }])}
- ${EVERYTHING}
> ${required(['os In Linux', 'arch In amd64'])}
> ${required(['arch In amd64'])}
! ${AT}: expected arch In amd64 or arm64 with os with any operator in each of the terms, which are alternatives (scheduling policy a)
== as a preference needs one term that meets it
- ${affinitiesIn('required', { nodeAffinities: { [PREFERRED]: terms([ARCH]) } })}
- ${EVERYTHING}
> ${preferred(['disk Exists'], ['arch In amd64'])}
> ${preferred(['disk Exists'])}
! affinity.nodeAffinity.${PREFERRED}: expected arch In amd64 or arm64 (scheduling policy a)
> ${required(['arch In amd64'])}
! affinity.nodeAffinity.${PREFERRED}: expected arch In amd64 or arm64, got nothing (scheduling policy a)
== of the proposal is met by its own default
- example 30
> schedulerName: default-scheduler
= {schedulerName: default-scheduler, ${required(['beta.kubernetes.io/arch In amd64'], ['beta.kubernetes.io/os In Linux'])}}
> {schedulerName: default-scheduler, ${required(['beta.kubernetes.io/os In BeOS'])}}
!
!
`);
});

describe('a default affinity', () => {
  const affinity = { ...preferring(['zone In north']), ...ofPods('podAntiAffinity', 'required', 'host') };
  const BY_DEFAULT = `default: {${wants(affinity)}}`;
  const filled = {
    ...requiring(['arch Exists']),
    podAffinity: null,
    ...ofPods('podAntiAffinity', 'required', 'host'),
    nodeAffinity: { ...requiring(['arch Exists']).nodeAffinity, ...affinity.nodeAffinity },
  };

  testJudgements(`
== is added at each place where the pod has nothing
- ${BY_DEFAULT}
- ${affinitiesIn('allowed', { nodeAffinities: {} })}
> {}
= ${wants(affinity)}
> ${wants({ ...requiring(['arch Exists']), podAffinity: null })}
= ${wants(filled)}
`);

  it('is allowed exactly as it is', () => {
    const judged = (one: object) =>
      reasonsOf(review([policy('a', { default: { affinity } })], pod({ affinity: one })));
    expect(judged(preferring(['zone In north']))).toEqual([]);
    expect(judged(ofPods('podAntiAffinity', 'required', 'host', 'host'))).toEqual([]);
    for (const other of [
      preferring(['zone In south']),
      preferring(['zone NotIn north']),
      requiring(['zone In north']),
      ofPods('podAffinity', 'required', 'host'),
    ]) {
      expect(judged(other)).not.toEqual([]);
    }
    expect(judged(ofPods('podAntiAffinity', 'required', 'zone'))).toEqual([
      `affinity.podAntiAffinity.${REQUIRED}[0]: expected the default, got another term (scheduling policy a)`,
    ]);
  });

  it('is allowed as the API server stores it, without empty lists and with labels of the pod', () => {
    const withTerm = (term: object) => ({
      podAntiAffinity: { [PREFERRED]: [{ weight: 1, podAffinityTerm: { topologyKey: 'host', ...term } }] },
    });
    const selecting = (...expressions: string[]) => ({
      labelSelector: { matchLabels: { app: 'web' }, matchExpressions: expressions.map(expression) },
    });
    const keys = { matchLabelKeys: ['hash'], mismatchLabelKeys: ['tenant'] };
    const written = withTerm({ ...selecting('tier Exists'), ...keys, namespaces: [] });
    const judged = (term: object) =>
      reasonsOf(review([policy('a', { default: { affinity: written } })], pod({ affinity: withTerm(term) })));
    for (const stored of [
      { ...selecting('tier Exists'), ...keys },
      { ...selecting('tier Exists', 'hash In 7d9f', 'tenant NotIn a'), ...keys },
    ]) {
      expect(judged(stored)).toEqual([]);
    }
    for (const other of [
      { ...selecting('tier Exists', 'hash In 7d9f 8e', 'tenant NotIn a'), ...keys },
      { ...selecting('tier Exists', 'hash NotIn 7d9f'), ...keys },
      { ...selecting('tier Exists', 'app In web'), ...keys },
      { ...selecting('hash In 7d9f'), ...keys },
      selecting('tier Exists'),
    ]) {
      expect(judged(other)).not.toEqual([]);
    }
  });
});
