/** Merges the policies of an account. Source: the proposal, "Multiple SchedulingPolicies". */
import { isMapping, type Mapping, type Path } from '../../base/yaml/tree.ts';
import type { Allowed, Default, Required, SchedulingPolicy } from './policy.ts';

/**
 * How several policies combine. Policies are sorted by name.
 * `deep`: for each required or default part, the first policy that has it wins; what is allowed adds up.
 * `first`: only the first policy counts. `simple`: for each field of each section, the first policy that has it wins.
 * `intersection`: every policy must allow the request.
 * Source: the proposal "Scheduling Policy" of Kubernetes, "Multiple SchedulingPolicies", and its reviewers.
 */
export const MERGE_STRATEGIES = ['deep', 'first', 'simple', 'intersection'] as const;

export type MergeStrategy = (typeof MERGE_STRATEGIES)[number];

interface Grant {
  readonly policy: string;
  readonly allowed: Allowed;
}

export interface MergedPolicy {
  /** Names of the merged policies, in order. */
  readonly policies: readonly string[];
  readonly required: Required;
  readonly allowed: readonly Grant[];
  readonly default: Default;
  /** The policy that a required or default part comes from, by its path, such as `required`, `nodeSelectors`, `disk`. */
  sourceOf(...path: readonly string[]): string;
}

/** Compares code units, so that the order does not depend on the locale. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Whether lists have the same names in the same order. */
export function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one === other || (one.length === other.length && one.every((name, index) => name === other[index]));
}

export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compare(a.name, b.name);
}

/** Merges policies in the order of their names. `intersection` has no merged policy: see `EffectivePolicy`. */
export function mergePolicies(
  policies: readonly SchedulingPolicy[],
  strategy: Exclude<MergeStrategy, 'intersection'>,
): MergedPolicy {
  const sorted = [...policies].sort(byName);
  switch (strategy) {
    case 'deep':
      return merged(sorted, ALL_LEVELS, (grants) => grants);
    case 'simple':
      return merged(sorted, FIELDS, firstGrants);
    case 'first':
      return merged(sorted.slice(0, 1), FIELDS, (grants) => grants);
  }
}

/** Down to which level mappings are merged. Lists are never merged. */
const ALL_LEVELS = Number.POSITIVE_INFINITY;
const FIELDS = 1;

function merged(
  policies: readonly SchedulingPolicy[],
  levels: number,
  counting: (grants: Grant[]) => Grant[],
): MergedPolicy {
  const sources = new Map<string, string>();
  const required: Record<string, unknown> = {};
  const defaults: Record<string, unknown> = {};
  for (const policy of policies) {
    const note = (path: string) => sources.set(path, policy.name);
    addMissing(required, policy.required as Mapping, 'required', levels, note);
    addMissing(defaults, policy.default as Mapping, 'default', levels, note);
  }
  return {
    policies: policies.map(({ name }) => name),
    required: required as Required,
    allowed: counting(policies.map(({ name, allowed }) => ({ policy: name, allowed }))),
    default: defaults as Default,
    sourceOf: (...path) => sourceAt(sources, path),
  };
}

function addMissing(
  result: Record<string, unknown>,
  section: Mapping,
  path: string,
  levels: number,
  note: (path: string) => void,
): void {
  for (const [name, value] of Object.entries(section)) {
    const at = `${path}\n${name}`;
    const isNew = !Object.hasOwn(result, name);
    if (isNew) {
      note(at);
      result[name] = levels > 1 && isMapping(value) ? {} : value;
    }
    if (levels > 1 && isMapping(value)) {
      addMissing(result[name] as Record<string, unknown>, value, at, levels - 1, note);
    }
  }
}

function firstGrants(all: Grant[]): Grant[] {
  const seen = new Set<string>();
  return all.map(({ policy, allowed }) => {
    const kept = Object.entries(allowed).filter(([field]) => !seen.has(field));
    for (const [field] of kept) {
      seen.add(field);
    }
    return { policy, allowed: Object.fromEntries(kept) };
  });
}

/** The origin of the part, or of the nearest part that contains it. Names contain no line breaks. */
function sourceAt(sources: ReadonlyMap<string, string>, path: readonly string[]): string {
  for (let length = path.length; length > 0; length -= 1) {
    const policy = sources.get(path.slice(0, length).join('\n'));
    if (policy !== undefined) {
      return policy;
    }
  }
  return '';
}

interface Part {
  /** `required`, `nodeSelectors`, `disk` */
  readonly path: Path;
  readonly value: unknown;
  readonly policy: string;
}

export function partsOf(merged: MergedPolicy): Part[] {
  const sourced = (section: 'required' | 'default') =>
    leaves(merged[section], [section]).map(({ path, value }) => ({
      path,
      value,
      policy: merged.sourceOf(...path.map(String)),
    }));
  return [
    ...sourced('required'),
    ...merged.allowed.flatMap(({ policy, allowed }) =>
      leaves(allowed, ['allowed']).map((leaf) => ({ ...leaf, policy })),
    ),
    ...sourced('default'),
  ];
}

/** Lists and empty mappings are one part: an empty mapping means everything. */
function leaves(value: unknown, path: Path): Omit<Part, 'policy'>[] {
  const members = isMapping(value) ? Object.entries(value) : [];
  if (members.length === 0) {
    // An empty section has no parts.
    return path.length === 1 ? [] : [{ path, value }];
  }
  return members.flatMap(([name, member]) => leaves(member, [...path, name]));
}
