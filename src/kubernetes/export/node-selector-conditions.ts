/** The rules of `NodeSelectorRules` as CEL. */
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
  listOf,
  literal,
  or,
  relation,
  TRUE,
} from './cel.ts';
import type { UsablePolicies } from './usable-policies.ts';

/** An expression for a map from labels to values. */
const SELECTOR = 'variables.nodeSelector';

/** The labels that policies name. All others fall under `otherLabelsCondition`. */
export function labelsOf(policies: UsablePolicies): string[] {
  return [
    ...new Set([
      ...policies.names('required', 'nodeSelectors'),
      ...policies.names('allowed', 'nodeSelectors'),
      ...policies.names('default', 'nodeSelector'),
    ]),
  ].sort();
}

/** Whether the value of one label fits, or its absence. */
export function labelCondition(policies: UsablePolicies, label: string): Cel {
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

/** Whether the pod has no label that no policy names, or may have any. */
export function otherLabelsCondition(policies: UsablePolicies, labels: readonly string[]): Cel {
  const all = policies.allows('nodeSelectors', (allowed) => constant(Object.keys(allowed).length === 0));
  const named =
    labels.length === 0
      ? atom(`${SELECTOR}.size() == 0`)
      : every(SELECTOR, 'label', relation(`label in ${listOf(labels)}`));
  return or(all, named);
}
