import { describe, expect, it } from 'vitest';
import { InvalidRequestError } from '../../../src/base/errors.ts';
import { parsePod, serviceAccountName } from '../../../src/kubernetes/policies/pod.ts';
import { pod, policy, review } from '../../support/scheduling-policies.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

describe('a pod', () => {
  it('is returned unchanged, with unknown fields', () => {
    const input = {
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: {
        containers: [{ name: 'web', image: 'web' }],
        schedulingGates: [],
        tolerations: [{ later: true }],
      },
      status: { phase: 'Pending' },
    };
    expect(parsePod(input)).toBe(input);
  });

  it('may have null for any optional field', () => {
    const names = ['schedulerName', 'nodeName', 'priorityClassName', 'priority', 'preemptionPolicy'];
    const parts = ['nodeSelector', 'tolerations', 'affinity', 'serviceAccountName', 'serviceAccount'];
    const spec = Object.fromEntries([...names, ...parts].map((name) => [name, null]));
    expect(review([], parsePod({ metadata: null, spec }))).toMatchObject({ allowed: true, reasons: [] });
    const toleration = { key: null, operator: null, value: null, effect: null, tolerationSeconds: null };
    const affinity = {
      nodeAffinity: {
        [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: null, matchFields: null }] },
        [PREFERRED]: [
          { weight: null, preference: { matchExpressions: [{ key: 'k', operator: 'In', values: null }] } },
        ],
      },
      podAffinity: null,
      podAntiAffinity: { [REQUIRED]: null },
    };
    const everything = policy('a', 'allowed: {tolerations: [], affinities: {}}');
    const demanding = policy('b', {
      required: {
        affinities: {
          nodeAffinities: { [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: [{ keys: ['k'] }] }] } },
        },
      },
    });
    const reviewed = parsePod({ spec: { tolerations: [toleration], affinity } });
    expect(review([everything], reviewed).reasons).toEqual([]);
    expect(review([everything, demanding], reviewed).reasons).toHaveLength(1);
    expect(review([], reviewed).reasons).toHaveLength(3);
  });

  it.each<[unknown, string]>([
    [null, ''],
    [[], ''],
    [{}, 'spec'],
    [{ spec: {}, metadata: 'web' }, 'metadata'],
    [{ spec: {}, metadata: { namespace: 5 } }, 'metadata.namespace'],
    [{ spec: { schedulerName: 5 } }, 'spec.schedulerName'],
    [{ spec: { priority: '5' } }, 'spec.priority'],
    [{ spec: { serviceAccountName: 5 } }, 'spec.serviceAccountName'],
    [{ spec: { nodeSelector: [] } }, 'spec.nodeSelector'],
    [{ spec: { nodeSelector: { disk: 5 } } }, 'spec.nodeSelector.disk'],
    [{ spec: { tolerations: {} } }, 'spec.tolerations'],
    [{ spec: { tolerations: [{}, null] } }, 'spec.tolerations.1'],
    [{ spec: { tolerations: [{ key: 5 }] } }, 'spec.tolerations.0.key'],
    [{ spec: { tolerations: [{ tolerationSeconds: '300' }] } }, 'spec.tolerations.0.tolerationSeconds'],
    [{ spec: { affinity: { nodeAffinity: 'x' } } }, 'spec.affinity.nodeAffinity'],
    [{ spec: { affinity: { nodeAffinity: { [REQUIRED]: [] } } } }, `spec.affinity.nodeAffinity.${REQUIRED}`],
    [
      { spec: { affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [null] } } } } },
      `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms.0`,
    ],
    [
      { spec: { affinity: { nodeAffinity: { [PREFERRED]: [{ weight: 1 }] } } } },
      `spec.affinity.nodeAffinity.${PREFERRED}.0.preference`,
    ],
    [{ spec: { affinity: { podAffinity: { [REQUIRED]: {} } } } }, `spec.affinity.podAffinity.${REQUIRED}`],
  ])('is refused, naming the field: %j', (input, field) => {
    const refusal = expect(() => parsePod(input, 'request.object'));
    refusal.toThrow(InvalidRequestError);
    refusal.toThrow(expect.objectContaining({ field: `request.object${field === '' ? '' : `.${field}`}` }));
    expect(() => parsePod(input)).toThrow(expect.objectContaining({ field }));
  });

  it('runs as the account that it names, in the old field too, else as default', () => {
    expect(serviceAccountName(pod())).toBe('default');
    expect(serviceAccountName(pod('{serviceAccountName: "", serviceAccount: ""}'))).toBe('default');
    expect(serviceAccountName(pod('{serviceAccountName: builder}'))).toBe('builder');
    expect(serviceAccountName(pod('{serviceAccount: old}'))).toBe('old');
    expect(serviceAccountName(pod('{serviceAccountName: builder, serviceAccount: old}'))).toBe('builder');
  });

  it('with huge lists is judged, with short reasons', () => {
    // No more tolerations are read.
    const tolerations = Array.from({ length: 1_000 }, (_, index) => ({
      key: `k${index}`,
      operator: 'Exists',
    }));
    const nodeSelector = {
      disk: 'x'.repeat(100_000),
      ...Object.fromEntries(tolerations.map(({ key }) => [key, 'x'])),
    };
    const keys = tolerations.map(({ key }) => key);
    const policies = [
      policy('a', {
        allowed: {
          tolerations: [{ keys }],
          nodeSelectors: { disk: keys },
          schedulerNames: keys,
        },
      }),
    ];
    const { reasons } = review(
      policies,
      pod({ tolerations, nodeSelector, schedulerName: 'x'.repeat(100_000) }),
    );
    expect(reasons).toHaveLength(1_002);
    expect(Math.max(...reasons.map(({ expectation }) => expectation.length))).toBeLessThan(400);
  });

  it.each([
    ['tolerations', { tolerations: Array(300_000).fill(1) }, 1000],
    [
      'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0.matchExpressions.0.values',
      {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'k', operator: 'In', values: Array(10_001).fill('n') }] },
              ],
            },
          },
        },
      },
      10_000,
    ],
  ])('is rejected for the length of a list before its items are checked: %s', (field, spec, most) => {
    expect(() => parsePod({ spec })).toThrow(`spec.${field}: expected a list of at most ${most}`);
  });
});
