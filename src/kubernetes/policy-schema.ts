/**
 * What a SchedulingPolicy may hold, with the spellings of the draft beside those that are meant. The schema of the
 * CustomResourceDefinition in etc/kubernetes is made of the same.
 * Source: the proposal "Scheduling Policy" of Kubernetes.
 */
import type { z } from 'zod';
import { defaultAffinity, defaultToleration } from './default-schema.ts';
import { mapping } from './mapping-schema.ts';
import {
  EFFECTS,
  EXPRESSION_OPERATORS,
  filled,
  labels,
  labelValue,
  listOf,
  notTogether,
  oneOf,
  TOLERATION_OPERATORS,
  text,
} from './schema-words.ts';

export const AFFINITY_TIMES = [
  'requiredDuringSchedulingIgnoredDuringExecution',
  'preferredDuringSchedulingIgnoredDuringExecution',
] as const;

export type AffinityTime = (typeof AFFINITY_TIMES)[number];

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
    tolerations: listOf(tolerationRule).min(1, 'at least one toleration').nullish(),
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

/** The other spellings of the draft: to be read, not to be proposed. */
export const DRAFT_SPELLINGS: ReadonlySet<string> = new Set([
  'Kind',
  'SchedulerNames',
  'SchedulerName',
  'priorityClasseNames',
  'priorityClasseName',
  'allowedAffinities',
]);
