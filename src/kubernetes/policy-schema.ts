/**
 * What a SchedulingPolicy may hold, with the spellings of the draft beside those that are meant. The schema of the
 * CustomResourceDefinition in etc/kubernetes is made of the same.
 * Source: the proposal "Scheduling Policy" of Kubernetes.
 */
import { z } from 'zod';
import { mapping } from './mapping-schema.ts';

export const AFFINITY_TIMES = [
  'requiredDuringSchedulingIgnoredDuringExecution',
  'preferredDuringSchedulingIgnoredDuringExecution',
] as const;

export type AffinityTime = (typeof AFFINITY_TIMES)[number];

const EXPRESSION_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const;
const TOLERATION_OPERATORS = ['Equal', 'Exists', 'Lt', 'Gt'] as const;
const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;

const text = z.string('a text').min(1, 'a text that is not empty');
/** Of a label: an empty one is a value. */
const labelValue = z.string('a text');

function listOf<Item extends z.ZodType>(item: Item) {
  return z.array(item, 'a list');
}

function filled<Item extends z.ZodType>(item: Item) {
  return listOf(item).min(1, 'at least one');
}

function oneOf<const Names extends readonly [string, ...string[]]>(names: Names) {
  return z.enum(names, `one of ${names.join(', ')}`);
}

function labels<Value extends z.ZodType>(value: Value) {
  return z.record(text, value, 'a mapping of labels');
}

/** Refuses mappings that hold all of some names, here and in the schema that is made of it. */
function notTogether<Schema extends z.ZodObject>(schema: Schema, ...pairs: readonly [string, string][]) {
  const refused = pairs.map((pair) => ({ not: { required: pair } }));
  return schema
    .superRefine((value, check) => {
      for (const [kept, other] of pairs) {
        if (kept in value && other in value) {
          check.addIssue({ code: 'custom', path: [other], message: `nothing, since ${kept} is there too` });
        }
      }
    })
    .meta({ allOf: refused });
}

/** A part that is absent or empty means any. */
const expressionRule = mapping({
  keys: listOf(text).optional(),
  operators: listOf(oneOf(EXPRESSION_OPERATORS)).optional(),
  values: listOf(labelValue).optional(),
});

const termRule = mapping({
  matchExpressions: listOf(expressionRule).optional(),
  matchFields: listOf(expressionRule).optional(),
});

const requiredTermRule = mapping({ matchExpressions: filled(expressionRule) });

function affinityRules<Terms extends z.ZodType>(terms: Terms) {
  const ofNodes = mapping({ nodeSelectorTerms: terms.optional() }).optional();
  const ofPods = mapping({}).optional();
  return mapping({
    nodeAffinities: mapping(times(ofNodes)).optional(),
    podAffinities: mapping(times(ofPods)).optional(),
    podAntiAffinities: mapping(times(ofPods)).optional(),
  });
}

function times<Schema extends z.ZodType>(schema: Schema) {
  const [required, preferred] = AFFINITY_TIMES;
  return { [required]: schema, [preferred]: schema } as Record<AffinityTime, Schema>;
}

const tolerationRule = mapping({
  keys: listOf(text).optional(),
  operators: listOf(oneOf(TOLERATION_OPERATORS)).optional(),
  values: listOf(labelValue).optional(),
  effects: listOf(oneOf(EFFECTS)).optional(),
});

/** These say nothing without values. */
const LISTING = ['In', 'NotIn'] as const;

/** The schema of an expression with one of some operators, whichever way it is written. */
function ofOperators(operators: readonly string[]) {
  return {
    anyOf: [
      { required: ['operator'], properties: { operator: { enum: operators } } },
      { required: ['operators'], properties: { operators: { items: { enum: operators } } } },
    ],
  };
}

