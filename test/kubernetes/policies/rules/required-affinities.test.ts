import { describe, expect, it } from 'vitest';
import type { SchedulingPolicy } from '../../../../src/kubernetes/policies/policy.ts';
import { pod, policy, proposalPolicies, reasonsOf, review } from '../../../support/scheduling-policies.ts';
import { ofPods, preferring, requiring } from './affinities.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

const judged = (policies: readonly SchedulingPolicy[], affinity?: unknown) =>
  reasonsOf(review(policies, pod({ affinity })));
const demanding = (affinities: unknown) => [policy('a', { required: { affinities } })];
const demandingTerms = (...terms: readonly unknown[][]) =>
  demanding({
    nodeAffinities: {
      [REQUIRED]: { nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })) },
    },
  });
const everything = policy('z', 'allowed: {affinities: {}}');

describe('a required affinity', () => {
  const arch = { keys: ['arch'], operators: ['In'], values: ['amd64', 'arm64'] };

  it('is reported as missing, with what would be accepted', () => {
    expect(judged(demandingTerms([arch]))).toEqual([
      `affinity.nodeAffinity.${REQUIRED}: expected arch In amd64 or arm64, got nothing (scheduling policy a)`,
    ]);
    expect(
      judged(demandingTerms([arch]), { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [] } } }),
    ).toHaveLength(1);
    expect(judged(demandingTerms([arch]), ofPods('podAffinity', 'required', 'zone')).at(-1)).toMatch(
      /got nothing/,
    );
  });

  it('is allowed as well', () => {
    expect(judged(demandingTerms([arch]), requiring(['arch In amd64']))).toEqual([]);
    expect(judged(demandingTerms([arch]), requiring(['arch In amd64', 'disk Exists']))).toHaveLength(1);
  });

  it('must hold in each term, because the scheduler may choose any', () => {
    const policies = [...demandingTerms([arch]), everything];
    expect(judged(policies, requiring(['arch In amd64'], ['arch In arm64', 'disk Exists']))).toEqual([]);
    expect(judged(policies, requiring(['arch In amd64'], ['disk Exists']))).toEqual([
      `affinity.nodeAffinity.${REQUIRED}: expected arch In amd64 or arm64 in each of the terms, which are alternatives (scheduling policy a)`,
    ]);
    expect(judged(policies, requiring(['disk Exists'], ['arch In amd64']))).toHaveLength(1);
    expect(judged(policies, requiring(['arch In amd64'], []))).toHaveLength(1);
  });

  it.each([
    'arch In amd64 i386',
    'arch In i386',
    'arch NotIn i386',
    'arch NotIn amd64 arm64',
    'arch Exists',
    'other In amd64',
  ])('is not fulfilled by values or operators beyond it, though they are allowed: %s', (expression) => {
    expect(judged([...demandingTerms([arch]), everything], requiring([expression]))).toHaveLength(1);
    expect(judged([...demandingTerms([arch]), everything], requiring([expression, 'arch In amd64']))).toEqual(
      [],
    );
  });

  it('that excludes values is met by an expression that excludes them all', () => {
    const avoiding = [
      ...demandingTerms([{ keys: ['zone'], operators: ['NotIn'], values: ['dc1', 'dc2'] }]),
      everything,
    ];
    expect(judged(avoiding, requiring(['zone NotIn dc1 dc2']))).toEqual([]);
    expect(judged(avoiding, requiring(['zone NotIn dc3 dc2 dc1']))).toEqual([]);
    expect(judged(avoiding, requiring(['zone NotIn dc1']))).toHaveLength(1);
    expect(judged(avoiding, requiring(['zone In dc3']))).toHaveLength(1);
  });

  it('of listed values without an operator means In', () => {
    const listed = [...demandingTerms([{ keys: ['arch'], values: ['amd64'] }]), everything];
    expect(judged(listed, requiring(['arch In amd64']))).toEqual([]);
    expect(judged(listed, requiring(['arch NotIn amd64']))).toEqual([
      `affinity.nodeAffinity.${REQUIRED}: expected arch In amd64 in each of the terms, which are alternatives (scheduling policy a)`,
    ]);
  });

  it('without values is met by any value, but only if the label must exist', () => {
    const any = [...demandingTerms([{ keys: ['arch'] }]), everything];
    for (const expression of ['arch In x', 'arch Exists', 'arch Gt 1']) {
      expect(judged(any, requiring([expression]))).toEqual([]);
    }
    for (const expression of ['arch NotIn y', 'arch DoesNotExist', 'disk Exists']) {
      expect(judged(any, requiring([expression])), expression).toHaveLength(1);
    }
    expect(judged(any, requiring(['arch NotIn y', 'arch Exists']))).toEqual([]);
    // Any key will do, but there must be one.
    const anything = [...demandingTerms([{}]), everything];
    expect(judged(anything, requiring(['disk Exists']))).toEqual([]);
    expect(judged(anything, requiring(['disk DoesNotExist']))).toHaveLength(1);
  });

  it('is met without the label if the rule lists such an operator', () => {
    const named = [...demandingTerms([{ keys: ['arch'], operators: ['NotIn', 'DoesNotExist'] }]), everything];
    for (const expression of ['arch NotIn y', 'arch DoesNotExist']) {
      expect(judged(named, requiring([expression]))).toEqual([]);
    }
    expect(judged(named, requiring(['arch Exists']))).toHaveLength(1);
  });

  it('of several expressions needs all of them; of several terms one', () => {
    const [os, disk] = [{ keys: ['os'] }, { keys: ['disk'] }];
    const both = [...demandingTerms([arch, os]), everything];
    expect(judged(both, requiring(['os In Linux', 'arch In amd64']))).toEqual([]);
    expect(judged(both, requiring(['arch In amd64']))).toEqual([
      `affinity.nodeAffinity.${REQUIRED}: expected arch In amd64 or arm64 with os with any operator in each of the terms, which are alternatives (scheduling policy a)`,
    ]);
    const either = [...demandingTerms([arch, os], [disk]), everything];
    expect(judged(either, requiring(['disk Exists'], ['arch In amd64', 'os Exists']))).toEqual([]);
    expect(judged(either, requiring(['disk Exists'], ['os Exists']))).toHaveLength(1);
  });

  it('as a preference needs one term that meets it', () => {
    const preferred = [
      ...demanding({
        nodeAffinities: { [PREFERRED]: { nodeSelectorTerms: [{ matchExpressions: [arch] }] } },
      }),
      everything,
    ];
    expect(judged(preferred, preferring(['disk Exists'], ['arch In amd64']))).toEqual([]);
    expect(judged(preferred, preferring(['disk Exists']))).toEqual([
      `affinity.nodeAffinity.${PREFERRED}: expected arch In amd64 or arm64 (scheduling policy a)`,
    ]);
    expect(judged(preferred, requiring(['arch In amd64'])).join()).toMatch(/got nothing/);
  });

  it('of an empty mapping is met by any affinity of that kind', () => {
    const policies = demanding({ podAntiAffinities: {} });
    expect(judged(policies)).toEqual([
      'affinity.podAntiAffinity: expected a term, got nothing (scheduling policy a)',
    ]);
    expect(judged(policies, ofPods('podAntiAffinity', 'preferred', 'zone'))).toEqual([]);
    expect(judged(policies, ofPods('podAntiAffinity', 'required', 'zone'))).toEqual([]);
    expect(judged(policies, ofPods('podAffinity', 'required', 'zone'))).toHaveLength(2);
  });

  it('of an empty mapping at one time is met by any affinity at that time', () => {
    const policies = demanding({ podAffinities: { [REQUIRED]: {} }, nodeAffinities: { [PREFERRED]: {} } });
    const fulfilling = { ...ofPods('podAffinity', 'required', 'zone'), ...preferring(['disk Exists']) };
    expect(judged(policies, fulfilling)).toEqual([]);
    expect(judged(policies, { ...fulfilling, ...ofPods('podAffinity', 'preferred', 'zone') })).toHaveLength(
      2,
    );
    expect(judged(policies)).toEqual([
      `affinity.nodeAffinity.${PREFERRED}: expected a term, got nothing (scheduling policy a)`,
      `affinity.podAffinity.${REQUIRED}: expected a term, got nothing (scheduling policy a)`,
    ]);
  });

  it('of the proposal is met by its own default (example 30)', () => {
    const policies = proposalPolicies(30);
    const { allowed, pod: reviewed } = review(policies, pod('{schedulerName: default-scheduler}'));
    expect(allowed).toBe(true);
    expect(reviewed.spec.affinity).toEqual(
      requiring(['beta.kubernetes.io/arch In amd64'], ['beta.kubernetes.io/os In Linux']),
    );
    const other = pod({
      schedulerName: 'default-scheduler',
      affinity: requiring(['beta.kubernetes.io/os In BeOS']),
    });
    expect(review(policies, other).allowed).toBe(false);
  });
});

