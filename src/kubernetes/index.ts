/**
 * blazar-enforcement/kubernetes: scheduling policies as a library, for checking pods or other requests for
 * nodes. Start at `SchedulingPolicies` for files, and at `followSchedulingPolicies` for a cluster.
 */

export type { SourceHealth } from './cluster/live/contract.ts';
export {
  type FollowedPolicies,
  type FollowPoliciesOptions,
  followSchedulingPolicies,
} from './cluster/live/follow-policies.ts';
export { type Account, SourceUnavailableError, serviceAccount } from './policies/access.ts';
export { type PolicyDocuments, readPolicyDocuments } from './policies/documents/documents.ts';
export {
  EffectivePolicy,
  type NodeSelectorReview,
  type PodReview,
  type ReviewOptions,
} from './policies/effective-policy.ts';
export { MERGE_STRATEGIES, type MergeStrategy } from './policies/merge.ts';
export { type Pod, parsePod } from './policies/pod.ts';
export type { SchedulingPolicy } from './policies/policy.ts';
export type { NodeSelector } from './policies/rules/node-selector-rules.ts';
export { formatReason, type Reason } from './policies/rules/reason.ts';
export { SchedulingPolicies, type SchedulingPoliciesOptions } from './policies/scheduling-policies.ts';
