/**
 * The schema of a SchedulingPolicy, including the alternative spellings of the draft. The schema of the
 * CustomResourceDefinition in etc/kubernetes is generated from it.
 * Source: the proposal "Scheduling Policy" of Kubernetes.
 */
import type { z } from 'zod';
import { formatPath, type Mapping, type Path, shown, valueAt } from '../../../base/yaml/tree.ts';
import { nearestName } from '../../../config/nearest.ts';
import { defaultAffinity, defaultToleration } from './default-schema.ts';
import {
  EFFECTS,
  EXPRESSION_OPERATORS,
  filled,
  labels,
  labelValue,
  listOf,
  mapping,
  notTogether,
  oneOf,
  TOLERATION_OPERATORS,
  text,
} from './schema-helpers.ts';

export const AFFINITY_TIMES = [
  'requiredDuringSchedulingIgnoredDuringExecution',
  'preferredDuringSchedulingIgnoredDuringExecution',
] as const;

export type AffinityTime = (typeof AFFINITY_TIMES)[number];

/** Descriptions for `kubectl explain`. */
const described = <Schema extends z.ZodType>(schema: Schema, description: string): Schema =>
  schema.meta({ description }) as Schema;

/** The same field in a spelling that the draft uses in places. */
const asDrafted = <Schema extends z.ZodType>(schema: Schema, name: string): Schema =>
  described(schema, `${name}, as the draft spells it. Set only one of the two.`);

/** A missing or empty part means any. */
const expressionRule = mapping({
  keys: described(listOf(text).optional(), 'Labels, or fields under matchFields. Empty = any.'),
  operators: described(
    listOf(oneOf(EXPRESSION_OPERATORS)).optional(),
    'Operators. Empty = any; if values are listed, only In. Empty in a required rule excludes NotIn and DoesNotExist.',
  ),
  values: described(
    listOf(labelValue).optional(),
    'All values of an expression must be in this list. Empty = any.',
  ),
});

const matchExpressions = 'Rules for label expressions. Each expression must satisfy one of them.';
const termRule = mapping({
  matchExpressions: described(listOf(expressionRule).optional(), matchExpressions),
  matchFields: described(
    listOf(expressionRule).optional(),
    'Rules for field expressions, such as metadata.name. They also apply to the nodeName of a pod.',
  ),
});

const requiredTermRule = mapping({
  matchExpressions: described(
    filled(expressionRule),
    'Rules for the expressions of a term. The term must satisfy all of them.',
  ),
});

function affinityRules<Terms extends z.ZodType>(terms: Terms) {
  const nodeSelectorTerms = described(terms.optional(), 'Rules for the terms of a pod. Empty = any term.');
  const ofNodes = mapping({ nodeSelectorTerms }).optional();
  const ofPods = mapping({}).optional();
  return mapping({
    nodeAffinities: described(mapping(times(ofNodes)).optional(), 'Affinity to nodes. {} = any.'),
    podAffinities: described(mapping(times(ofPods)).optional(), 'Affinity to other pods. {} = any.'),
    podAntiAffinities: described(mapping(times(ofPods)).optional(), 'Anti-affinity to other pods. {} = any.'),
  });
}

function times<Schema extends z.ZodType>(schema: Schema) {
  const [required, preferred] = AFFINITY_TIMES;
  return {
    [required]: described(schema, 'What the scheduler must satisfy. {} = any.'),
    [preferred]: described(schema, 'What the scheduler tries to satisfy. {} = any.'),
  } as Record<AffinityTime, Schema>;
}

const tolerationRule = mapping({
  keys: described(listOf(text).optional(), 'Taint keys. Empty = any, including tolerations without a key.'),
  operators: described(
    listOf(oneOf(TOLERATION_OPERATORS)).optional(),
    'Operators. Empty = any; if values are listed, only Equal.',
  ),
  values: described(listOf(labelValue).optional(), 'Values. Empty = any.'),
  effects: described(
    listOf(oneOf(EFFECTS)).optional(),
    'Effects. Empty = any, including tolerations without an effect.',
  ),
});

const names = listOf(text).nullish();
const requiredNames = listOf(text)
  .min(1, 'at least one name, because nothing satisfies an empty list')
  .nullish();

const SPELLINGS: readonly [string, string][] = [
  ['schedulerNames', 'SchedulerNames'],
  ['priorityClassNames', 'priorityClasseNames'],
];

const NAMES = {
  schedulers: 'Schedulers. The pod must name one of them.',
  classes: 'PriorityClasses. The pod must name one of them.',
  allowedSchedulers: 'Schedulers that the pod may name. [] = any.',
  allowedClasses: 'PriorityClasses that the pod may name. [] = any.',
  scheduler: 'The scheduler for pods that name none, or only the one that the API server fills in.',
  priorityClass: 'The PriorityClass for pods that name none.',
} as const;