describe('a default affinity', () => {
  const preferredZone = {
    default: {
      affinity: {
        ...preferring(['zone In north']),
        ...ofPods('podAntiAffinity', 'required', 'host'),
      },
    },
  };
  const policies = [policy('a', preferredZone), policy('b', 'allowed: {affinities: {nodeAffinities: {}}}')];

  it('is added at each place where the pod has nothing', () => {
    expect(review(policies, pod()).pod.spec.affinity).toEqual(preferredZone.default.affinity);
    const asked = { ...requiring(['arch Exists']), podAffinity: null };
    expect(review(policies, pod({ affinity: asked })).pod.spec.affinity).toEqual({
      nodeAffinity: {
        ...requiring(['arch Exists']).nodeAffinity,
        ...preferring(['zone In north']).nodeAffinity,
      },
      podAffinity: null,
      ...ofPods('podAntiAffinity', 'required', 'host'),
    });
  });

  it('is not merged into an affinity of the pod', () => {
    const affinity = { ...preferring(['disk Exists']), ...ofPods('podAntiAffinity', 'required', 'host') };
    const asked = pod({ affinity });
    expect(review(policies, asked)).toEqual({ allowed: true, pod: asked, reasons: [] });
  });

  it('is allowed exactly as it is', () => {
    const [only] = policies;
    const alone = only === undefined ? [] : [only];
    const filled = (affinity: object) => review(alone, pod({ affinity })).allowed;
    expect(filled(preferring(['zone In north']))).toBe(true);
    expect(filled(preferring(['zone In south']))).toBe(false);
    expect(filled(preferring(['zone NotIn north']))).toBe(false);
    expect(filled(requiring(['zone In north']))).toBe(false);
    expect(filled(ofPods('podAntiAffinity', 'required', 'host', 'host'))).toBe(true);
    expect(filled(ofPods('podAffinity', 'required', 'host'))).toBe(false);
    expect(
      reasonsOf(review(alone, pod({ affinity: ofPods('podAntiAffinity', 'required', 'zone') }))),
    ).toEqual([
      `affinity.podAntiAffinity.${REQUIRED}[0]: expected the default, got another term (scheduling policy a)`,
    ]);
  });
});
