import { describe, expect, it } from 'vitest';
import { Cluster } from '../../../../src/kubernetes/policies/cluster-settings.ts';
import { EffectivePolicy } from '../../../../src/kubernetes/policies/effective-policy.ts';
import { pod, policy, reasonsOf } from '../../../support/scheduling-policies.ts';
import { expectAgreement } from '../model/agreement.ts';
import { testJudgements } from './judgements.ts';

describe('the scheduler of a pod', () => {
  testJudgements(`
== is rejected if no policy mentions schedulers
- {}
> schedulerName: green
! schedulerName: expected nothing, got "green" (no scheduling policy of the account mentions it)
== is refused as nothing where one is required
- example 2
> {}
! schedulerName: expected green-scheduler or my-scheduler, got nothing (scheduling policy example)
== is the default if the pod names none, which is thereby allowed
- example 6
> {}
= schedulerName: my-scheduler
> schedulerName: my-scheduler
> schedulerName: green
! schedulerName: expected my-scheduler, got "green" (scheduling policy example)
`);
});

describe('the node that a pod names itself', () => {
  const terms = (...names: string[]) =>
    `affinities: {nodeAffinities: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{keys: [metadata.name], operators: [In], values: [${names.join()}]}]}]}}}`;
  testJudgements(`
== is refused where no schedulers, or some of them, are allowed
- none
> {schedulerName: "", nodeName: node-1}
! nodeName: expected nothing, because a pod that names its node bypasses every scheduler (no scheduling policy of the account mentions it)
!
!
- allowed: {schedulerNames: [green, default-scheduler]}
> {schedulerName: "", nodeName: node-1}
! nodeName: expected nothing, because a pod that names its node bypasses every scheduler (scheduling policy a)
!
!
== is checked against the rules for nodes
- allowed: {schedulerNames: [], tolerations: []}
> nodeName: node-1
! nodeName: expected nothing, got "metadata.name" In "node-1" (no scheduling policy of the account mentions it)
- allowed: {schedulerNames: [], tolerations: [], ${terms('node-2')}}
> nodeName: node-1
! nodeName: expected an expression that is allowed (metadata.name In node-2), got "metadata.name" In "node-1" (scheduling policy a)
== is rejected if the pod may not tolerate all taints
- allowed: {schedulerNames: [], affinities: {}}
> nodeName: node-1
! nodeName: expected nothing, because a pod that names its node bypasses taints, and it may not tolerate all of them (no scheduling policy of the account mentions it)
`);
});

describe('the priority class of a pod', () => {
  testJudgements(`
== is rejected if no policy mentions classes
- allowed: {schedulerNames: []}
> priorityClassName: gold
! priorityClassName: expected nothing, got "gold" (no scheduling policy of the account mentions it)
== is reported as missing if it is required and there is no default
- required: {priorityClassNames: [gold, silver, bronze]}
> {}
! priorityClassName: expected gold, silver or bronze, got nothing (scheduling policy a)
`);
});

describe('an intersection of policies with conflicting requirements', () => {
  testJudgements(
    `
== denies everything, and names both
- required: {schedulerNames: [green]}
- required: {schedulerNames: [blue, red]}
> schedulerName: green
! schedulerName: conflicting requirements: a requires green and b requires blue or red (scheduling policies a and b)
== reports each field: schedulers, priority classes and labels
- {required: {schedulerNames: [x], priorityClassNames: [gold], nodeSelectors: {disk: [ssd], zone: [n]}}}
- {required: {schedulerNames: [x], priorityClassNames: [iron], nodeSelectors: {disk: [hdd], zone: [n, s]}}}
> {}
! priorityClassName: conflicting requirements: a requires gold and b requires iron (scheduling policies a and b)
! nodeSelector disk: conflicting requirements: a requires ssd and b requires hdd (scheduling policies a and b)
== names the two policies that conflict among others
- required: {schedulerNames: [x, y]}
- required: {schedulerNames: [x]}
- required: {schedulerNames: [y]}
- required: {schedulerNames: [x, y]}
> {}
! schedulerName: conflicting requirements: b requires x and c requires y (scheduling policies b and c)
== names all policies if any two of them are compatible
- required: {schedulerNames: [x, y]}
- required: {schedulerNames: [y, z]}
- required: {schedulerNames: [z, x]}
> {}
! schedulerName: conflicting requirements: a requires x or y, b requires y or z and c requires z or x (scheduling policies a, b and c)
`,
    'intersection',
  );
});

const HARD = '{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}';
const SOFT = '{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

const spread = (constraints: string, spec: string, mode: 'allow' | 'refuse' = 'refuse') =>
  reasonsOf(
    new EffectivePolicy([policy('a', spec)], 'deep', new Cluster({ topologySpreadConstraints: mode })).review(
      pod(`topologySpreadConstraints: ${constraints}`),
      { addDefaults: true },
    ),
  );

describe('topologySpreadConstraints', () => {
  it('are allowed, unless the option refuses them', () => {
    expect(spread(`[${HARD}]`, '{}', 'allow')).toEqual([]);
    expect(spread(`[${SOFT}, ${HARD}]`, '{}')).toEqual([
      'topologySpreadConstraints[0]: expected nothing, because it keeps pods apart, and not all podAntiAffinities are allowed (no scheduling policy of the account mentions it)',
      'topologySpreadConstraints[1]: expected nothing, because it keeps pods apart, and not all podAntiAffinities are allowed (no scheduling policy of the account mentions it)',
    ]);
    for (const nothing of ['[]', 'null']) {
      expect(spread(nothing, '{}')).toEqual([]);
    }
  });

  it.each([
    ['affinities: {}', 0, 0],
    ['affinities: {podAntiAffinities: {}}', 0, 0],
    [`affinities: {podAntiAffinities: {${REQUIRED}: {}}}`, 0, 1],
    [`affinities: {podAntiAffinities: {${PREFERRED}: {}}}`, 1, 0],
    ['affinities: {podAffinities: {}, nodeAffinities: {}}', 1, 1],
  ])('need the same permission as anti-affinities: %s', (allowed, hard, soft) => {
    expect(spread(`[${HARD}]`, `allowed: {${allowed}}`)).toHaveLength(hard);
    expect(spread(`[${SOFT}]`, `allowed: {${allowed}}`)).toHaveLength(soft);
  });

  it('of an unknown kind count as the strict one', () => {
    const unknown = HARD.replace('DoNotSchedule', 'Perhaps');
    expect(
      spread(`[${unknown}]`, `allowed: {affinities: {podAntiAffinities: {${PREFERRED}: {}}}}`),
    ).toHaveLength(1);
    expect(spread('[{}]', `allowed: {affinities: {podAntiAffinities: {${PREFERRED}: {}}}}`)).toHaveLength(1);
  });
});

it('says of random policies and pods what an evaluator written from the proposal says', () => {
  expectAgreement(150);
});
