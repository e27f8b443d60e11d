import { describe, expect, it } from 'vitest';
import { MERGE_STRATEGIES } from '../../../src/kubernetes/policies/merge.ts';
import { deepFreeze } from '../../support/requests.ts';
import { pod, policy, proposalPolicies, review } from '../../support/scheduling-policies.ts';

const ARCH = 'beta.kubernetes.io/arch';
const OS = 'beta.kubernetes.io/os';

it.each(MERGE_STRATEGIES)('without any usable policy nothing is allowed, merged %s', (strategy) => {
  const asking = pod({
    schedulerName: 'default-scheduler',
    nodeName: 'node-1',
    priorityClassName: 'gold',
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'gpu' }],
    affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{}] } },
  });
  const { allowed, pod: reviewed, reasons } = review([], asking, strategy);
  expect(allowed).toBe(false);
  expect(reviewed).toBe(asking);
  expect(reasons.map(({ field }) => field)).toEqual([
    'schedulerName',
    'priorityClassName',
    'nodeName',
    'nodeName',
    'nodeName',
    'nodeSelector disk',
    'tolerations[0]',
    'affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]',
  ]);
  expect(reasons.flatMap(({ policies }) => policies)).toEqual([]);
  expect(review([], pod(), strategy)).toMatchObject({ allowed: true, reasons: [] });
});

describe('merging', () => {
  const ssd = { disk: 'ssd' };
  const sata = { disk: 'sata' };

  it.each([
    [22, 23, 'deep'],
    [24, 25, 'first'],
    [26, 27, 'simple'],
  ] as const)('of example %i decides like the result in example %i', (number, result, strategy) => {
    for (const nodeSelector of [{}, ssd, sata, { [ARCH]: 'i386' }, { [ARCH]: 'arm64', [OS]: 'Windows' }]) {
      for (const priorityClassName of [null, 'gold', 'iron']) {
        const asking = pod({ nodeSelector, priorityClassName });
        const { allowed, pod: reviewed } = review(proposalPolicies(number), asking, strategy);
        const shown = review(proposalPolicies(result), asking, 'first');
        expect({ allowed, reviewed }).toEqual({ allowed: shown.allowed, reviewed: shown.pod });
      }
    }
  });
});

describe('a pod that is reviewed', () => {
  const given = {
    schedulerName: 'green',
    priorityClassName: 'gold',
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'gpu', operator: 'Exists' }],
    affinity: {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] },
    },
  };
  const defaults = policy('a', { default: given });

  it('gets all defaults that it lacks, and keeps the rest', () => {
    const before = deepFreeze(pod({ containers: [{ name: 'web' }], nodeName: '', restartPolicy: 'Never' }));
    const { allowed, pod: reviewed } = review([defaults], before);
    expect(allowed).toBe(true);
    expect(reviewed).toEqual({
      ...before,
      spec: { containers: [{ name: 'web' }], nodeName: '', restartPolicy: 'Never', ...given },
    });
    expect(reviewed.spec.containers).toBe(before.spec.containers);
  });

  it('is the same object if there is nothing to add', () => {
    const { pod: reviewed } = review([defaults], pod());
    expect(review([defaults], reviewed).pod).toBe(reviewed);
  });

  it('gets no priority beside a default class that the API server has computed without it', () => {
    const { pod: reviewed } = review(
      [defaults],
      pod('{priority: 0, preemptionPolicy: PreemptLowerPriority}'),
    );
    expect(reviewed.spec).toMatchObject({ priorityClassName: 'gold' });
    expect(Object.keys(reviewed.spec)).not.toEqual(expect.arrayContaining(['priority']));
    expect(Object.keys(reviewed.spec)).not.toEqual(expect.arrayContaining(['preemptionPolicy']));
    const named = pod('{priorityClassName: gold, priority: 5, preemptionPolicy: Never}');
    expect(review([defaults], named).pod.spec).toMatchObject({ priority: 5, preemptionPolicy: 'Never' });
    expect(review([], pod('{priority: 0}')).pod.spec).toEqual({ priority: 0 });
  });
});
