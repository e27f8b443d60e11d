/**
 * The policies of an account, merged and ready to check requests. Everything that they do not allow is
 * rejected. Source: the proposal "Scheduling Policy" of Kubernetes.
 */
import { isDeepStrictEqual } from 'node:util';
import { Cluster, type PodOrigin } from './cluster-settings.ts';
import { byName, type MergedPolicy, type MergeStrategy, mergePolicies } from './merge.ts';
import type { Affinity, Pod } from './pod.ts';
import type { InvalidPolicy, SchedulingPolicy } from './policy.ts';
import { requestedAffinities } from './rules/expression-rules.ts';
import type { NodeSelector } from './rules/node-selector-rules.ts';
import type { Reason } from './rules/reason.ts';
import { conflicts, nodeReasons, Rules, topologySpreadReasons } from './rules/rules.ts';

/** Prefix of the `field` of a reason about a label. */
const LABEL = 'nodeSelector ';
/** `field` of a reason about an invalid policy. */
const UNREADABLE = 'metadata.name';

export interface ReviewOptions extends PodOrigin {
  /** Whether defaults may be added. Otherwise the pod is checked as it is. */
  readonly addDefaults: boolean;
}

/** The result for a pod. */
export interface PodReview {
  readonly allowed: boolean;
  /** With the defaults if allowed, otherwise unchanged. Unchanged parts are shared with the original. */
  readonly pod: Pod;
  /** Reasons for a rejection. Empty when allowed. */
  readonly reasons: readonly Reason[];
}

/** The result for node labels. */
export interface NodeSelectorReview {
  /** Defaults for labels that were not requested. Empty when rejected. */
  readonly added: readonly { readonly label: string; readonly value: string }[];
  /** Reasons for a rejection. Empty when allowed. */
  readonly reasons: readonly Reason[];
}

export class EffectivePolicy {
  /** Names of the policies, sorted. */
  readonly policies: readonly string[];
  /** The merged policy; for `intersection`, each policy, all of which must allow the request. */
  readonly merged: readonly MergedPolicy[];
  readonly #rules: readonly Rules[];
  readonly #defaults: Rules;
  /**
   * Requirements that no request can meet: invalid policies; for `intersection`, requirements that exclude
   * each other.
   */
  readonly conflicts: readonly Reason[];
  readonly #cluster: Cluster;

  constructor(
    policies: readonly SchedulingPolicy[],
    strategy: MergeStrategy,
    cluster: Cluster = new Cluster(),
    invalid: readonly InvalidPolicy[] = [],
  ) {
    const sorted = [...policies].sort(byName);
    this.policies = sorted.map(({ name }) => name);
    this.#cluster = cluster;
    const together = new Rules(mergePolicies(sorted, strategy === 'intersection' ? 'deep' : strategy));
    this.#defaults = together;
    this.#rules =
      strategy === 'intersection' && sorted.length > 0
        ? sorted.map((policy) => new Rules(mergePolicies([policy], 'first')))
        : [together];
    this.merged = this.#rules.map(({ merged }) => merged);
    this.conflicts = [
      ...invalid.map(({ name, message }) => ({
        field: UNREADABLE,
        expectation: `the policy is invalid: ${message}`,
        policies: [name],
      })),
      ...(strategy === 'intersection' ? conflicts(this.merged) : []),
    ];
  }

  /** Checks a pod and leaves the original unchanged. */
  review(pod: Pod, options: ReviewOptions): PodReview {
    const refuse = (reasons: readonly Reason[]): PodReview => ({ allowed: false, pod, reasons });
    if (this.conflicts.length > 0) {
      return refuse(this.conflicts);
    }
    // If one policy rejects the pod as it is, the defaults of another must not make it pass.
    if (options.addDefaults && this.#rules.length > 1) {
      const reasons = this.#rules.flatMap((rules) =>
        this.#judge(withDefaults(pod, rules, [rules], this.#cluster, options), rules, options),
      );
      if (reasons.length > 0) {
        return refuse(reasons);
      }
    }
    const completed = options.addDefaults
      ? withDefaults(pod, this.#defaults, this.#rules, this.#cluster, options)
      : pod;
    const reasons = this.#rules.flatMap((rules) => this.#judge(completed, rules, options));
    return reasons.length > 0 ? refuse(reasons) : { allowed: true, pod: completed, reasons };
  }

