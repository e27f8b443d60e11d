import type { MergedPolicy } from '../merge.ts';
import type { Pod } from '../pod.ts';
import { AffinityRules } from './affinity-rules.ts';
import { NodeSelectorRules } from './node-selector-rules.ts';
import { listed, quoted, type Reason } from './reason.ts';
import { TolerationRules } from './toleration-rules.ts';

export class Rules {
  readonly merged: MergedPolicy;
  readonly names: Readonly<Record<NameField, NameRules>>;
  readonly nodeSelectors: NodeSelectorRules;
  readonly tolerations: TolerationRules;
  readonly affinities: AffinityRules;

  constructor(merged: MergedPolicy) {
    this.merged = merged;
    this.names = {
      schedulerName: new NameRules('schedulerName', merged),
      priorityClassName: new NameRules('priorityClassName', merged),
    };
    this.nodeSelectors = new NodeSelectorRules(merged);
    this.tolerations = new TolerationRules(merged);
    this.affinities = new AffinityRules(merged);
  }
}

export type NameField = 'schedulerName' | 'priorityClassName';

export const LISTS = { schedulerName: 'schedulerNames', priorityClassName: 'priorityClassNames' } as const;

class NameRules {
  readonly field: NameField;
  /** Added to pods that have none. */
  readonly default: string | undefined;
  readonly required: readonly string[] | undefined;
  readonly #all: boolean;
  /** The policy that allows each name. */
  readonly #allowed = new Map<string, string>();
  /** The policy that requires names, otherwise those that allow some. */
  readonly policies: readonly string[];

  constructor(field: NameField, merged: MergedPolicy) {
    const list = LISTS[field];
    this.field = field;
    this.default = merged.default[field];
    this.required = merged.required[list];
    const grants = merged.allowed.filter(({ allowed }) => allowed[list] !== undefined);
    this.#all = grants.some(({ allowed }) => allowed[list]?.length === 0);
    for (const { policy, allowed } of grants) {
      for (const name of allowed[list] ?? []) {
        this.#allowed.set(name, policy);
      }
    }
    const policies = grants.map(({ policy }) => policy);
    if (this.default !== undefined) {
      const policy = merged.sourceOf('default', field);
      policies.push(policy);
      this.#allowed.set(this.default, this.#allowed.get(this.default) ?? policy);
    }
    this.policies =
      this.required === undefined ? [...new Set(policies)] : [merged.sourceOf('required', list)];
  }

  /** Whether any name is allowed and none is required. */
  get allowsAll(): boolean {
    return this.#all && this.required === undefined;
  }

  accepts(name: string): boolean {
    return this.required === undefined ? this.#all || this.#allowed.has(name) : this.required.includes(name);
  }

  /** Whether a policy lists the name, instead of allowing all names. */
  lists(name: string): boolean {
    return this.required === undefined ? this.#allowed.has(name) : this.required.includes(name);
  }

  /** `undefined` = the pod has none. `free`: a name that counts as none, unless one is required. */
  judge(name: string | undefined, free?: string): Reason[] {
    const { field, required } = this;
    const isSaid = name !== undefined && !(name === free && required === undefined);
    if (isSaid ? this.accepts(name) : required === undefined) {
      return [];
    }
    const got = name === undefined ? 'nothing' : quoted(name);
    const names = required ?? [...this.#allowed.keys()];
    const expected = names.length === 0 ? 'nothing' : listed(names, 'or');
    return [{ field, expectation: `expected ${expected}, got ${got}`, policies: this.policies }];
  }
}

const BY_SCHEDULERS = 'expected nothing, because a pod that names its node bypasses every scheduler';
const BY_TAINTS =
  'expected nothing, because a pod that names its node bypasses taints, and it may not tolerate all of them';

/**
 * Reasons why the pod may not select this node, in its `nodeName` or by a Binding: this bypasses the
 * scheduler and NoSchedule taints, while the kubelet still checks the pod's node selector and required
 * affinity. So it needs permission for all schedulers, for the node, and to tolerate every NoSchedule taint.
 */
export function nodeReasons(name: string, { names, affinities, tolerations }: Rules): Reason[] {
  const { schedulerName } = names;
  const node = affinities.judgeNode(name);
  return [
    ...(schedulerName.allowsAll ? [] : [because(BY_SCHEDULERS, schedulerName.policies)]),
    ...(node === undefined ? [] : [node]),
    ...(tolerations.allowsAllNoSchedule ? [] : [because(BY_TAINTS, tolerations.policies)]),
  ];
}

function because(expectation: string, policies: readonly string[]): Reason {
  return { field: 'nodeName', expectation, policies };
}

const EXPECTATION =
  'expected nothing, because it keeps pods apart, and not all podAntiAffinities are allowed';

/** Topology spread constraints keep pods apart, as anti-affinities do. If they are refused, they need the same permission. */
export function topologySpreadReasons(
  constraints: NonNullable<Pod['spec']['topologySpreadConstraints']>,
  affinities: AffinityRules,
): Reason[] {
  return constraints.flatMap(({ whenUnsatisfiable }, index) => {
    const time =
      whenUnsatisfiable === 'ScheduleAnyway'
        ? 'preferredDuringSchedulingIgnoredDuringExecution'
        : 'requiredDuringSchedulingIgnoredDuringExecution';
    const { all, policies } = affinities.at('podAntiAffinity', time);
    return all ? [] : [{ field: `topologySpreadConstraints[${index}]`, expectation: EXPECTATION, policies }];
  });
}

interface RequiredValues {
  readonly policy: string;
  /** Empty = any. */
  readonly values: readonly string[];
}

/**
 * One reason for each field whose required values have nothing in common. It names the first two such
 * policies, or all.
 */
export function conflicts(policies: readonly MergedPolicy[]): Reason[] {
  const byField = new Map<string, RequiredValues[]>();
  const add = (field: string, policy: string, values: readonly string[] | undefined) => {
    if (values !== undefined && values.length > 0) {
      byField.set(field, [...(byField.get(field) ?? []), { policy, values }]);
    }
  };
  for (const { policies: names, required } of policies) {
    const policy = names[0] ?? '';
    add('schedulerName', policy, required.schedulerNames);
    add('priorityClassName', policy, required.priorityClassNames);
    for (const [label, values] of Object.entries(required.nodeSelectors ?? {})) {
      add(`nodeSelector ${label}`, policy, values);
    }
  }
  return [...byField].flatMap(([field, all]) => conflict(field, all));
}

function conflict(field: string, all: readonly RequiredValues[]): Reason[] {
  let common = new Set(all[0]?.values);
  for (const [index, { values, policy }] of all.entries()) {
    common = new Set(values.filter((value) => index === 0 || common.has(value)));
    if (common.size === 0) {
      const other = all.find((one) => !one.values.some((value) => values.includes(value)));
      const two = other === undefined ? all.slice(0, index + 1) : [other, { policy, values }];
      const requirements = two.map((one) => `${one.policy} requires ${listed(one.values, 'or')}`);
      return [
        {
          field,
          expectation: `conflicting requirements: ${listed(requirements, 'and')}`,
          policies: two.map((one) => one.policy),
        },
      ];
    }
  }
  return [];
}
