import { API_GROUPS } from '../policies/policy.ts';
import { workloadKindOf } from './pod-kinds.ts';

export type ReviewedKind = 'pod' | 'binding' | 'template' | 'workload' | 'policy';

/** Subresources whose objects are pods with other containers or resources: no policy speaks of these, but rules do. */
const CONTAINER_CHANGES: readonly (string | null | undefined)[] = ['ephemeralcontainers', 'resize'];

/** Whether only rules judge a request: nothing of it can move the pod. */
export function isForRulesAlone(
  { group, resource }: { readonly group: string; readonly resource: string },
  subResource: string | null | undefined,
): boolean {
  return group === '' && resource === 'pods' && CONTAINER_CHANGES.includes(subResource);
}

/** As what an object is judged; `undefined` = it needs no review. */
export function reviewedKind(
  { group, resource: name }: { readonly group: string; readonly resource: string },
  subResource: string | null | undefined,
): ReviewedKind | undefined {
  if (group === '' && name === 'pods') {
    const isPod = !subResource || CONTAINER_CHANGES.includes(subResource);
    return isPod ? 'pod' : subResource === 'binding' ? 'binding' : undefined;
  }
  if (subResource) {
    return undefined;
  }
  if (group === '' && name === 'bindings') {
    return 'binding';
  }
  if (name === 'daemonsets' && (group === 'apps' || group === 'extensions')) {
    return 'template';
  }
  if (workloadKindOf(group, name) !== undefined) {
    return 'workload';
  }
  return name === 'schedulingpolicies' && API_GROUPS.some((one) => one === group) ? 'policy' : undefined;
}
