/**
 * All that applies to an account, ready to judge: what the policies that it may use say together. Deny all but what they
 * allow. Source: the proposal "Scheduling Policy" of Kubernetes.
 */
import { isDeepStrictEqual } from 'node:util';
import { byName, type MergedPolicy, mergePolicies } from './merge.ts';
import type { MergeStrategy } from './merge-strategy.ts';
import type { Affinity, Pod, Toleration } from './pod.ts';
import type { SchedulingPolicy } from './policy.ts';
import { AffinityRules, askedIn } from './rules/affinity-rules.ts';
import { conflicts } from './rules/conflicts.ts';
import { NameRules } from './rules/name-rules.ts';
import { type NodeSelector, NodeSelectorRules } from './rules/node-selector-rules.ts';
import type { Reason } from './rules/reason.ts';
import { TolerationRules } from './rules/toleration-rules.ts';
import { SystemTolerations } from './system-tolerations.ts';

/** What the API server fills in where a pod names no scheduler. */
const DEFAULT_SCHEDULER = 'default-scheduler';

const NO_NODE_NAME = 'expected nothing, since a pod that names its node passes by every scheduler';

/** What the field of a reason begins with that is about a label. */
const LABEL = 'nodeSelector ';

export interface ReviewOptions {
  /** Whether defaults may be added where the pod says nothing. Where not, the pod is judged as it stands. */
  readonly addDefaults: boolean;
  /** The pod is one that the DaemonSet controller makes: the node that it names for it was not asked for. */
  readonly isForOneNode?: boolean;
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
  readonly #systemTolerations: SystemTolerations;

  constructor(
    policies: readonly SchedulingPolicy[],
    strategy: MergeStrategy,
    systemTolerations: SystemTolerations = new SystemTolerations(),
  ) {
    const sorted = [...policies].sort(byName);
    this.policies = sorted.map(({ name }) => name);
    this.#systemTolerations = systemTolerations;
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
        this.#judge(this.#completed(pod, rules, [rules]), rules, options),
      );
      if (reasons.length > 0) {
        return refuse(reasons);
      }
    }
    const completed = options.addDefaults ? this.#completed(pod, this.#defaults, this.#rules) : pod;
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

  #judge(
    { spec }: Pod,
    { schedulers, priorityClasses, nodeSelectors, tolerations, affinities }: Rules,
    options: ReviewOptions,
  ): Reason[] {
    const names = [
      schedulers.judge(said(spec.schedulerName)),
      priorityClasses.judge(said(spec.priorityClassName)),
      // It passes by the scheduler, whichever is named.
      said(spec.nodeName) === undefined || schedulers.allowsAll
        ? undefined
        : { field: 'nodeName', expectation: NO_NODE_NAME, policies: schedulers.policies },
    ];
    const selectors = Object.entries(spec.nodeSelector ?? {}).map(([label, value]) => ({ label, value }));
    const asked = (spec.tolerations ?? []).map((toleration, index) =>
      this.#systemTolerations.has(toleration) ? undefined : tolerations.judge(toleration, index),
    );
    return [
      ...names.filter((reason) => reason !== undefined),
      ...nodeSelectors.judge(selectors, 'nodeSelector'),
      ...asked.filter((reason) => reason !== undefined),
      ...affinities.judge(spec.affinity ?? {}, options),
    ];
  }

  /** The pod with the defaults where it says nothing; the same one where there is nothing to add. */
  #completed(pod: Pod, defaults: Rules, judges: readonly Rules[]): Pod {
    const { spec } = pod;
    const added: Partial<Pod['spec']> = {
      ...scheduler(spec, defaults, judges),
      ...priorityClass(spec, defaults),
      ...nodeSelector(spec, defaults),
      ...this.#tolerations(spec, defaults),
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

  #tolerations(spec: Pod['spec'], { tolerations }: Rules): Partial<Pod['spec']> {
    const there = spec.tolerations ?? [];
    if (tolerations.default.length === 0 || there.some((one) => !this.#systemTolerations.has(one))) {
      return {};
    }
    const missing = tolerations.default.filter((one) => !there.some((other) => isSame(one, other)));
    return missing.length === 0 ? {} : { tolerations: [...there, ...missing] };
  }
}

/** What one merged policy says, component by component. */
class Rules {
  readonly merged: MergedPolicy;
  readonly schedulers: NameRules;
  readonly priorityClasses: NameRules;
  readonly nodeSelectors: NodeSelectorRules;
  readonly tolerations: TolerationRules;
  readonly affinities: AffinityRules;

  constructor(merged: MergedPolicy) {
    this.merged = merged;
    this.schedulers = new NameRules('schedulerName', merged);
    this.priorityClasses = new NameRules('priorityClassName', merged);
    this.nodeSelectors = new NodeSelectorRules(merged);
    this.tolerations = new TolerationRules(merged);
    this.affinities = new AffinityRules(merged);
  }
}

/** Nobody can tell who has named the default scheduler; where it is not accepted, it is taken for the API server. */
function scheduler(spec: Pod['spec'], { schedulers }: Rules, judges: readonly Rules[]): Partial<Pod['spec']> {
  const name = said(spec.schedulerName);
  const isSaid =
    name !== undefined &&
    (name !== DEFAULT_SCHEDULER || judges.every((rules) => rules.schedulers.accepts(name)));
  return isSaid || schedulers.default === undefined ? {} : { schedulerName: schedulers.default };
}

/** What the API server has computed from no class at all, it refuses beside one. Source: Kubernetes, admission plugin Priority. */
function priorityClass(spec: Pod['spec'], { priorityClasses }: Rules): Partial<Pod['spec']> {
  if (said(spec.priorityClassName) !== undefined || priorityClasses.default === undefined) {
    return {};
  }
  return {
    priorityClassName: priorityClasses.default,
    ...('priority' in spec && { priority: undefined }),
    ...('preemptionPolicy' in spec && { preemptionPolicy: undefined }),
  };
}

function nodeSelector({ nodeSelector: there }: Pod['spec'], { nodeSelectors }: Rules): Partial<Pod['spec']> {
  const missing = [...nodeSelectors.default].filter(([label]) => !Object.hasOwn(there ?? {}, label));
  return missing.length === 0 ? {} : { nodeSelector: { ...there, ...Object.fromEntries(missing) } };
}

/** Place by place: who says something about other pods says nothing about nodes. */
function affinity({ affinity: there }: Pod['spec'], { affinities }: Rules): Partial<Pod['spec']> {
  const asked = new Set(askedIn(there ?? {}).map(({ place }) => place));
  const missing = askedIn(affinities.default).filter(({ place }) => !asked.has(place));
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

function isSame(one: Toleration, other: Toleration): boolean {
  return isDeepStrictEqual(one, other);
}

function said(value: string | null | undefined): string | undefined {
  return value === null || value === '' ? undefined : value;
}
