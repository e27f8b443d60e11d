/**
 * `deep`: of required and default parts the first policy that has one counts, part by part; what is allowed adds up.
 * `first`: only the first policy. `simple`: of each field in each section the first policy that has it.
 * `intersection`: what every policy lets through by itself. The first is the one whose name comes first.
 * Source: the proposal "Scheduling Policy" of Kubernetes, "Multiple SchedulingPolicies", and its reviewers.
 */
export const MERGE_STRATEGIES = ['deep', 'first', 'simple', 'intersection'] as const;

export type MergeStrategy = (typeof MERGE_STRATEGIES)[number];
