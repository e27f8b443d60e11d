/** One validation for each thing that a policy can say about a pod. */

import { onOneLine } from '../../visible-text.ts';
import type { MergeStrategy } from '../merge.ts';
import { listed } from '../rules/reason.ts';
import {
  affinityCondition,
  allowsAllAt,
  KIND_NAMES,
  knownAffinitiesCondition,
  nodeCondition,
  PLACES,
  requiredAffinityCondition,
  requiredKindCondition,
} from './affinity-conditions.ts';
import { and, atom, type Cel, choose, equals, every, isTrue, literal, not, or, relation } from './cel.ts';
import { allowsAllSchedulers, LISTS, type NameField, nameCondition } from './name-conditions.ts';
import { labelCondition, labelsOf, otherLabelsCondition } from './node-selector-conditions.ts';
import {
  allowsAllNoSchedule,
  requiredTolerationsCondition,
  tolerationsCondition,
} from './toleration-conditions.ts';
import { byStrategy, type ConditionalPolicy, UsablePolicies } from './usable-policies.ts';

/** Of `spec.validations`. */
export interface Validation {
  readonly expression: string;
  readonly message: string;
  /** Must not need the authorizer, which Kubernetes does not give to it. */
  readonly messageExpression?: string;
  readonly reason: 'Forbidden';
}

export interface ValidationOptions {
  readonly strategy: MergeStrategy;
  readonly defaultPriorityClass: string | undefined;
  readonly refusesTopologySpread: boolean;
}

/** What the pod in the variables must satisfy. Rules that always hold are left out. */
export function podValidations(
  conditional: readonly ConditionalPolicy[],
  { strategy, defaultPriorityClass, refusesTopologySpread }: ValidationOptions,
): Validation[] {
  const merged = (of: (policies: UsablePolicies) => Cel) => byStrategy(strategy, conditional, of);
  const all = new UsablePolicies(conditional, 'all');
  const labels = labelsOf(all);
  const whose = listed(
    all.policies.map(({ name }) => name),
    'or',
  );
  const validation = (condition: Cel, field: string, expectation: string, got?: string): Validation[] => {
    const said = `${field}: ${expectation}`;
    const by = `(scheduling ${all.policies.length === 1 ? 'policy' : 'policies'} ${whose})`;
    return isTrue(condition)
      ? []
      : [
          {
            expression: condition.text,
            message: onOneLine(`${said} ${by}`),
            ...(got !== undefined && {
              messageExpression: `${literal(onOneLine(`${said}, got `))} + ${got} + ${literal(onOneLine(` ${by}`))}`,
            }),
            reason: 'Forbidden',
          },
        ];
  };
  const name = (field: NameField, free?: string) => {
    const variable = `variables.${field}`;
    return validation(
      merged((policies) => nameCondition(policies, field, variable, free)),
      field,
      expectedName(all, field),
      `(${variable} == '' ? 'nothing' : ${variable})`,
    );
  };
  return [
    ...name('schedulerName'),
    ...name('priorityClassName', defaultPriorityClass),
    ...validation(
      merged((policies) =>
        or(equals('variables.nodeName', ''), nodeNameCondition(policies, 'variables.nodeName')),
      ),
      'nodeName',
      'expected nothing, because a pod that names its node bypasses schedulers and taints',
      'variables.nodeName',
    ),
    ...labels.flatMap((label) =>
      validation(
        merged((policies) => labelCondition(policies, label)),
        `nodeSelector ${label}`,
        'expected a value that is allowed',
        `(${literal(label)} in variables.nodeSelector ? variables.nodeSelector[${literal(label)}] : 'nothing')`,
      ),
    ),
    ...validation(
      merged((policies) => otherLabelsCondition(policies, labels)),
      'nodeSelector',
      labels.length === 0 ? 'expected nothing' : `expected no other labels than ${listed(labels, 'and')}`,
    ),
    ...validation(merged(tolerationsCondition), 'tolerations', 'expected only those that are allowed'),
    ...validation(merged(requiredTolerationsCondition), 'tolerations', 'expected one that is required'),
    ...validation(merged(knownAffinitiesCondition), 'affinity', `expected ${listed(KIND_NAMES, 'or')}`),
    ...PLACES.flatMap((place) => {
      const field = `affinity.${place.kind}.${place.time}`;
      return [
        ...validation(
          merged((policies) => affinityCondition(policies, place)),
          field,
          'expected only terms that are allowed',
        ),
        ...validation(
          merged((policies) => requiredAffinityCondition(policies, place)),
          field,
          'expected terms that are required',
        ),
      ];
    }),
    ...KIND_NAMES.flatMap((kind) =>
      validation(
        merged((policies) => requiredKindCondition(policies, kind)),
        `affinity.${kind}`,
        'expected a term',
      ),
    ),
    ...(refusesTopologySpread
      ? validation(
          merged(topologySpreadCondition),
          'topologySpreadConstraints',
          'expected nothing, because they keep pods apart, and not all podAntiAffinities are allowed',
        )
      : []),
  ];
}

