/** The largest policies that are exported: the plugin of Kubernetes evaluates them within its limits. */
import { afterAll, describe, expect, it } from 'vitest';
import { admissionPolicy } from '../../src/kubernetes/export/admission-policies.ts';
import { MERGE_STRATEGIES, type MergeStrategy } from '../../src/kubernetes/policies/merge.ts';
import { OPTIONS } from '../kubernetes/export/admission-policy-cases.ts';
import { policy } from '../support/scheduling-policies.ts';
import { admissionJudge, bindingIn } from './admission-judge.ts';

const judge = admissionJudge();
afterAll(() => judge?.remove());

const NAMESPACE = 'research';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const FREE = { schedulerNames: [] };
/** What a pod may have of everything, as the documentation promises. */
const ITEMS = 16;

function many<Item>(count: number, of: (index: number) => Item): Item[] {
  return Array.from({ length: count }, (_, index) => of(index));
}

const toleration = (index: number) => ({
  keys: [`k${index}`],
  operators: ['Exists'],
  effects: ['NoSchedule'],
});
const about = (index: number) => ({ keys: [`k${index}`], operators: ['In'], values: ['1', '2'] });
const podTerm = (index: number) => ({
  topologyKey: 'zone',
  labelSelector: { matchLabels: { app: `web-${index}` } },
});
const ofNodes = (terms: object) => ({ [REQUIRED]: { nodeSelectorTerms: [terms] } });
const tolerating = (count: number, start = 0) => ({
  tolerations: many(count, (index) => toleration(start + index)),
});
const attracted = (count: number, start = 0) => ({
  affinities: {
    nodeAffinities: ofNodes({ matchExpressions: many(count, (index) => about(start + index)) }),
  },
});
/** A pod whose every item only the last rule allows. */
const tolerates = (count: number) => ({
  tolerations: many(ITEMS, () => ({ key: `k${count - 1}`, operator: 'Exists', effect: 'NoSchedule' })),
});
const isAttracted = (count: number) => ({
  affinity: {
    nodeAffinity: ofNodes({
      matchExpressions: many(ITEMS, () => ({ key: `k${count - 1}`, operator: 'In', values: ['2'] })),
    }),
  },
});

const VALUES = many(100, (index) => `a-value-with-a-long-name-${index}`);

interface Shape {
  readonly what: string;
  readonly strategy: MergeStrategy;
  /** More are refused for sure. */
  readonly most: number;
  specs(size: number): object[];
  /** A pod that policies of this size allow. */
  pod(size: number): object;
}

/** One less than can be: their rights leave little for rules. */
const COUNT = 27;
const SHAPES: readonly Shape[] = [
  {
    what: 'policies',
    strategy: 'deep',
    most: 40,
    specs: (size) => many(size, () => ({ allowed: FREE })),
    pod: () => ({}),
  },
  {
    what: 'rules for tolerations',
    strategy: 'deep',
    most: 2000,
    specs: (size) => [{ allowed: { ...FREE, ...tolerating(size) } }],
    pod: tolerates,
  },
  {
    what: 'rules for affinities',
    strategy: 'deep',
    most: 2000,
    specs: (size) => [{ allowed: { ...FREE, ...attracted(size) } }],
    pod: isAttracted,
  },
  {
    what: 'terms of a default',
    strategy: 'deep',
    most: 2000,
    specs: (size) => [
      { allowed: FREE, default: { affinity: { podAffinity: { [REQUIRED]: many(size, podTerm) } } } },
    ],
    pod: (size) => ({ affinity: { podAffinity: { [REQUIRED]: many(ITEMS, () => podTerm(size - 1)) } } }),
  },
  {
    what: 'labels',
    strategy: 'deep',
    most: 600,
    specs: (size) => [
      { allowed: { ...FREE, nodeSelectors: Object.fromEntries(many(size, (one) => [`l${one}`, VALUES])) } },
    ],
    pod: (size) => ({ nodeSelector: Object.fromEntries(many(size, (one) => [`l${one}`, VALUES[0]])) }),
  },
  ...MERGE_STRATEGIES.map((strategy) => ({
    what: `rules in each of many policies, merged with ${strategy},`,
    strategy,
    most: 100,
    specs: (size: number) =>
      many(COUNT, (index) => ({
        allowed: {
          ...FREE,
          // The strategies that look at one policy at a time look at the last rule of it.
          ...tolerating(size, strategy === 'deep' ? index * size : 0),
          ...attracted(size, strategy === 'deep' ? index * size : 0),
        },
      })),
    pod: (size: number) => {
      const last = strategy === 'deep' ? COUNT * size : size;
      return { ...tolerates(last), ...isAttracted(last) };
    },
  })),
];

function exportOf({ specs, strategy }: Shape, size: number) {
  const policies = specs(size).map((spec, index) => policy(`p${String(index).padStart(2, '0')}`, spec));
  const options = { ...OPTIONS, strategy };
  return { policies, exported: admissionPolicy(policies, 'pods', options) };
}

function largest(shape: Shape): number {
  let low = 1;
  let high = shape.most;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    try {
      exportOf(shape, middle);
      low = middle;
    } catch {
      high = middle;
    }
  }
  return low;
}

describe.skipIf(judge === undefined)('the largest policies that are exported', () => {
  it.each(SHAPES)(
    'as many $what as are exported are evaluated within the limits of Kubernetes',
    async (shape) => {
      const size = largest(shape);
      expect(() => exportOf(shape, shape.most)).toThrow(/^test-pods: expected .* of at most \d+, got \d+/);
      const { policies, exported } = exportOf(shape, size);
      const verdicts = await judge?.judge(
        [exported, bindingIn(exported.metadata.name, NAMESPACE)],
        [
          {
            operation: 'CREATE',
            resource: 'pods',
            kind: 'Pod',
            namespace: NAMESPACE,
            object: {
              metadata: { name: 'web' },
              spec: { containers: [], schedulerName: 'default-scheduler', ...shape.pod(size) },
            },
            allowed: policies.map(
              ({ name, group }) =>
                `use/${group}/schedulingpolicies/${name}@system:serviceaccount:${NAMESPACE}:default`,
            ),
          },
        ],
      );
      expect(verdicts).toMatchObject([{ allowed: true, message: '' }]);
    },
  );
});
