import { describe, expect, it } from 'vitest';
import { pod, policy, reasonsOf, review } from '../../../support/scheduling-policies.ts';
import { affinitiesIn, expression, ofPods, preferring, requiring, wants } from './affinities.ts';
import { testJudgements } from './judgements.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
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
