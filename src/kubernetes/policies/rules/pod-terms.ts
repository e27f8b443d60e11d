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
          labelSelector: {
            ...selector,
            matchExpressions: selector.matchExpressions.filter((one) => !isMerged(one, value)),
          },
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

/** Whatever its value: users choose the labels of their pods. */
function isMerged(expression: unknown, { matchLabelKeys, mismatchLabelKeys }: Mapping): boolean {
  if (!isMapping(expression)) {
    return false;
  }
  const { key, operator, values } = expression;
  const keys = operator === 'In' ? matchLabelKeys : operator === 'NotIn' ? mismatchLabelKeys : undefined;
  return Array.isArray(keys) && keys.includes(key) && Array.isArray(values) && values.length === 1;
}

/** Whether the API server completes the selector of such a term. */
export function isCompleted(term: unknown): boolean {
  const { podAffinityTerm = term } = isMapping(term) ? term : {};
  const { matchLabelKeys, mismatchLabelKeys } = isMapping(podAffinityTerm) ? podAffinityTerm : {};
  return [matchLabelKeys, mismatchLabelKeys].some((keys) => Array.isArray(keys) && keys.length > 0);
}