/** What is both an affinity of a pod and of a default: the draft writes `keys` and `operators` there too. */
const defaultExpression = notTogether(
  mapping({
    key: text.optional(),
    keys: z.array(text, 'a list').length(1, 'exactly one key: a default is what is added').optional(),
    operator: oneOf(EXPRESSION_OPERATORS).optional(),
    operators: z
      .array(oneOf(EXPRESSION_OPERATORS), 'a list')
      .length(1, 'exactly one operator: a default is what is added')
      .optional(),
    values: listOf(labelValue).optional(),
  }),
  ['key', 'keys'],
  ['operator', 'operators'],
)
  .superRefine((value, check) => {
    for (const [one, list] of [
      ['key', 'keys'],
      ['operator', 'operators'],
    ] as const) {
      if (!(one in value) && !(list in value)) {
        check.addIssue({ code: 'custom', path: [], message: `a mapping with ${one}` });
      }
    }
    const operator = value.operator ?? value.operators?.[0];
    if (LISTING.some((one) => one === operator) && (value.values ?? []).length === 0) {
      const path = 'values' in value ? ['values'] : [];
      check.addIssue({ code: 'custom', path, message: `values, since the operator is ${operator}` });
    }
  })
  .meta({
    allOf: [
      { oneOf: [{ required: ['key'] }, { required: ['keys'] }] },
      { oneOf: [{ required: ['operator'] }, { required: ['operators'] }] },
      {
        anyOf: [
          { not: ofOperators(LISTING) },
          { required: ['values'], properties: { values: { minItems: 1 } } },
        ],
      },
    ],
  });

const defaultTerm = mapping({
  matchExpressions: listOf(defaultExpression).optional(),
  matchFields: listOf(defaultExpression).optional(),
});

const weight = z.int('a whole number').min(1, 'a weight from 1 to 100').max(100, 'a weight from 1 to 100');

const labelSelector = mapping({
  matchLabels: labels(labelValue).optional(),
  matchExpressions: listOf(
    mapping({
      key: text,
      operator: oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist']),
      values: listOf(labelValue).optional(),
    }),
  ).optional(),
});

const podAffinityTerm = mapping({
  topologyKey: text,
  labelSelector: labelSelector.optional(),
  namespaceSelector: labelSelector.optional(),
  namespaces: listOf(text).optional(),
  matchLabelKeys: listOf(text).optional(),
  mismatchLabelKeys: listOf(text).optional(),
});

const ofPods = mapping({
  requiredDuringSchedulingIgnoredDuringExecution: filled(podAffinityTerm).optional(),
  preferredDuringSchedulingIgnoredDuringExecution: filled(
    mapping({ weight, podAffinityTerm: podAffinityTerm }),
  ).optional(),
});

const defaultAffinity = mapping({
  nodeAffinity: mapping({
    requiredDuringSchedulingIgnoredDuringExecution: mapping({
      nodeSelectorTerms: filled(defaultTerm),
    }).optional(),
    preferredDuringSchedulingIgnoredDuringExecution: filled(
      mapping({ weight, preference: defaultTerm }),
    ).optional(),
  }).optional(),
  podAffinity: ofPods.optional(),
  podAntiAffinity: ofPods.optional(),
});

const EXISTS_WITHOUT_VALUE = {
  not: {
    properties: { operator: { enum: ['Exists'] } },
    required: ['operator'],
    anyOf: [{ required: ['value'] }, { required: ['values'] }],
  },
};

const defaultToleration = mapping({
  key: text.optional(),
  operator: oneOf(TOLERATION_OPERATORS).optional(),
  value: labelValue.optional(),
  values: filled(labelValue).optional(),
  effect: oneOf(EFFECTS).optional(),
  tolerationSeconds: z.int('a whole number of seconds').optional(),
})
  .superRefine((value, check) => {
    if ('value' in value && 'values' in value) {
      check.addIssue({ code: 'custom', path: ['values'], message: 'nothing, since value is there too' });
    } else if (value.operator === 'Exists' && ('value' in value || 'values' in value)) {
      const path = ['value' in value ? 'value' : 'values'];
      check.addIssue({ code: 'custom', path, message: 'nothing, since the operator is Exists' });
    }
  })
  .meta({ allOf: [{ not: { required: ['value', 'values'] } }, EXISTS_WITHOUT_VALUE] });

