/**
 * References between documents, and aggregated roles. A reference to a missing name grants nothing and may be
 * a typing error.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Problem } from '../../../base/errors.ts';
import { member, type Path, shown } from '../../../base/yaml/tree.ts';
import { nearestName } from '../../../config/nearest.ts';
import type { Role } from '../access.ts';
import type { Item } from './items.ts';
import type { LabelSelector, Rule } from './rbac-schema.ts';

interface Reference {
  readonly item: Item;
  readonly path: Path;
  readonly kind: string;
  readonly namespace: string | undefined;
  readonly name: string;
  /** For references to a policy: the API groups of the rule. */
  readonly apiGroups?: readonly string[];
}

export class References {
  /** Positions by kind, namespace and name. */
  readonly #known = new Map<string, string>();
  /** Names by kind and namespace. */
  readonly #names = new Map<string, string[]>();
  readonly #references: Reference[] = [];

  /** The position of the first document of this name; `undefined` if this is the first. */
  add(item: Item, kind: string, namespace: string | undefined, name: string): string | undefined {
    const key = id(kind, namespace, name);
    const first = this.#known.get(key);
    if (first === undefined) {
      this.#known.set(key, `${item.file}:${item.lineOf([])}`);
      const place = id(kind, namespace);
      this.#names.set(place, this.#names.get(place) ?? []);
      this.#names.get(place)?.push(name);
    }
    return first;
  }

  refer(reference: Reference): void {
    this.#references.push(reference);
  }

  /** Warnings about references to missing objects, or to policies of an API group that the rule does not name. */
  deadEnds(policies: readonly { readonly name: string; readonly group: string }[]): Problem[] {
    const groups = new Map(policies.map(({ name, group }) => [name, group]));
    return this.#references.flatMap((reference) => {
      const { item, path, name } = reference;
      const why = this.#whyMissing(reference) ?? whyOfAnotherGroup(reference, groups.get(name));
      return why === undefined ? [] : [item.problem(path, why, 'warning')];
    });
  }

  #whyMissing({ kind, namespace, name }: Reference): string | undefined {
    if (this.#known.has(id(kind, namespace, name))) {
      return undefined;
    }
    const hint =
      kind === 'SchedulingPolicy' && name === '*'
        ? '; names have no wildcards: omit resourceNames to cover all policies'
        : nearestName(name, this.#names.get(id(kind, namespace)) ?? []);
    return `there is no ${kind} ${shown(name)}${hint}`;
  }
}

function whyOfAnotherGroup({ name, apiGroups }: Reference, group: string | undefined): string | undefined {
  return group === undefined || (apiGroups ?? ['*']).some((one) => one === '*' || one === group)
    ? undefined
    : `${shown(name)} is in the API group ${group}, which apiGroups does not list`;
}

function id(...parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts);
}

export interface WrittenRole extends Role {
  readonly labels: Readonly<Record<string, string>>;
  /** `undefined` = the role has no aggregationRule and keeps its own rules. */
  readonly selectors: readonly LabelSelector[] | undefined;
}

/**
 * The roles with their rules in a cluster, where the control plane overwrites the rules of a ClusterRole that
 * has an aggregationRule with those of the selected ClusterRoles. Source: Kubernetes docs, "Using RBAC
 * Authorization", aggregated ClusterRoles; tried on kube-controller-manager 1.20.
 */
export function aggregated(roles: readonly WrittenRole[]): Role[] {
  const clusterRoles = roles.filter(({ kind }) => kind === 'ClusterRole');
  const selected = new Map(
    clusterRoles.flatMap(({ name, selectors }) =>
      selectors === undefined
        ? []
        : [[name, clusterRoles.filter((one) => one.name !== name && isSelected(one, selectors))] as const],
    ),
  );
  return roles.map(({ kind, name, namespace, rules, selectors }) => ({
    kind,
    name,
    namespace,
    rules: selectors === undefined ? rules : rulesOf(name, selected),
  }));
}

/** Rules written in an aggregated role that the cluster would drop. */
export function rulesLost(written: WrittenRole, { rules }: Role): Rule[] {
  return written.rules.filter((rule) => !rules.some((one) => isDeepStrictEqual(one, rule)));
}

/** Selected roles may be aggregated themselves, possibly in a cycle. */
function rulesOf(name: string, selected: ReadonlyMap<string, readonly WrittenRole[]>): Rule[] {
  const seen = new Set([name]);
  const rules: Rule[] = [];
  for (const one of seen) {
    for (const role of selected.get(one) ?? []) {
      if (!seen.has(role.name)) {
        seen.add(role.name);
        rules.push(...(role.selectors === undefined ? role.rules : []));
      }
    }
  }
  return rules;
}

function isSelected({ labels }: WrittenRole, selectors: readonly LabelSelector[]): boolean {
  return selectors.some(
    ({ matchLabels, matchExpressions }) =>
      Object.entries(matchLabels ?? {}).every(([key, value]) => member(labels, key) === value) &&
      (matchExpressions ?? []).every((expression) => holds(expression, labels)),
  );
}

function holds(
  { key, operator, values }: NonNullable<LabelSelector['matchExpressions']>[number],
  labels: WrittenRole['labels'],
): boolean {
  const value = member(labels, key);
  switch (operator) {
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'In':
      return value !== undefined && values?.includes(value) === true;
    case 'NotIn':
      return value === undefined || values?.includes(value) !== true;
  }
}
