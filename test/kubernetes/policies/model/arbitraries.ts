/** Documents of policies and pods of so few words that what one says, others often say too. */
import fc from 'fast-check';
import { optional } from '../../../support/properties.ts';
import { deepFreeze } from '../../../support/requests.ts';
import type { PolicyDocument, Section } from '../documents/obvious-documents.ts';
import { affinityPart } from './arbitrary-affinities.ts';
import { from, often, type Part, part, subset } from './arbitrary-parts.ts';
import type { ObviousPod } from './obvious-evaluator.ts';

/** Frozen: who changes one of them throws. */
export interface Case {
  readonly documents: readonly PolicyDocument[];
  readonly pod: ObviousPod;
  readonly addDefaults: boolean;
  readonly isForOneNode: boolean;
}

const SCHEDULERS = ['default-scheduler', 'green', 'blue'] as const;
const CLASSES = ['gold', 'iron'] as const;
const LABELS = ['disk', 'zone', 'constructor'] as const;
const VALUES = ['1', '2', ''] as const;
const KEYS = ['gpu', 'spot'] as const;
const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;
const OPERATORS = ['Equal', 'Exists', 'Gt', 'Lt'] as const;

const scheduler = part({
  required: subset(SCHEDULERS, 1).map((schedulerNames) => ({ schedulerNames })),
  allowed: subset(SCHEDULERS).map((schedulerNames) => ({ schedulerNames })),
  default: from(SCHEDULERS).map((schedulerName) => ({ schedulerName })),
  pod: optional({
    schedulerName: from([...SCHEDULERS, SCHEDULERS[0], '', null]),
    nodeName: from(['node-1', '', '', null]),
  }),
});

const priorityClass = part({
  required: subset(CLASSES, 1).map((priorityClassNames) => ({ priorityClassNames })),
  allowed: subset(CLASSES).map((priorityClassNames) => ({ priorityClassNames })),
  default: from(CLASSES).map((priorityClassName) => ({ priorityClassName })),
  pod: optional({
    priorityClassName: from([...CLASSES, '', null]),
    priority: from([0, null]),
    preemptionPolicy: from(['Never']),
  }),
});

const labels = (values: fc.Arbitrary<unknown>, minKeys = 0) =>
  fc.dictionary(from(LABELS), values, { minKeys, maxKeys: 2, noNullPrototype: true });

const nodeSelector = part({
  required: labels(subset(VALUES), 1).map((nodeSelectors) => ({ nodeSelectors })),
  allowed: labels(subset(VALUES)).map((nodeSelectors) => ({ nodeSelectors })),
  default: labels(from(VALUES)).map((chosen) => ({ nodeSelector: chosen })),
  pod: fc.oneof(labels(from(VALUES)), fc.constant(null)).map((chosen) => ({ nodeSelector: chosen })),
});

/** What the API server adds to every pod, and what the DaemonSet controller adds to its own. */
const ofTheSystem = fc.oneof(
  from(['not-ready', 'unreachable'] as const).map((name) => ({
    key: `node.kubernetes.io/${name}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  })),
  fc.constant({ key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' }),
);

const ofAValue = fc.record({
  key: from(KEYS),
  operator: from(['Equal', 'Gt', 'Lt', '', null, undefined] as const),
  value: from([...VALUES, undefined]),
  effect: from([...EFFECTS, '', undefined] as const),
});
const ofAnyValue = fc.record({
  key: from([...KEYS, '', undefined] as const),
  operator: fc.constant('Exists'),
  effect: from([...EFFECTS, null, undefined] as const),
});

const defaultToleration = fc.oneof(
  fc.record(
    {
      key: from(KEYS),
      operator: fc.constant('Equal'),
      values: fc.array(from(VALUES), { minLength: 1, maxLength: 2 }),
      effect: from(EFFECTS),
    },
    { requiredKeys: ['key', 'values'] },
  ),
  fc.record(
    { key: from(KEYS), operator: fc.constant('Exists'), effect: from(EFFECTS) },
    { requiredKeys: ['operator'] },
  ),
  ofTheSystem,
);

const tolerationRule = optional({
  keys: subset(KEYS),
  operators: subset(OPERATORS),
  values: subset(VALUES),
  effects: subset(EFFECTS),
});

const toleration = part({
  required: fc.array(tolerationRule, { minLength: 1, maxLength: 2 }).map((tolerations) => ({ tolerations })),
  allowed: fc.array(tolerationRule, { maxLength: 3 }).map((tolerations) => ({ tolerations })),
  default: fc
    .array(defaultToleration, { minLength: 1, maxLength: 2 })
    .map((tolerations) => ({ tolerations })),
  pod: fc
    .oneof(
      fc.array(fc.oneof(ofAValue, ofAnyValue, ofTheSystem).map(written), { maxLength: 2 }),
      fc.constant(null),
    )
    .map((tolerations) => ({ tolerations })),
});

/** Without what is not there, as what comes as JSON. */
function written<Value extends object>(value: Value): Partial<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Partial<Value>;
}

const DRAFT: Readonly<Record<string, string>> = {
  schedulerNames: 'SchedulerNames',
  schedulerName: 'SchedulerName',
  priorityClassNames: 'priorityClasseNames',
  priorityClassName: 'priorityClasseName',
};

function section(
  chosen: readonly (Part | undefined)[],
  index: number,
  name: 'required' | 'allowed' | 'default',
  isDraft = false,
): Section | null {
  const fields = chosen.flatMap((one) => Object.entries(one?.policies[index]?.[name] ?? {}));
  const spelled = fields.map(([field, value]) => [(isDraft && DRAFT[field]) || field, value] as const);
  return fields.length === 0 ? null : Object.fromEntries(spelled);
}

const sometimes = <Value>(arbitrary: fc.Arbitrary<Value>) => often(arbitrary, 2, 3);

/** Most speak of one or two things, or else hardly any pod would be allowed. */
const parts: fc.Arbitrary<readonly (Part | undefined)[]> = fc.tuple(
  sometimes(scheduler),
  sometimes(priorityClass),
  sometimes(nodeSelector),
  sometimes(toleration),
  sometimes(affinityPart),
);

export const cases: fc.Arbitrary<Case> = fc
  .record({
    names: fc.oneof(
      { weight: 9, arbitrary: fc.shuffledSubarray(['a', 'B', 'c'], { minLength: 1 }) },
      { weight: 1, arbitrary: fc.constant<string[]>([]) },
    ),
    parts,
    isDraft: fc.boolean(),
    addDefaults: often(fc.constant(true), 4, 1).map((chosen) => chosen ?? false),
    isForOneNode: fc.boolean(),
  })
  .map(({ names, parts: chosen, isDraft, addDefaults, isForOneNode }) =>
    deepFreeze({
      documents: names.map((name, index) => ({
        name,
        spec: {
          required: section(chosen, index, 'required', isDraft),
          allowed: section(chosen, index, 'allowed', isDraft),
          default: section(chosen, index, 'default', isDraft),
        },
      })),
      pod: {
        metadata: { name: 'web' },
        spec: Object.assign(
          { containers: [{ name: 'web', image: 'web' }] },
          ...chosen.map((one) => one?.pod),
        ),
      },
      addDefaults,
      isForOneNode,
    }),
  );

/** A policy that only allows. */
export const allowedOnly: fc.Arbitrary<PolicyDocument> = fc
  .tuple(from(['0', 'b', 'd']), parts)
  .map(([name, chosen]) =>
    deepFreeze({
      name,
      spec: {
        allowed: section(chosen, 0, 'allowed'),
      },
    }),
  );
