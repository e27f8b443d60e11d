/** What status and events tell whoever counts them. */
import { CLUSTER_GROUP } from '../../policies/policy.ts';

/**
 * Of a write of a policy's status. `conflict`: the policy has changed meanwhile; it is looked at again. `gone`: there is no such policy, or
 * its definition has no status. `refused`: no right, or the API server finds it invalid. `failed`: no answer, or a fault of the server.
 */
export type StatusOutcome = 'written' | 'conflict' | 'gone' | 'refused' | 'failed';

/** Of an event. `repeated`: another replica has written it. `dropped`: too many were waiting. */
export type EventOutcome = 'sent' | 'repeated' | 'dropped' | 'failed';

/** Hears what is counted. Never throws. */
export interface StatusObserver {
  statusWritten(outcome: StatusOutcome): void;
  event(outcome: EventOutcome): void;
}

/** Who writes, in managed fields and events. */
export const COMPONENT = 'blazar-enforcement';

/** How the API server knows policies. */
export const POLICY_API_VERSION = `${CLUSTER_GROUP}/v1alpha1`;
export const POLICY_KIND = 'SchedulingPolicy';
