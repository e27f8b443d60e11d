/**
 * Schemas of the affinities and tolerations that a policy may add to a pod, in the spelling of Kubernetes and
 * of the draft.
 */
import { z } from 'zod';
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

/** These operators need values. */
const LISTING = ['In', 'NotIn'] as const;

function ofOperators(operators: readonly string[]) {
  return {
    anyOf: [
      { required: ['operator'], properties: { operator: { enum: operators } } },
      { required: ['operators'], properties: { operators: { items: { enum: operators } } } },
    ],
  };
}

/** Converts an expression of a default to that of a pod. The draft writes `keys` and `operators` in defaults too. */
const defaultExpression = notTogether(
  mapping({
    key: text.optional(),
    keys: z
      .array(text, 'a list')
      .length(1, 'exactly one key, because a default is added to the pod')
      .optional(),
    operator: oneOf(EXPRESSION_OPERATORS).optional(),
    operators: z
      .array(oneOf(EXPRESSION_OPERATORS), 'a list')
      .length(1, 'exactly one operator, because a default is added to the pod')
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
      check.addIssue({ code: 'custom', path, message: `values, because the operator is ${operator}` });
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

export const defaultAffinity = mapping({
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

export const defaultToleration = mapping({
  key: text.optional(),
  operator: oneOf(TOLERATION_OPERATORS).optional(),
  value: labelValue.optional(),
  values: filled(labelValue).optional(),
  effect: oneOf(EFFECTS).optional(),
  tolerationSeconds: z.int('a whole number of seconds').optional(),
})
  .superRefine((value, check) => {
    if ('value' in value && 'values' in value) {
      check.addIssue({ code: 'custom', path: ['values'], message: 'nothing, because value is set too' });
    } else if (value.operator === 'Exists' && ('value' in value || 'values' in value)) {
      const path = ['value' in value ? 'value' : 'values'];
      check.addIssue({ code: 'custom', path, message: 'nothing, because the operator is Exists' });
    }
  })
  .meta({ allOf: [{ not: { required: ['value', 'values'] } }, EXISTS_WITHOUT_VALUE] });

export type WrittenToleration = z.infer<typeof defaultToleration>;
export type WrittenAffinity = z.infer<typeof defaultAffinity>;
export type WrittenTerm = z.infer<typeof defaultTerm>;
export type WrittenExpression = z.infer<typeof defaultExpression>;
