/**
 * blazar-enforcement/kubernetes: scheduling policies as a library, for judging pods or other requests for nodes.
 * Start at `SchedulingPolicies` for files, and at `followSchedulingPolicies` for a cluster.
 */

export { type Account, serviceAccount } from './access.ts';
export { type PolicyDocuments, readPolicyDocuments } from './documents.ts';
export {
  EffectivePolicy,
  type NodeSelectorReview,
  type PodReview,
  type ReviewOptions,
} from './effective-policy.ts';
export type { SourceHealth } from './live/contract.ts';
export {
  type FollowedPolicies,
  type FollowPoliciesOptions,
  followSchedulingPolicies,
} from './live/follow-policies.ts';
export { MERGE_STRATEGIES, type MergeStrategy } from './merge.ts';
export { type Pod, parsePod } from './pod.ts';
export type { SchedulingPolicy } from './policy.ts';
export { SourceUnavailableError } from './policy-source.ts';
export type { NodeSelector } from './rules/node-selector-rules.ts';
export { formatReason, type Reason } from './rules/reason.ts';
export { SchedulingPolicies, type SchedulingPoliciesOptions } from './scheduling-policies.ts';
