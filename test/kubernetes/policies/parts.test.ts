import { describe, expect, it } from 'vitest';
import { type MergedPolicy, mergePolicies, partsOf } from '../../../src/kubernetes/policies/merge.ts';
import { formatPath } from '../../../src/yaml/tree.ts';
import { policy, proposalPolicies } from '../../support/scheduling-policies.ts';

/** `required.nodeSelectors.disk = ["ssd"] (a)` */
function shown(merged: MergedPolicy): string[] {
  return partsOf(merged).map(
    (part) => `${formatPath(part.path)} = ${JSON.stringify(part.value)} (${part.policy})`,
  );
}

const A = policy('a', {
  required: { nodeSelectors: { disk: ['ssd'] }, schedulerNames: ['green'] },
  allowed: { nodeSelectors: { zone: [] } },
  default: { nodeSelector: { disk: 'ssd' } },
});
const B = policy('b', {
  required: { nodeSelectors: { disk: ['hdd'], arch: ['arm64'] }, schedulerNames: ['blue'] },
  allowed: { nodeSelectors: { zone: ['x'] }, tolerations: [{ keys: ['k'] }, { keys: ['l'] }] },
  default: { nodeSelector: { disk: 'hdd', arch: 'arm64' }, tolerations: [{ key: 'k' }] },
});

describe('partsOf', () => {
  it('shows the parts of a deep merge with their policies, from required to default', () => {
    expect(shown(mergePolicies([B, A], 'deep'))).toEqual([
      'required.schedulerNames = ["green"] (a)',
      'required.nodeSelectors.disk = ["ssd"] (a)',
      'required.nodeSelectors.arch = ["arm64"] (b)',
      'allowed.nodeSelectors.zone = [] (a)',
      'allowed.nodeSelectors.zone = ["x"] (b)',
      'allowed.tolerations = [{"keys":["k"]},{"keys":["l"]}] (b)',
      'default.nodeSelector.disk = "ssd" (a)',
      'default.nodeSelector.arch = "arm64" (b)',
      'default.tolerations = [{"key":"k"}] (b)',
    ]);
  });

  it('shows only the parts that count for other strategies', () => {
    expect(shown(mergePolicies([A, B], 'first'))).toEqual([
      'required.schedulerNames = ["green"] (a)',
      'required.nodeSelectors.disk = ["ssd"] (a)',
      'allowed.nodeSelectors.zone = [] (a)',
      'default.nodeSelector.disk = "ssd" (a)',
    ]);
    expect(shown(mergePolicies([A, B], 'simple'))).toEqual([
      'required.schedulerNames = ["green"] (a)',
      'required.nodeSelectors.disk = ["ssd"] (a)',
      'allowed.nodeSelectors.zone = [] (a)',
      'allowed.tolerations = [{"keys":["k"]},{"keys":["l"]}] (b)',
      'default.nodeSelector.disk = "ssd" (a)',
      'default.tolerations = [{"key":"k"}] (b)',
    ]);
  });

  it('shows empty parts that mean everything, but no empty sections', () => {
    const all = policy('all', {
      allowed: { nodeSelectors: {}, tolerations: [], affinities: { podAffinities: {}, nodeAffinities: {} } },
    });
    expect(
      shown(mergePolicies([all, policy('silent', {}), policy('empty', { required: {} })], 'deep')),
    ).toEqual([
      'allowed.nodeSelectors = {} (all)',
      'allowed.tolerations = [] (all)',
      expect.stringMatching(/^allowed\.affinities\.\w+ = \{\} \(all\)$/),
      expect.stringMatching(/^allowed\.affinities\.\w+ = \{\} \(all\)$/),
    ]);
    expect(partsOf(mergePolicies([], 'deep'))).toEqual([]);
  });

  it('keeps labels with dots, slashes and brackets in one step', () => {
    const label = 'beta.kubernetes.io/arch[0]';
    const merged = mergePolicies([policy('p', { required: { nodeSelectors: { [label]: ['x'] } } })], 'deep');
    expect(partsOf(merged)).toEqual([
      { path: ['required', 'nodeSelectors', label], value: ['x'], policy: 'p' },
    ]);
  });

  it('does not split lists', () => {
    const affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'arch', operator: 'In', values: ['amd64'] }] }],
        },
      },
    };
    const [part, ...others] = partsOf(mergePolicies([policy('p', { default: { affinity } })], 'deep'));
    expect(others).toEqual([]);
    expect(formatPath(part?.path ?? [])).toBe(
      'default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms',
    );
  });

  it('shows the merge of the proposal with the policy of each part', () => {
    const policies = proposalPolicies(22);
    expect(policies.map(({ name }) => name)).toEqual(['schedpol-a', 'schedpol-b']);
    expect(shown(mergePolicies(policies, 'deep'))).toEqual([
      'required.nodeSelectors.beta.kubernetes.io/arch = ["amd64","arm64"] (schedpol-a)',
      'required.nodeSelectors.beta.kubernetes.io/os = ["Linux","Windows"] (schedpol-b)',
      'required.priorityClassNames = ["bronze","gold","silver"] (schedpol-b)',
      'allowed.nodeSelectors.disk = ["ssd"] (schedpol-a)',
      'allowed.nodeSelectors.disk = ["sata"] (schedpol-b)',
      'default.nodeSelector.beta.kubernetes.io/arch = "amd64" (schedpol-a)',
      'default.nodeSelector.beta.kubernetes.io/os = "Linux" (schedpol-b)',
      'default.priorityClassName = "bronze" (schedpol-b)',
    ]);
  });
});