const names = listOf(text).nullish();
const requiredNames = listOf(text)
  .min(1, 'at least one name: an empty list would require nothing that exists')
  .nullish();

/** An empty list of values means any: the label must be there. */
const required = notTogether(
  mapping({
    schedulerNames: requiredNames,
    SchedulerNames: requiredNames,
    priorityClassNames: requiredNames,
    priorityClasseNames: requiredNames,
    nodeSelectors: labels(listOf(labelValue))
      .refine((value) => Object.keys(value).length > 0, 'at least one label')
      .meta({ minProperties: 1 })
      .nullish(),
    affinities: affinityRules(filled(requiredTermRule))
      .refine((value) => Object.keys(value).length > 0, 'at least one kind of affinity')
      .meta({ minProperties: 1 })
      .nullish(),
  }),
  ['schedulerNames', 'SchedulerNames'],
  ['priorityClassNames', 'priorityClasseNames'],
);

const allowedAffinities = affinityRules(listOf(termRule));

/** An empty list or mapping means everything. */
const allowed = notTogether(
  mapping({
    schedulerNames: names,
    SchedulerNames: names,
    priorityClassNames: names,
    priorityClasseNames: names,
    nodeSelectors: labels(listOf(labelValue)).nullish(),
    tolerations: listOf(tolerationRule).nullish(),
    affinities: allowedAffinities.nullish(),
  }),
  ['schedulerNames', 'SchedulerNames'],
  ['priorityClassNames', 'priorityClasseNames'],
);

const defaults = notTogether(
  mapping({
    schedulerName: text.nullish(),
    SchedulerName: text.nullish(),
    priorityClassName: text.nullish(),
    priorityClasseName: text.nullish(),
    nodeSelector: labels(labelValue).nullish(),
    tolerations: listOf(defaultToleration).min(1, 'at least one toleration').nullish(),
    affinity: defaultAffinity.nullish(),
  }),
  ['schedulerName', 'SchedulerName'],
  ['priorityClassName', 'priorityClasseName'],
);

/** Of `allowed`, where it is null, nothing is asked. */
const AFFINITIES_ONCE = {
  anyOf: [
    { not: { required: ['allowedAffinities'] } },
    { properties: { allowed: { not: { required: ['affinities'] } } } },
  ],
};

/** Of a SchedulingPolicy. A member that is `null` is as one that is not there. */
export const policySpecSchema = mapping({
  required: required.nullish(),
  allowed: allowed.nullish(),
  default: defaults.nullish(),
  allowedAffinities: allowedAffinities.nullish(),
})
  .superRefine((spec, check) => {
    if ('allowedAffinities' in spec && 'affinities' in (spec.allowed ?? {})) {
      const message = 'nothing, since allowed.affinities is there too';
      check.addIssue({ code: 'custom', path: ['allowedAffinities'], message });
    }
  })
  .meta({ allOf: [AFFINITIES_ONCE] });

export type WrittenSpec = z.infer<typeof policySpecSchema>;
export type AffinityRules = z.infer<typeof allowedAffinities>;
export type RequiredAffinities = NonNullable<NonNullable<WrittenSpec['required']>['affinities']>;
export type ExpressionRule = z.infer<typeof expressionRule>;
export type TermRule = z.infer<typeof termRule>;
export type TolerationRule = z.infer<typeof tolerationRule>;
export type WrittenToleration = z.infer<typeof defaultToleration>;
export type WrittenAffinity = z.infer<typeof defaultAffinity>;
export type WrittenExpression = z.infer<typeof defaultExpression>;

/** The other spellings of the draft: to be read, not to be proposed. */
export const DRAFT_SPELLINGS: ReadonlySet<string> = new Set([
  'Kind',
  'SchedulerNames',
  'SchedulerName',
  'priorityClasseNames',
  'priorityClasseName',
  'allowedAffinities',
]);