/** What a binding must satisfy, whose node is in the variables. */
export function bindingValidations(
  conditional: readonly ConditionalPolicy[],
  strategy: MergeStrategy,
): Validation[] {
  const condition = byStrategy(strategy, conditional, (policies) =>
    nodeNameCondition(policies, 'variables.nodeName'),
  );
  const fitting = strategy === 'intersection' ? noConflict(conditional) : [];
  return [
    {
      expression: and(condition, ...fitting).text,
      message: 'nodeName: expected nothing, because a binding bypasses schedulers and taints',
      reason: 'Forbidden',
    },
  ];
}

function nodeNameCondition(policies: UsablePolicies, name: string): Cel {
  return and(allowsAllSchedulers(policies), nodeCondition(policies, name), allowsAllNoSchedule(policies));
}

function topologySpreadCondition(policies: UsablePolicies): Cel {
  const [required, preferred] = PLACES.filter(({ kind }) => kind === 'podAntiAffinity').map((place) =>
    allowsAllAt(policies, place),
  ) as [Cel, Cel];
  const isPreferred = and(
    atom('has(c.whenUnsatisfiable)'),
    relation("c.whenUnsatisfiable == 'ScheduleAnyway'"),
  );
  return every('variables.topologySpreadConstraints', 'c', choose(isPreferred, preferred, required));
}

/** No pod can meet requirements that have no value in common, so that nothing is bound either. */
function noConflict(conditional: readonly ConditionalPolicy[]): Cel[] {
  const byField = new Map<string, { readonly values: readonly string[]; readonly condition: Cel }[]>();
  for (const { policy, condition } of conditional) {
    const { required } = policy;
    const lists = [
      ...Object.entries(LISTS).map(([field, list]) => [field, required[list]] as const),
      ...Object.entries(required.nodeSelectors ?? {}).map(
        ([label, values]) => [`nodeSelector ${label}`, values] as const,
      ),
    ];
    for (const [field, values] of lists) {
      if (values !== undefined && values.length > 0) {
        byField.set(field, [...(byField.get(field) ?? []), { values, condition }]);
      }
    }
  }
  return [...byField.values()].map((all) =>
    or(
      ...[...new Set(all.flatMap(({ values }) => values))].map((value) =>
        and(...all.filter(({ values }) => !values.includes(value)).map(({ condition }) => not(condition))),
      ),
    ),
  );
}

function expectedName({ policies }: UsablePolicies, field: NameField): string {
  const [policy, other] = policies;
  if (policy === undefined || other !== undefined) {
    return 'expected one that is allowed';
  }
  const list = LISTS[field];
  const names = policy.required[list] ?? [
    ...new Set([
      ...(policy.allowed[list] ?? []),
      ...(policy.default[field] === undefined ? [] : [policy.default[field]]),
    ]),
  ];
  return `expected ${names.length === 0 ? 'nothing' : listed(names, 'or')}`;
}
