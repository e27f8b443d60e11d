/**
 * How several policies combine. Policies are sorted by name.
 * `deep`: for each required or default part, the first policy that has it wins; what is allowed adds up.
 * `first`: only the first policy counts. `simple`: for each field of each section, the first policy that has it wins.
 * `intersection`: every policy must allow the request.
 * Source: the proposal "Scheduling Policy" of Kubernetes, "Multiple SchedulingPolicies", and its reviewers.
 */
export const MERGE_STRATEGIES = ['deep', 'first', 'simple', 'intersection'] as const;

export type MergeStrategy = (typeof MERGE_STRATEGIES)[number];
