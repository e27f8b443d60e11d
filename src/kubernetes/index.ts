/**
 * blazar-enforcement/kubernetes: scheduling policies as a library, for judging pods or other requests for nodes.
 * Start at `SchedulingPolicies`.
 */

export { type Account, serviceAccount } from './access.ts';
export { type PolicyDocuments, readPolicyDocuments } from './documents.ts';
export {
  EffectivePolicy,
  type NodeSelectorReview,
  type PodReview,
  type ReviewOptions,
} from './effective-policy.ts';
export { MERGE_STRATEGIES, type MergeStrategy } from './merge.ts';
export { type Pod, parsePod } from './pod.ts';
export type { SchedulingPolicy } from './policy.ts';
export type { NodeSelector } from './rules/node-selector-rules.ts';
export { formatReason, type Reason } from './rules/reason.ts';
export { SchedulingPolicies, type SchedulingPoliciesOptions } from './scheduling-policies.ts';