/** An empty list of values means that the label must be present with any value. */
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
      'Rules for tolerations. At least one toleration of the pod must satisfy one of them.',
    ),
    affinities: described(
      affinityRules(filled(requiredTermRule))
        .refine((value) => Object.keys(value).length > 0, 'at least one kind of affinity')
        .meta({ minProperties: 1 })
        .nullish(),
      'Affinities that the pod must have.',
    ),
  }),
  ...SPELLINGS,
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
      'Rules for tolerations. Each toleration of the pod must satisfy one of them. [] = any toleration.',
    ),
    affinities: described(allowedAffinities.nullish(), 'Affinities that the pod may have. {} = any.'),
  }),
  ...SPELLINGS,
);

const defaults = notTogether(
  mapping({
    schedulerName: described(text.nullish(), NAMES.scheduler),
    SchedulerName: asDrafted(text.nullish(), 'schedulerName'),
    priorityClassName: described(text.nullish(), NAMES.priorityClass),
    priorityClasseName: asDrafted(text.nullish(), 'priorityClassName'),
    nodeSelector: described(
      labels(labelValue).nullish(),
      'Labels to add to the node selector if they are missing.',
    ),
    tolerations: described(
      listOf(defaultToleration).min(1, 'at least one toleration').nullish(),
      'Tolerations for pods that have none, apart from those of the system. A toleration with several values becomes one for each.',
    ),
    affinity: described(
      defaultAffinity.nullish(),
      'Affinities for pods that have none of the same kind and time.',
    ),
  }),
  ['schedulerName', 'SchedulerName'],
  ['priorityClassName', 'priorityClasseName'],
);

/** A null in `allowed` allows nothing. */
const AFFINITIES_ONCE = {
  anyOf: [
    { not: { required: ['allowedAffinities'] } },
    { properties: { allowed: { not: { required: ['affinities'] } } } },
  ],
};

/** The spec of a SchedulingPolicy. `null` means the same as absent. */
export const policySpecSchema = mapping({
  required: described(
    required.nullish(),
    'What a pod must have. It is also allowed; for schedulers, priority classes and label values nothing else is.',
  ),
  allowed: described(
    allowed.nullish(),
    'What a pod may have. A missing field allows nothing, an empty one everything.',
  ),
  default: described(defaults.nullish(), 'What is added to a pod that does not set it. It is also allowed.'),
  allowedAffinities: asDrafted(allowedAffinities.nullish(), 'allowed.affinities'),
})
  .superRefine((spec, check) => {
    if ('allowedAffinities' in spec && 'affinities' in (spec.allowed ?? {})) {
      const message = 'nothing, because allowed.affinities is set too';
      check.addIssue({ code: 'custom', path: ['allowedAffinities'], message });
    }
  })
  .meta({
    allOf: [AFFINITIES_ONCE],
    description:
      'What pods must have, may have and get by default. Everything that no policy allows is rejected.',
  });

export type WrittenSpec = z.infer<typeof policySpecSchema>;
export type AffinityRules = z.infer<typeof allowedAffinities>;
export type RequiredAffinities = NonNullable<NonNullable<WrittenSpec['required']>['affinities']>;
export type ExpressionRule = z.infer<typeof expressionRule>;
export type TermRule = z.infer<typeof termRule>;
export type TolerationRule = z.infer<typeof tolerationRule>;

/** Alternative spellings of the draft: accepted, but never suggested. */
export const DRAFT_SPELLINGS: ReadonlySet<string> = new Set([
  'Kind',
  'SchedulerNames',
  'SchedulerName',
  'priorityClasseNames',
  'priorityClasseName',
  'allowedAffinities',
]);

const AFFINITY_KINDS = ['nodeAffinities', 'podAffinities', 'podAntiAffinities'];
const AFFINITIES = ['affinities', 'allowedAffinities'];

/** An issue of zod, as messages for operators. */
export function* schemaProblems(
  issue: z.core.$ZodIssue,
  value: Mapping,
): Generator<{ path: Path; message: string }> {
  const path = issue.path as Path;
  if (issue.code === 'unrecognized_keys') {
    const known = issue.message.split(' ').filter((name) => !DRAFT_SPELLINGS.has(name));
    for (const key of issue.keys) {
      yield { path: [...path, key], message: unknownField(key, path, known) };
    }
    return;
  }
  if (issue.code === 'invalid_key') {
    const [key] = path.slice(-1);
    yield { path: path.slice(0, -1), message: `expected a label name, got ${shown(key)}` };
    return;
  }
  const got = valueAt(value, path);
  yield { path, message: `expected ${issue.message}${got === undefined ? '' : `, got ${shown(got)}`}` };
}

function unknownField(key: string, path: Path, known: readonly string[]): string {
  const affinities = path.findIndex((step) => AFFINITIES.includes(String(step)));
  if (AFFINITY_KINDS.includes(key) && affinities >= 0) {
    return `nested too deep: it belongs under ${formatPath(path.slice(0, affinities + 1))}`;
  }
  if (path.length === 0 && Object.hasOwn(policySpecSchema.shape, key)) {
    return 'unknown field; it belongs under spec';
  }
  return known.every((name) => name === '')
    ? 'unknown field; only {} is possible here, and it allows everything'
    : `unknown field${nearestName(key, known)}`;
}
