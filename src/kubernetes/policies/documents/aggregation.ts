/**
 * ClusterRoles with an aggregationRule: the control plane overwrites their rules with those of the ClusterRoles that
 * they select.
 * Source: Kubernetes docs, "Using RBAC Authorization", aggregated ClusterRoles; tried on kube-controller-manager
 * 1.20.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Role } from '../access.ts';
import type { LabelSelector, Rule } from './rbac-schema.ts';

/** A role as written in a file. */
export interface WrittenRole extends Role {
  readonly labels: Readonly<Record<string, string>>;
  /** `undefined` = the role has no aggregationRule and keeps its own rules. */
  readonly selectors: readonly LabelSelector[] | undefined;
}

/** The roles with the rules that they have in a cluster. */
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
      Object.entries(matchLabels ?? {}).every(([key, value]) => ownLabel(labels, key) === value) &&
      (matchExpressions ?? []).every((expression) => holds(expression, labels)),
  );
}

function holds(
  { key, operator, values }: NonNullable<LabelSelector['matchExpressions']>[number],
  labels: WrittenRole['labels'],
): boolean {
  const value = ownLabel(labels, key);
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

function ownLabel(labels: WrittenRole['labels'], key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