  /** Checks the node labels of something other than a pod. `part`: the attribute that contains them, for messages. */
  reviewNodeSelectors(
    selectors: readonly NodeSelector[],
    part: string,
    { addDefaults }: Pick<ReviewOptions, 'addDefaults'>,
  ): NodeSelectorReview {
    const conflicting = this.conflicts.flatMap((reason) =>
      reason.field.startsWith(LABEL)
        ? [{ ...reason, field: `${part} ${reason.field.slice(LABEL.length)}` }]
        : reason.field === UNREADABLE
          ? [reason]
          : [],
    );
    if (conflicting.length > 0) {
      return { added: [], reasons: conflicting };
    }
    const judge = (defaults: Rules, judges: readonly Rules[]): NodeSelectorReview => {
      const added = [...(addDefaults ? defaults.nodeSelectors.default : [])]
        .filter(([label]) => !selectors.some((selector) => selector.label === label))
        .map(([label, value]) => ({ label, value }));
      const reasons = judges.flatMap(({ nodeSelectors }) =>
        nodeSelectors.judge([...selectors, ...added], part),
      );
      return { added: reasons.length > 0 ? [] : added, reasons };
    };
    const apart = this.#rules.length > 1 ? this.#rules.flatMap((rules) => judge(rules, [rules]).reasons) : [];
    return apart.length > 0 ? { added: [], reasons: apart } : judge(this.#defaults, this.#rules);
  }

  /** Checks the node in a pod's `nodeName` or in a Binding. */
  reviewNode(name: string): readonly Reason[] {
    return this.conflicts.length > 0
      ? this.conflicts
      : this.#rules.flatMap((rules) => nodeReasons(name, rules));
  }

  #judge(pod: Pod, rules: Rules, options: ReviewOptions): Reason[] {
    const { spec } = pod;
    const { names, nodeSelectors, tolerations, affinities } = rules;
    const nodeName = given(spec.nodeName);
    const selectors = Object.entries(spec.nodeSelector ?? {}).map(([label, value]) => ({ label, value }));
    const affinity = spec.affinity ?? {};
    const isForOneNode = options.isForOneNode === true || isKept(affinity, options.current);
    return [
      ...names.schedulerName.judge(given(spec.schedulerName)),
      ...names.priorityClassName.judge(
        given(spec.priorityClassName),
        this.#cluster.filledIn.priorityClassName,
      ),
      ...(nodeName === undefined ? [] : nodeReasons(nodeName, rules)),
      ...nodeSelectors.judge(selectors, 'nodeSelector'),
      ...tolerations.judge(this.#cluster.requested(pod, options)),
      ...affinities.judge(affinity, { isForOneNode }),
      ...(this.#cluster.refusesTopologySpread
        ? topologySpreadReasons(spec.topologySpreadConstraints ?? [], affinities)
        : []),
    ];
  }
}

/** What the DaemonSet controller wrote stays exempt when another user updates the pod. */
function isKept(affinity: object, current: Pod | undefined): boolean {
  return current !== undefined && isDeepStrictEqual(affinity, current.spec.affinity ?? {});
}

function given(value: string | null | undefined): string | undefined {
  return value === null || value === '' ? undefined : value;
}

type Spec = Pod['spec'];
type Added = Partial<Spec>;

/**
 * The pod with the defaults, or the same object if there is nothing to add. `judges`: the rules of all policies that
 * the pod must satisfy; `defaults` may be one of them.
 */
function withDefaults(
  pod: Pod,
  defaults: Rules,
  judges: readonly Rules[],
  cluster: Cluster,
  origin: PodOrigin,
): Pod {
  const { spec } = pod;
  const schedulerName = addedName('schedulerName', spec, defaults, judges, cluster);
  const className = addedName('priorityClassName', spec, defaults, judges, cluster);
  const added: Added = {
    ...(schedulerName !== undefined && { schedulerName }),
    ...(className !== undefined && priorityClass(spec, className)),
    ...nodeSelector(spec, defaults),
    ...tolerations(pod, defaults, cluster, origin),
    ...affinity(spec, defaults),
  };
  const names = Object.keys(added);
  if (names.length === 0) {
    return pod;
  }
  const completed = { ...spec, ...added };
  for (const name of names.filter((one) => added[one] === undefined)) {
    delete completed[name];
  }
  return { ...pod, spec: completed };
}

/**
 * Whether the pod itself chose a scheduler or a priority class. A name that the API server might have filled in
 * counts as chosen if one policy lists it and all policies accept it.
 */
function isSaid(
  field: 'schedulerName' | 'priorityClassName',
  spec: Spec,
  judges: readonly Rules[],
  { filledIn }: Cluster,
): boolean {
  const name = spec[field] || undefined;
  if (name === undefined || name !== filledIn[field]) {
    return name !== undefined;
  }
  const rules = judges.map((judge) => judge.names[field]);
  return rules.every((one) => one.accepts(name)) && rules.some((one) => one.lists(name));
}

/** The default, if it is to be added. */
function addedName(
  field: 'schedulerName' | 'priorityClassName',
  spec: Spec,
  { names }: Rules,
  judges: readonly Rules[],
  cluster: Cluster,
): string | undefined {
  const { default: added } = names[field];
  return added === spec[field] || isSaid(field, spec, judges, cluster) ? undefined : added;
}

/**
 * Removes the fields that the API server computed from another priority class: it rejects a pod whose fields
 * do not match its class. Source: its admission plugin Priority.
 */
function priorityClass(spec: Spec, priorityClassName: string): Added {
  return {
    priorityClassName,
    ...('priority' in spec && { priority: undefined }),
    ...('preemptionPolicy' in spec && { preemptionPolicy: undefined }),
  };
}

function nodeSelector({ nodeSelector: there }: Spec, { nodeSelectors }: Rules): Added {
  const missing = [...nodeSelectors.default].filter(([label]) => !Object.hasOwn(there ?? {}, label));
  return missing.length === 0 ? {} : { nodeSelector: { ...there, ...Object.fromEntries(missing) } };
}

function tolerations(pod: Pod, rules: Rules, cluster: Cluster, origin: PodOrigin): Added {
  const there = pod.spec.tolerations ?? [];
  const { default: defaults } = rules.tolerations;
  if (defaults.length === 0 || cluster.requested(pod, origin).length > 0) {
    return {};
  }
  const missing = defaults.filter((one) => !there.some((other) => isDeepStrictEqual(one, other)));
  return missing.length === 0 ? {} : { tolerations: [...there, ...missing] };
}

/** Merges by kind: affinities to other pods leave room for a default affinity to nodes. */
function affinity({ affinity: there }: Spec, { affinities }: Rules): Added {
  const requested = new Set(requestedAffinities(there ?? {}).map(({ place }) => place));
  const missing = requestedAffinities(affinities.default).filter(({ place }) => !requested.has(place));
  if (missing.length === 0) {
    return {};
  }
  const completed: Record<string, Record<string, unknown>> = { ...(there as object) };
  const defaults = affinities.default as Readonly<Record<string, Record<string, unknown>>>;
  for (const { place } of missing) {
    const [kind = '', time = ''] = place.split('.');
    completed[kind] = { ...completed[kind], [time]: defaults[kind]?.[time] };
  }
  return { affinity: completed as Affinity };
}
