/** A scheduling policy in the form for its rules, whichever spelling it was written in. */
import type {
  WrittenAffinity,
  WrittenExpression,
  WrittenTerm,
  WrittenToleration,
} from './documents/default-schema.ts';
import type {
  AffinityRules,
  RequiredAffinities,
  TolerationRule,
  WrittenSpec,
} from './documents/policy-schema.ts';
import type { Affinity, Expression, NodeSelectorTerm, Toleration } from './pod.ts';

interface PodLists {
  readonly schedulerNames?: readonly string[];
  readonly priorityClassNames?: readonly string[];
  readonly nodeSelectors?: Readonly<Record<string, readonly string[]>>;
  readonly tolerations?: readonly TolerationRule[];
}

/** What a pod must have. A label without values may have any value. The pod must satisfy one of the rules for tolerations. */
export interface Required extends PodLists {
  readonly affinities?: RequiredAffinities;
}

/** What a pod may have. An empty list or mapping allows everything, a missing one nothing. */
export interface Allowed extends PodLists {
  readonly affinities?: AffinityRules;
}

/** What is added to a pod that does not set it. */
export interface Default {
  readonly schedulerName?: string;
  readonly priorityClassName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
  readonly affinity?: Affinity;
}

/** The API group of the CustomResourceDefinition: such a group must contain a dot. */
export const CLUSTER_GROUP = 'scheduling.blazar-enforcement';
/** The proposal's group, and `CLUSTER_GROUP`. */
export const API_GROUPS = ['extensions', CLUSTER_GROUP] as const;

type ApiGroup = (typeof API_GROUPS)[number];

export interface SchedulingPolicy {
  readonly name: string;
  /** The API group of its `apiVersion`, which RBAC rules must name. */
  readonly group: ApiGroup;
  readonly required: Required;
  readonly allowed: Allowed;
  readonly default: Default;
}

/** A policy that has never been valid. Accounts that may use it are refused, since its requirements are unknown. */
export interface InvalidPolicy {
  readonly name: string;
  /** What is wrong with it, for the refused users. */
  readonly message: string;
}

/** Normalizes a valid spec. `group` defaults to that of the proposal. */
export function schedulingPolicy(
  name: string,
  spec: WrittenSpec,
  group: ApiGroup = 'extensions',
): SchedulingPolicy {
  const { required, allowed, default: defaults, allowedAffinities } = spec;
  return {
    name,
    group,
    required: present({ ...lists(required), affinities: required?.affinities }),
    allowed: present({ ...lists(allowed), affinities: allowed?.affinities ?? allowedAffinities }),
    default: present({
      schedulerName: defaults?.schedulerName ?? defaults?.SchedulerName,
      priorityClassName: defaults?.priorityClassName ?? defaults?.priorityClasseName,
      nodeSelector: defaults?.nodeSelector,
      tolerations: defaults?.tolerations?.flatMap(tolerations),
      affinity: defaults?.affinity && affinity(defaults.affinity),
    }),
  };
}

/** In either spelling. */
function lists(section: WrittenSpec['required'] | WrittenSpec['allowed']) {
  return {
    schedulerNames: section?.schedulerNames ?? section?.SchedulerNames,
    priorityClassNames: section?.priorityClassNames ?? section?.priorityClasseNames,
    nodeSelectors: section?.nodeSelectors,
    tolerations: section?.tolerations,
  };
}

/** Drops undefined fields, so that a present field is one that a policy mentions. */
function present<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  const there = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(there) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
}

function tolerations({ values, ...toleration }: WrittenToleration): Toleration[] {
  return values === undefined ? [toleration] : values.map((value) => ({ ...toleration, value }));
}

function affinity({ nodeAffinity, ...ofPods }: WrittenAffinity): Affinity {
  if (nodeAffinity === undefined) {
    return ofPods;
  }
  const {
    requiredDuringSchedulingIgnoredDuringExecution: required,
    preferredDuringSchedulingIgnoredDuringExecution: preferred,
  } = nodeAffinity;
  return {
    nodeAffinity: present({
      requiredDuringSchedulingIgnoredDuringExecution: required && {
        nodeSelectorTerms: required.nodeSelectorTerms.map(term),
      },
      preferredDuringSchedulingIgnoredDuringExecution: preferred?.map(({ weight, preference }) => ({
        weight,
        preference: term(preference),
      })),
    }),
    ...ofPods,
  };
}

function term({ matchExpressions, matchFields }: WrittenTerm): NodeSelectorTerm {
  return present({
    matchExpressions: matchExpressions?.map(expression),
    matchFields: matchFields?.map(expression),
  });
}

function expression({ key, keys, operator, operators, values }: WrittenExpression): Expression {
  return {
    key: key ?? keys?.[0] ?? '',
    operator: operator ?? operators?.[0] ?? '',
    ...(values && { values }),
  };
}
