/** One validation for each part of a policy about pods. */
import { onOneLine } from '../../base/visible-text.ts';
import type { MergeStrategy } from '../policies/merge.ts';
import { KIND_NAMES, PLACES } from '../policies/rules/expression-rules.ts';
import { listed } from '../policies/rules/reason.ts';
import { LISTS, type NameField } from '../policies/rules/rules.ts';
import {
  affinityCondition,
  allowsAllAt,
  knownAffinitiesCondition,
  nodeCondition,
  requiredAffinityCondition,
  requiredKindCondition,
} from './affinity-conditions.ts';
import {
  and,
  atom,
  type Cel,
  choose,
  constant,
  equals,
  every,
  FALSE,
  isOneOf,
  isTrue,
  listOf,
  literal,
  not,
  or,
  relation,
  TRUE,
} from './cel.ts';
import {
  allowsAllNoSchedule,
  requiredTolerationsCondition,
  tolerationsCondition,
} from './toleration-conditions.ts';
import { byStrategy, type ConditionalPolicy, UsablePolicies } from './usable-policies.ts';

export interface Validation {
  readonly expression: string;
  readonly message: string;
  /** Must not use the authorizer, which Kubernetes does not provide here. */
  readonly messageExpression?: string;
  readonly reason: 'Forbidden';
}

interface ValidationOptions {
  readonly strategy: MergeStrategy;
  readonly defaultPriorityClass: string | undefined;
  readonly refusesTopologySpread: boolean;
}

/** The requirements on the pod in the variables. Omits rules that always hold. */
export function podValidations(
  conditional: readonly ConditionalPolicy[],
  { strategy, defaultPriorityClass, refusesTopologySpread }: ValidationOptions,
): Validation[] {
  const merged = (of: (policies: UsablePolicies) => Cel) => byStrategy(strategy, conditional, of);
  const all = new UsablePolicies(conditional, 'all');
  // `otherLabelsCondition` covers all others.
  const labels = [
    ...new Set([
      ...all.names('required', 'nodeSelectors'),
      ...all.names('allowed', 'nodeSelectors'),
      ...all.names('default', 'nodeSelector'),
    ]),
  ].sort();
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
      merged((policies) => or(equals('variables.nodeName', ''), nodeNameCondition(policies))),
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

/** The requirements on a binding, whose node is in the variables. */
export function bindingValidations(
  conditional: readonly ConditionalPolicy[],
  strategy: MergeStrategy,
): Validation[] {
  const condition = byStrategy(strategy, conditional, (policies) => nodeNameCondition(policies));
  const fitting = strategy === 'intersection' ? noConflict(conditional) : [];
  return [
    {
      expression: and(condition, ...fitting).text,
      message: 'nodeName: expected nothing, because a binding bypasses schedulers and taints',
      reason: 'Forbidden',
    },
  ];
}

function nodeNameCondition(policies: UsablePolicies): Cel {
  return and(allowsAllSchedulers(policies), nodeCondition(policies), allowsAllNoSchedule(policies));
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

/** No pod can meet requirements without a common value, so nothing is bound either. */
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

/**
 * The rules of `NameRules` as CEL. `name`: an expression, empty if the pod has none. `free`: a name that
 * counts as none, unless one is required.
 */
function nameCondition(
  policies: UsablePolicies,
  field: NameField,
  name: string,
  free: string | undefined,
): Cel {
  const list = LISTS[field];
  const allowed = or(
    policies.allows(list, (names) => (names.length === 0 ? TRUE : isOneOf(name, names))),
    policies.first<string>('default', [field], (added) => equals(name, added), FALSE),
  );
  const unnamed = or(equals(name, ''), free === undefined ? FALSE : equals(name, free));
  // Policies list no empty names.
  return policies.first<readonly string[]>(
    'required',
    [list],
    (names) => isOneOf(name, names),
    or(unnamed, allowed),
  );
}

function allowsAllSchedulers(policies: UsablePolicies): Cel {
  const all = policies.allows('schedulerNames', (names) => constant(names.length === 0));
  return policies.first('required', ['schedulerNames'], () => FALSE, all);
}

// The rules of `NodeSelectorRules` as CEL.

/** An expression for a map from labels to values. */
const SELECTOR = 'variables.nodeSelector';

/** Whether the value of one label fits, or its absence. */
function labelCondition(policies: UsablePolicies, label: string): Cel {
  const isThere = relation(`${literal(label)} in ${SELECTOR}`);
  const value = `${SELECTOR}[${literal(label)}]`;
  const isListed = (values: readonly string[]) => (values.length === 0 ? TRUE : isOneOf(value, values));
  const allowed = or(
    policies.allows('nodeSelectors', (labels) =>
      Object.keys(labels).length === 0
        ? TRUE
        : Object.hasOwn(labels, label)
          ? isListed(labels[label] ?? [])
          : FALSE,
    ),
    policies.first<string>('default', ['nodeSelector', label], (added) => equals(value, added), FALSE),
  );
  return policies.first<readonly string[]>(
    'required',
    ['nodeSelectors', label],
    (values) => and(isThere, isListed(values)),
    choose(isThere, allowed, TRUE),
  );
}

/** Whether the pod has only labels that policies name, or may have any. */
function otherLabelsCondition(policies: UsablePolicies, labels: readonly string[]): Cel {
  const all = policies.allows('nodeSelectors', (allowed) => constant(Object.keys(allowed).length === 0));
  const named =
    labels.length === 0
      ? atom(`${SELECTOR}.size() == 0`)
      : every(SELECTOR, 'label', relation(`label in ${listOf(labels)}`));
  return or(all, named);
}
