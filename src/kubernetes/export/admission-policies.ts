/**
 * Scheduling policies as ValidatingAdmissionPolicies and their bindings. They decide as the webhook without
 * defaults does. Source: Kubernetes docs, "Validating Admission Policy"; API admissionregistration.k8s.io/v1,
 * Kubernetes 1.30.
 */
import { byName, type MergeStrategy } from '../policies/merge.ts';
import type { SchedulingPolicy } from '../policies/policy.ts';
import { and, atom, type Cel, literal, not, or, TRUE } from './cel.ts';
import { ensureWithinLimits } from './limits.ts';
import {
  type ClusterTolerations,
  type MatchCondition,
  matchConditions,
  podVariables,
  SUBJECTS,
  type Subject,
  serviceAccountVariable,
  type Variable,
} from './subject.ts';
import type { ConditionalPolicy } from './usable-policies.ts';
import { bindingValidations, podValidations, type Validation } from './validations.ts';

export const API_VERSION = 'admissionregistration.k8s.io/v1';

export interface AdmissionPolicy {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'ValidatingAdmissionPolicy';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly failurePolicy: 'Fail';
    readonly matchConstraints: { readonly resourceRules: readonly object[] };
    readonly matchConditions: readonly MatchCondition[];
    readonly variables: readonly Variable[];
    readonly validations: readonly Validation[];
  };
}

export interface AdmissionPolicyBinding {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'ValidatingAdmissionPolicyBinding';
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

export interface ExportOptions extends ClusterTolerations {
  /** Prefix of the names of all objects. */
  readonly name: string;
  readonly strategy: MergeStrategy;
  readonly defaultPriorityClass?: string | undefined;
  readonly topologySpreadConstraints: 'allow' | 'refuse';
  /** Users that may bind any pod. */
  readonly schedulers: readonly string[];
  readonly exemptNamespaces: readonly string[];
  /** Warn only. */
  readonly isTrial: boolean;
}

/**
 * A policy and a binding each for pods, DaemonSets and bindings.
 *
 * @throws NotExportableError if the API server would refuse one, or could not evaluate it
 */
export function admissionPolicies(
  policies: readonly SchedulingPolicy[],
  options: ExportOptions,
): (AdmissionPolicy | AdmissionPolicyBinding)[] {
  return SUBJECTS.flatMap((subject) => {
    const policy = admissionPolicy(policies, subject, options);
    return [policy, bindingOf(policy, options)];
  });
}

export function admissionPolicy(
  policies: readonly SchedulingPolicy[],
  subject: Subject,
  options: ExportOptions,
): AdmissionPolicy {
  const sorted = [...policies].sort(byName);
  const uses = sorted.map((_, index) => atom(`variables.${useName(index)}`));
  // A pod whose account may not use the only policy is refused anyway.
  const conditional = sorted.map(
    (policy, index): ConditionalPolicy => ({
      policy,
      condition: sorted.length === 1 ? TRUE : (uses[index] ?? TRUE),
    }),
  );
  const validations = [
    rightValidation(sorted),
    usableValidation(uses),
    ...(subject === 'bindings'
      ? bindingValidations(conditional, options.strategy)
      : podValidations(conditional, {
          strategy: options.strategy,
          defaultPriorityClass: options.defaultPriorityClass,
          refusesTopologySpread: options.topologySpreadConstraints === 'refuse',
        })),
  ];
  const variables = [
    ...(subject === 'bindings' ? [] : [serviceAccountVariable(subject)]),
    ...sorted.flatMap((policy, index) => rightVariables(policy, index, subject)),
    ...(subject === 'bindings' ? [BOUND_NODE] : podVariables(subject, options)),
  ];
  const spec: AdmissionPolicy['spec'] = {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [RULES[subject]] },
    matchConditions: matchConditions(subject, options.schedulers),
    variables: needed(variables, validations),
    validations,
  };
  const name = `${options.name}-${subject}`;
  ensureWithinLimits(name, spec);
  return { apiVersion: API_VERSION, kind: 'ValidatingAdmissionPolicy', metadata: { name }, spec };
}

/** Drops unused ones: each one uses only those before it. */
export function needed(variables: readonly Variable[], validations: readonly Validation[]): Variable[] {
  const expressions = validations.flatMap(({ expression, messageExpression = '' }) => [
    expression,
    messageExpression,
  ]);
  const kept: Variable[] = [];
  for (const variable of variables.toReversed()) {
    const name = new RegExp(`\\bvariables[.]${variable.name}\\b`);
    if (expressions.some((one) => name.test(one))) {
      kept.unshift(variable);
      expressions.push(variable.expression);
    }
  }
  return kept;
}

const POD_OPERATIONS = ['CREATE', 'UPDATE'];

const RULES: Readonly<Record<Subject, object>> = {
  pods: rule('', POD_OPERATIONS, ['pods']),
  daemonsets: rule('apps', POD_OPERATIONS, ['daemonsets']),
  bindings: rule('', ['CREATE'], ['pods/binding', 'bindings']),
};

export function rule(group: string, operations: readonly string[], resources: readonly string[]) {
  return { apiGroups: [group], apiVersions: ['v1'], operations, resources, scope: 'Namespaced' };
}

const BOUND_NODE: Variable = {
  name: 'nodeName',
  expression: "has(object.target.name) ? object.target.name : ''",
};

function useName(index: number): string {
  return `use${index + 1}`;
}

function checkName(index: number): string {
  return `check${index + 1}`;
}

/** Whether the account may use a policy, by all authorizers of the cluster. */
function rightVariables({ name, group }: SchedulingPolicy, index: number, subject: Subject): Variable[] {
  const account =
    subject === 'bindings'
      ? 'authorizer'
      : 'authorizer.serviceAccount(request.namespace, variables.serviceAccount)';
  const check = [
    account,
    `group(${literal(group)})`,
    "resource('schedulingpolicies')",
    'namespace(request.namespace)',
    `name(${literal(name)})`,
    "check('use')",
  ].join('.');
  return [
    { name: checkName(index), expression: check },
    { name: useName(index), expression: `variables.${checkName(index)}.allowed()` },
  ];
}

/** If one right is unknown, so is which policies apply. */
function rightValidation(policies: readonly SchedulingPolicy[]): Validation {
  const known = policies.map((_, index) => not(atom(`variables.${checkName(index)}.errored()`)));
  return {
    expression: and(...known).text,
    message: 'it is unknown which scheduling policies the account may use',
    reason: 'Forbidden',
  };
}

function usableValidation(uses: readonly Cel[]): Validation {
  return {
    expression: or(...uses).text,
    message: 'the account may use no scheduling policy',
    reason: 'Forbidden',
  };
}

/** Binds a policy everywhere except in exempt namespaces. */
export function bindingOf(
  { metadata }: Pick<AdmissionPolicy, 'metadata'>,
  options: Pick<ExportOptions, 'exemptNamespaces' | 'isTrial'>,
): AdmissionPolicyBinding {
  const { exemptNamespaces, isTrial } = options;
  return {
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata,
    spec: {
      policyName: metadata.name,
      validationActions: isTrial ? ['Warn', 'Audit'] : ['Deny'],
      ...(exemptNamespaces.length > 0 && {
        matchResources: {
          namespaceSelector: {
            matchExpressions: [
              { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: exemptNamespaces },
            ],
          },
        },
      }),
    },
  };
}
