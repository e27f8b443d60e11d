/** The result of the policies for one request. */

import { isDeepStrictEqual } from 'node:util';
import type { Mapping } from '../base/yaml/tree.ts';
import { ruleWarnings } from '../enforcement/chain/messages.ts';
import type { RuleOutcomes } from '../filter/verdict.ts';
import { type Config, configOver } from './config/config.ts';
import type { Answer } from './policies/call-policy.ts';
import type { Changes } from './policies/changes.ts';
import type { Task } from './request/user-request.ts';
import type { ReceivedRequest } from './request/wire.ts';

export interface PolicyOutcome {
  readonly policy: string;
  readonly allowed: boolean;
  /** The reason for a rejection, a generic sentence for a failure, otherwise `null`. */
  readonly message: string | null;
  /** The policy threw another error, took too long or returned an invalid answer. The cause is in the log. */
  readonly failed: boolean;
  /** For an audited policy: whether it would have changed the request. */
  readonly changed: boolean;
  /** The policy is in `audit_policies`: its answer had no effect. */
  readonly audit: boolean;
  readonly milliseconds: number;
  /** For policies with named rules: the rules that rejected the request. */
  readonly rules?: RuleOutcomes | undefined;
  /** Its changes, also if audited; `undefined` = none, or unknown. */
  readonly changes?: Changes | undefined;
}

/** The result of all policies. */
export interface Review {
  readonly allowed: boolean;
  /** The result of the last policy; if refused, the original. */
  readonly task: Task;
  readonly skypilotConfig: Config;
  /** Whether task or configuration differ from the original. */
  readonly changed: boolean;
  /** The message for the user; `null` when allowed. */
  readonly message: string | null;
  /** The policy that rejected or failed; `null` when allowed. */
  readonly policy: string | null;
  readonly failed: boolean;
  /** The user or the workspace is exempt: no policy was called. */
  readonly exempt: boolean;
  /** Sentences about results of audited policies, exemptions, and mismatches with SkyPilot's schema. */
  readonly warnings: readonly string[];
  /** What does not match SkyPilot's schema: `config_validation` for the request, or the name of a policy. */
  readonly mismatches: readonly string[];
  /** The response to SkyPilot; `null` when refused. */
  readonly answer: string | null;
  /** One for each policy that was called, in order. */
  readonly outcomes: readonly PolicyOutcome[];
}

/** The request as one policy passes it to the next. */
export type State = Pick<Exclude<Answer, { rejected: string }>, 'task' | 'skypilotConfig'>;

/** The message for the user, and whether something failed. */
export interface Refusal {
  readonly message: string;
  readonly failed: boolean;
}

/** `policy`: the one that rejected or failed; `null` = none. */
export type RefusedBy = Refusal & { readonly policy: string | null };

export const FAILED: Refusal = {
  message: 'The request could not be checked. Please try again later, or ask the operator.',
  failed: true,
};

export function originalOf(request: ReceivedRequest): State {
  return { task: request.task.value as Task, skypilotConfig: request.skypilotConfig.value as Mapping };
}

/** The result of all policies without mismatches. Without `answer`, the request is refused unchanged. */
export function reviewOf(
  { task, skypilotConfig }: State,
  verdict: { readonly changed: boolean; readonly answer: string } | RefusedBy,
  outcomes: readonly PolicyOutcome[],
  notes: readonly string[],
): Omit<Review, 'mismatches'> {
  const warnings = [...notes, ...warningsOf(outcomes)];
  const common = { task, skypilotConfig: configOver(skypilotConfig), outcomes, warnings, exempt: false };
  return 'answer' in verdict
    ? { ...common, ...verdict, allowed: true, message: null, policy: null, failed: false }
    : { ...common, ...verdict, allowed: false, changed: false, answer: null };
}

/** The outcome of a policy whose answer has no effect. */
export function refusedOutcome(outcome: PolicyOutcome, { message, failed }: Refusal): PolicyOutcome {
  return { ...outcome, message, failed, allowed: false, changed: false };
}

function warningsOf(outcomes: readonly PolicyOutcome[]): string[] {
  return outcomes.flatMap((outcome) =>
    outcome.audit ? (auditWarning(outcome) ?? []) : ruleWarnings(outcome),
  );
}

/** What an audited policy would have done, in a sentence; `undefined` = it allowed the request unchanged. */
export function auditWarning({
  policy,
  allowed,
  message,
  failed,
  changed,
}: Pick<PolicyOutcome, 'policy' | 'allowed' | 'message' | 'failed' | 'changed'>): string | undefined {
  const tried = `${policy} (tried, not enforced)`;
  if (failed) {
    return `${tried} failed.`;
  }
  if (!allowed) {
    return `${tried} would have rejected: ${message}`;
  }
  return changed ? `${tried} would have changed the request.` : undefined;
}

// How SkyPilot uses responses: it sends them again as requests, and compares those of a pipeline.

/** The next request that SkyPilot would send. */
export function answered(request: ReceivedRequest, { task, skypilotConfig }: Review): ReceivedRequest {
  return {
    ...request,
    task: request.task.with(task),
    skypilotConfig: request.skypilotConfig.with(skypilotConfig.toDict()),
  };
}

/** SkyPilot has one configuration for a pipeline, and rejects one whose tasks end up with different ones. */
export function haveOneConfiguration(reviews: readonly Review[]): boolean {
  const [first, ...others] = reviews
    .filter(({ allowed }) => allowed)
    .map(({ skypilotConfig }) => skypilotConfig);
  return first === undefined || others.every((one) => isDeepStrictEqual(one.toDict(), first.toDict()));
}
