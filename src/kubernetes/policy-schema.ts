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

/** What `kubectl explain` shows of a field. */
const described = <Schema extends z.ZodType>(schema: Schema, description: string): Schema =>
  schema.meta({ description }) as Schema;

/** The same field as the draft spells it in places. */
const asDrafted = <Schema extends z.ZodType>(schema: Schema, name: string): Schema =>
  described(schema, `${name}, as the draft spells it. Only one of the two may be there.`);

/** A part that is absent or empty means any. */
const expressionRule = mapping({
  keys: described(listOf(text).optional(), 'Labels, or under matchFields fields. None listed = any.'),
  operators: described(
    listOf(oneOf(EXPRESSION_OPERATORS)).optional(),
    'None listed = any; where values are listed, In. Of a required rule never NotIn or DoesNotExist, unless listed.',
  ),
  values: described(
    listOf(labelValue).optional(),
    'All values of an expression must be among these. None listed = any.',
  ),
});

const matchExpressions = 'What expressions about labels may say. An expression needs one of these rules.';
const termRule = mapping({
  matchExpressions: described(listOf(expressionRule).optional(), matchExpressions),
  matchFields: described(
    listOf(expressionRule).optional(),
    'What expressions about fields may say, such as metadata.name. Also for the nodeName of a pod.',
  ),
});

const requiredTermRule = mapping({
  matchExpressions: described(filled(expressionRule), 'What a term must say: each of these rules.'),
});

function affinityRules<Terms extends z.ZodType>(terms: Terms) {
  const nodeSelectorTerms = described(
    terms.optional(),
    'Rules for the terms of a pod. None listed = any term.',
  );
  const ofNodes = mapping({ nodeSelectorTerms }).optional();
  const ofPods = mapping({}).optional();
  return mapping({
    nodeAffinities: described(mapping(times(ofNodes)).optional(), 'To nodes. {} = any.'),
    podAffinities: described(mapping(times(ofPods)).optional(), 'To other pods. {} = any.'),
    podAntiAffinities: described(mapping(times(ofPods)).optional(), 'Away from other pods. {} = any.'),
  });
}

function times<Schema extends z.ZodType>(schema: Schema) {
  const [required, preferred] = AFFINITY_TIMES;
  return {
    [required]: described(schema, 'What the scheduler must fulfil. {} = any.'),
    [preferred]: described(schema, 'What the scheduler tries to fulfil. {} = any.'),
  } as Record<AffinityTime, Schema>;
}

const tolerationRule = mapping({
  keys: described(
    listOf(text).optional(),
    'Keys of taints. None listed = any, also a toleration of all keys.',
  ),
  operators: described(
    listOf(oneOf(TOLERATION_OPERATORS)).optional(),
    'None listed = any; where values are listed, Equal.',
  ),
  values: described(listOf(labelValue).optional(), 'None listed = any.'),
  effects: described(
    listOf(oneOf(EFFECTS)).optional(),
    'None listed = any, also a toleration of all effects.',
  ),
});

const names = listOf(text).nullish();
const requiredNames = listOf(text)
  .min(1, 'at least one name: an empty list would require nothing that exists')
  .nullish();

const NAMES = {
  schedulers: 'Schedulers, of which the pod must name one.',
  classes: 'PriorityClasses, of which the pod must name one.',
  allowedSchedulers: 'Schedulers that the pod may name. [] = any.',
  allowedClasses: 'PriorityClasses that the pod may name. [] = any.',
  scheduler: 'The scheduler of a pod that names none, or only the one that the API server fills in.',
  priorityClass: 'The PriorityClass of a pod that names none.',
} as const;

/** An empty list of values means any: the label must be there. */
const required = notTogether(
  mapping({
    schedulerNames: described(requiredNames, NAMES.schedulers),
    SchedulerNames: asDrafted(requiredNames, 'schedulerNames'),
    priorityClassNames: described(requiredNames, NAMES.classes),
    priorityClasseNames: asDrafted(requiredNames, 'priorityClassNames'),
    nodeSelectors: described(
      labels(listOf(labelValue))
        .refine((value) => Object.keys(value).length > 0, 'at least one label')
        .meta({ minProperties: 1 })
        .nullish(),
      'Labels that the node selector of the pod must have, each with one of these values. [] = any value.',
    ),
    tolerations: described(
      listOf(tolerationRule).min(1, 'at least one toleration').nullish(),
      'Rules, of which one toleration of the pod must fit one.',
    ),
    affinities: described(
      affinityRules(filled(requiredTermRule))
        .refine((value) => Object.keys(value).length > 0, 'at least one kind of affinity')
        .meta({ minProperties: 1 })
        .nullish(),
      'Affinities that the pod must have.',
    ),
  }),
  ['schedulerNames', 'SchedulerNames'],
  ['priorityClassNames', 'priorityClasseNames'],
);

const allowedAffinities = affinityRules(listOf(termRule));

/** An empty list or mapping means everything. */
const allowed = notTogether(
  mapping({
    schedulerNames: described(names, NAMES.allowedSchedulers),
    SchedulerNames: asDrafted(names, 'schedulerNames'),
    priorityClassNames: described(names, NAMES.allowedClasses),
    priorityClasseNames: asDrafted(names, 'priorityClassNames'),
    nodeSelectors: described(
      labels(listOf(labelValue)).nullish(),
      'Labels that the node selector of the pod may have, each with one of these values. {} = any label, [] = any value.',
    ),
    tolerations: described(
      listOf(tolerationRule).nullish(),
      'Rules, of which each toleration of the pod must fit one. [] = any toleration.',
    ),
    affinities: described(allowedAffinities.nullish(), 'Affinities that the pod may have. {} = any.'),
  }),
  ['schedulerNames', 'SchedulerNames'],
  ['priorityClassNames', 'priorityClasseNames'],
);

const defaults = notTogether(
  mapping({
    schedulerName: described(text.nullish(), NAMES.scheduler),
    SchedulerName: asDrafted(text.nullish(), 'schedulerName'),
    priorityClassName: described(text.nullish(), NAMES.priorityClass),
    priorityClasseName: asDrafted(text.nullish(), 'priorityClassName'),
    nodeSelector: described(
      labels(labelValue).nullish(),
      'Labels that the node selector gets where it lacks them.',
    ),
    tolerations: described(
      listOf(defaultToleration).min(1, 'at least one toleration').nullish(),
      'The tolerations of a pod that has none but those of the system. One with values becomes one for each.',
    ),
    affinity: described(
      defaultAffinity.nullish(),
      'The affinities of a pod that has none of the same kind and time.',
    ),
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
  required: described(
    required.nullish(),
    'What a pod must have. It is allowed too; of schedulers, priority classes and the values of a label nothing else is.',
  ),
  allowed: described(
    allowed.nullish(),
    'What a pod may have. A field that is left out allows nothing of it, an empty one everything.',
  ),
  default: described(defaults.nullish(), 'What a pod gets where it says nothing. It is allowed too.'),
  allowedAffinities: asDrafted(allowedAffinities.nullish(), 'allowed.affinities'),
})
  .superRefine((spec, check) => {
    if ('allowedAffinities' in spec && 'affinities' in (spec.allowed ?? {})) {
      const message = 'nothing, since allowed.affinities is there too';
      check.addIssue({ code: 'custom', path: ['allowedAffinities'], message });
    }
  })
  .meta({
    allOf: [AFFINITIES_ONCE],
    description: 'What pods must, may and by default do use. Nothing is allowed but what a policy allows.',
  });

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
