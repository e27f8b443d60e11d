/** Terms of affinities to other pods, which are only compared as a whole. Source: Kubernetes API, core/v1. */
import { isMapping, type Mapping } from '../../../base/yaml/tree.ts';

/**
 * A term in the one form in which a policy's and a pod's are compared. The API server drops empty lists. After
 * mutating webhooks, and since Kubernetes 1.31, it merges the labels of the pod that `matchLabelKeys` names into
 * the selector.
 */
export function comparableTerm(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(comparableTerm);
  }
  return isMapping(value) ? comparableMembers(value) : value;
}

function comparableMembers(value: Mapping): Mapping {
  const { labelSelector: selector } = value;
  const own =
    isMapping(selector) && Array.isArray(selector.matchExpressions)
      ? {
          ...value,
          labelSelector: { ...selector, matchExpressions: unmerged(selector.matchExpressions, value) },
        }
      : value;
  return Object.fromEntries(
    Object.entries(own)
      .filter(([name, one]) => !isEmpty(one, name))
      .map(([name, one]) => [name, comparableTerm(one)]),
  );
}

/** An empty `labelSelector` or `namespaceSelector` selects everything, a missing one nothing. */
function isEmpty(value: unknown, name: string): boolean {
  return Array.isArray(value)
    ? value.length === 0
    : name === 'matchLabels' && isMapping(value) && Object.keys(value).length === 0;
}

/** Expressions without those that were merged, whatever their value: users choose the labels of their pods. */
function unmerged(
  expressions: readonly unknown[],
  { matchLabelKeys, mismatchLabelKeys }: Mapping,
): unknown[] {
  // Sets, since a pod may have very many of both.
  const keys = new Map<unknown, ReadonlySet<unknown>>([
    ['In', new Set(Array.isArray(matchLabelKeys) ? matchLabelKeys : [])],
    ['NotIn', new Set(Array.isArray(mismatchLabelKeys) ? mismatchLabelKeys : [])],
  ]);
  return expressions.filter((one) => {
    const { key, operator, values } = isMapping(one) ? one : {};
    return !(keys.get(operator)?.has(key) === true && Array.isArray(values) && values.length === 1);
  });
}

/** Whether the API server completes the selector of such a term. */
export function isCompleted(term: unknown): boolean {
  const { podAffinityTerm = term } = isMapping(term) ? term : {};
  const { matchLabelKeys, mismatchLabelKeys } = isMapping(podAffinityTerm) ? podAffinityTerm : {};
  return [matchLabelKeys, mismatchLabelKeys].some((keys) => Array.isArray(keys) && keys.length > 0);
}
