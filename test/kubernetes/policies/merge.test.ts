import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPath } from '../../../src/base/yaml/tree.ts';
import { type MergedPolicy, mergePolicies, partsOf } from '../../../src/kubernetes/policies/merge.ts';
import type { SchedulingPolicy } from '../../../src/kubernetes/policies/policy.ts';
import { policy as written } from '../../support/scheduling-policies.ts';

const STRATEGIES = ['deep', 'first', 'simple'] as const;
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const HOSTILE = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'a/b.c', 'required', '', 'disk'];

function policy(name: string, sections: Partial<SchedulingPolicy> = {}): SchedulingPolicy {
  return { group: 'extensions', required: {}, allowed: {}, default: {}, ...sections, name };
}

/** All that a merge says, with the source of each part. */
function ruleOutcomes(merged: MergedPolicy): unknown {
  const sources: string[] = [];
  const walk = (value: unknown, ...path: string[]): void => {
    sources.push(`${path.join(' → ')}: ${merged.sourceOf(...path)}`);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      for (const [name, part] of Object.entries(value)) {
        walk(part, ...path, name);
      }
    }
  };
  walk(merged.required, 'required');
  walk(merged.default, 'default');
  const { policies, required, allowed, default: defaults } = merged;
  return JSON.stringify({ policies, required, allowed, defaults, sources });
}

function frozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).map(frozen);
    Object.freeze(value);
  }
  return value;
}

const names = fc.array(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 });
const labels = <Value>(value: fc.Arbitrary<Value>) => fc.dictionary(fc.constantFrom(...HOSTILE), value);
const part = { requiredKeys: [] } satisfies { requiredKeys: [] };
const affinities = fc.constantFrom(
  {},
  { podAffinities: {} },
  { nodeAffinities: {} },
  { nodeAffinities: { [REQUIRED]: {} } },
  { nodeAffinities: { [REQUIRED]: { nodeSelectorTerms: [] }, [PREFERRED]: {} } },
);
const sections = fc.record({
  required: fc.record(
    { schedulerNames: names, priorityClassNames: names, nodeSelectors: labels(names), affinities },
    part,
  ),
  allowed: fc.record({ schedulerNames: names, nodeSelectors: labels(names), affinities }, part),
  default: fc.record(
    { schedulerName: fc.constantFrom('x', 'y'), nodeSelector: labels(fc.constant('x')) },
    part,
  ),
});
/** Names that a locale, or a number, would order otherwise. */
const someNames = fc.uniqueArray(fc.constantFrom('a', 'B', 'ä', '10', '9', 'a-b', 'a.b', 'Z', '_'), {
  minLength: 1,
  maxLength: 6,
});
const somePolicies = someNames.chain((all) =>
  fc.tuple(
    ...all.map((name) => sections.map((one) => frozen(policy(name, one as Partial<SchedulingPolicy>)))),
  ),
);

it('the order of the policies does not matter, and they are not changed', () => {
  const shuffled = somePolicies.chain((policies) =>
    fc.tuple(
      fc.constant(policies),
      fc.shuffledSubarray(policies, { minLength: policies.length }),
      fc.constantFrom(...STRATEGIES),
    ),
  );
  fc.assert(
    fc.property(shuffled, ([policies, others, strategy]) => {
      expect(ruleOutcomes(mergePolicies(others, strategy))).toBe(
        ruleOutcomes(mergePolicies(policies, strategy)),
      );
    }),
    { numRuns: 500 },
  );
});

const FIRST = policy('a', {
  required: { schedulerNames: ['one'], nodeSelectors: { arch: ['amd64', 'arm64'] } },
  allowed: { nodeSelectors: { disk: ['ssd'] }, priorityClassNames: ['low'] },
  default: { nodeSelector: { arch: 'amd64' } },
});
const SECOND = policy('b', {
  required: {
    schedulerNames: ['two'],
    priorityClassNames: ['high'],
    nodeSelectors: { arch: ['i386'], os: ['linux'] },
  },
  allowed: { nodeSelectors: { disk: ['sata'] }, schedulerNames: ['three'] },
  default: { nodeSelector: { arch: 'i386', os: 'linux' }, schedulerName: 'two' },
});

describe('the source of a part', () => {
  const merged = mergePolicies([FIRST, SECOND], 'deep');

  it.each([
    ['a', ['required', 'nodeSelectors']],
    ['b', ['required', 'nodeSelectors', 'os']],
    ['a', ['required', 'nodeSelectors', 'of none']],
    ['', ['allowed', 'nodeSelectors', 'disk']],
  ])('is %j for %j', (source, path) => {
    expect(merged.sourceOf(...path)).toBe(source);
  });
});

/** `required.nodeSelectors.disk = ["ssd"] (a)` */
function shown(merged: MergedPolicy): string[] {
  return partsOf(merged).map(
    (part) => `${formatPath(part.path)} = ${JSON.stringify(part.value)} (${part.policy})`,
  );
}

const A = written('a', {
  required: { nodeSelectors: { disk: ['ssd'] }, schedulerNames: ['green'] },
  allowed: { nodeSelectors: { zone: [] } },
  default: { nodeSelector: { disk: 'ssd' } },
});
const B = written('b', {
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

  it('shows empty parts that mean everything, but no empty sections', () => {
    const all = written('all', {
      allowed: { nodeSelectors: {}, tolerations: [], affinities: { podAffinities: {}, nodeAffinities: {} } },
    });
    expect(
      shown(mergePolicies([all, written('silent', {}), written('empty', { required: {} })], 'deep')),
    ).toEqual([
      'allowed.nodeSelectors = {} (all)',
      'allowed.tolerations = [] (all)',
      expect.stringMatching(/^allowed\.affinities\.\w+ = \{\} \(all\)$/),
      expect.stringMatching(/^allowed\.affinities\.\w+ = \{\} \(all\)$/),
    ]);
    expect(partsOf(mergePolicies([], 'deep'))).toEqual([]);
  });
});
