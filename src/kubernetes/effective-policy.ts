/**
 * All that applies to an account, ready to judge: what the policies that it may use say together. Deny all but what they
 * allow. Source: the proposal "Scheduling Policy" of Kubernetes.
 */
import { isDeepStrictEqual } from 'node:util';
import { Cluster, type PodOrigin } from './cluster.ts';
import { withDefaults } from './defaults.ts';
import { byName, type MergedPolicy, mergePolicies } from './merge.ts';
import type { MergeStrategy } from './merge-strategy.ts';
import type { Pod } from './pod.ts';
import type { SchedulingPolicy } from './policy.ts';
import { conflicts } from './rules/conflicts.ts';
import { nodeReasons } from './rules/node-name.ts';
import type { NodeSelector } from './rules/node-selector-rules.ts';
import type { Reason } from './rules/reason.ts';
import { Rules } from './rules/rules.ts';
import { topologySpreadReasons } from './rules/topology-spread.ts';

/** What the field of a reason begins with that is about a label. */
const LABEL = 'nodeSelector ';

export interface ReviewOptions extends PodOrigin {
  /** Whether defaults may be added where the pod says nothing. Where not, the pod is judged as it stands. */
  readonly addDefaults: boolean;
}

/** What became of a pod. */
export interface PodReview {
  readonly allowed: boolean;
  /** With the defaults, where it is allowed; else as it came. Shares with it whatever is the same. */
  readonly pod: Pod;
  /** Why not. Empty when allowed. */
  readonly reasons: readonly Reason[];
}

/** What became of labels that nodes must have. */
export interface NodeSelectorReview {
  /** Defaults, of labels that were not asked for. Empty when refused. */
  readonly added: readonly { readonly label: string; readonly value: string }[];
  /** Why not. Empty when allowed. */
  readonly reasons: readonly Reason[];
}

export class EffectivePolicy {
  /** The names of the policies, in order. */
  readonly policies: readonly string[];
  /** What was merged: one, but of `intersection` one for each policy, all of which must agree. */
  readonly merged: readonly MergedPolicy[];
  readonly #rules: readonly Rules[];
  /** Those whose defaults are added. */
  readonly #defaults: Rules;
  /** Of `intersection`: what no pod can fulfil. */
  readonly conflicts: readonly Reason[];
  readonly #cluster: Cluster;

  constructor(
    policies: readonly SchedulingPolicy[],
    strategy: MergeStrategy,
    cluster: Cluster = new Cluster(),
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
    this.conflicts = strategy === 'intersection' ? conflicts(this.merged) : [];
  }

  /** Judges a pod, which is not changed. */
  review(pod: Pod, options: ReviewOptions): PodReview {
    const refuse = (reasons: readonly Reason[]): PodReview => ({ allowed: false, pod, reasons });
    if (this.conflicts.length > 0) {
      return refuse(this.conflicts);
    }
    // What one policy refuses is not let through for the defaults of another.
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

  /** Judges the labels that nodes must have for something else than a pod. `part`: what they are a part of. */
  reviewNodeSelectors(
    selectors: readonly NodeSelector[],
    part: string,
    { addDefaults }: Pick<ReviewOptions, 'addDefaults'>,
  ): NodeSelectorReview {
    const conflicting = this.conflicts.flatMap((reason) =>
      reason.field.startsWith(LABEL)
        ? [{ ...reason, field: `${part} ${reason.field.slice(LABEL.length)}` }]
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

  /** Judges a node that is named for a pod, in its `nodeName` or in a Binding. */
  reviewNode(name: string): readonly Reason[] {
    return this.conflicts.length > 0
      ? this.conflicts
      : this.#rules.flatMap((rules) => nodeReasons(name, rules));
  }

  #judge({ spec }: Pod, rules: Rules, options: ReviewOptions): Reason[] {
    const { names, nodeSelectors, tolerations, affinities } = rules;
    const nodeName = said(spec.nodeName);
    const selectors = Object.entries(spec.nodeSelector ?? {}).map(([label, value]) => ({ label, value }));
    const asked = [...(spec.tolerations ?? []).entries()].filter(
      ([, toleration]) => !this.#cluster.hasAdded(toleration, options),
    );
    const affinity = spec.affinity ?? {};
    const isForOneNode = options.isForOneNode === true || isKept(affinity, options.current);
    return [
      ...names.schedulerName.judge(said(spec.schedulerName)),
      ...names.priorityClassName.judge(
        said(spec.priorityClassName),
        this.#cluster.filledIn.priorityClassName,
      ),
      ...(nodeName === undefined ? [] : nodeReasons(nodeName, rules)),
      ...nodeSelectors.judge(selectors, 'nodeSelector'),
      ...tolerations.judge(asked),
      ...affinities.judge(affinity, { isForOneNode }),
      ...(this.#cluster.refusesTopologySpread
        ? topologySpreadReasons(spec.topologySpreadConstraints ?? [], affinities)
        : []),
    ];
  }
}

/** What the DaemonSet controller has written stays free for a pod that somebody else updates. */
function isKept(affinity: object, current: Pod | undefined): boolean {
  return current !== undefined && isDeepStrictEqual(affinity, current.spec.affinity ?? {});
}

function said(value: string | null | undefined): string | undefined {
  return value === null || value === '' ? undefined : value;
}
