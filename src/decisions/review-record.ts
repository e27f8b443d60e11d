/** The record of a decision about a request of SkyPilot. */
import type { PolicyOutcome, Review } from '../skypilot/policies/policy-chain.ts';
import { REQUEST_NAMES } from '../skypilot/request/user-request.ts';
import type { ReceivedRequest } from '../skypilot/request/wire.ts';
import { changeRecords } from './change-records.ts';
import { isCountedLaunch } from './launches.ts';
import type { DecisionRecord, FilterRecord } from './record.ts';
import { cut, type DecisionFacts, MAX_MESSAGE, name, now, rounded, ruleRecords } from './record-parts.ts';

/** Of task and configuration, only the workspace and what policies changed is recorded. */
export function reviewRecord(
  review: Review,
  { requestId, generation, milliseconds, request }: DecisionFacts<ReceivedRequest>,
): DecisionRecord {
  const known = REQUEST_NAMES.find((one) => one === request.requestName);
  const { message, outcomes, warnings } = review;
  const { outcome, filter } = reviewOutcome(review);
  const changes = changeRecords(outcomes.map((one) => one.changes));
  return {
    time: now(),
    request_id: requestId,
    operation: `skypilot.${known ?? 'other'}`,
    side: request.atClientSide ? 'client' : 'server',
    launch: isCountedLaunch(request, review.allowed),
    project_id: name(review.skypilotConfig.getNested(['active_workspace'])),
    user_id: name(request.user?.id),
    lease_id: null,
    lease_name: name(request.requestOptions?.clusterName),
    allowed: review.allowed,
    outcome,
    filter,
    message: message === null ? null : cut(message, MAX_MESSAGE),
    failed: review.failed,
    warnings: warnings.map((warning) => cut(warning, MAX_MESSAGE)),
    filters: outcomes.map((one, index) => ({ ...policyRecord(one), ...changes[index] })),
    generation,
    duration_ms: rounded(milliseconds),
  };
}

/** The gravest outcome that applies. */
function reviewOutcome(review: Review): Pick<DecisionRecord, 'outcome' | 'filter'> {
  const { allowed, failed, exempt, changed, policy, outcomes } = review;
  if (!allowed) {
    return { outcome: failed ? 'failed' : 'rejected', filter: policy };
  }
  if (exempt) {
    return { outcome: 'exempt', filter: null };
  }
  const audited =
    outcomes.find((outcome) => outcome.audit && !outcome.allowed) ??
    outcomes.find(({ rules }) => rules?.some(({ audit }) => audit));
  if (audited !== undefined) {
    return { outcome: 'audit', filter: audited.policy };
  }
  const changing = changed ? outcomes.find((outcome) => outcome.changed && !outcome.audit) : undefined;
  return { outcome: changed ? 'changed' : 'allowed', filter: changing?.policy ?? null };
}

function policyRecord({
  policy,
  allowed,
  failed,
  changed,
  message,
  audit,
  milliseconds,
  rules,
}: PolicyOutcome): FilterRecord {
  return {
    filter: policy,
    outcome: failed ? 'failed' : !allowed ? 'rejected' : changed ? 'changed' : 'allowed',
    audit,
    message: message === null ? null : cut(message, MAX_MESSAGE),
    duration_ms: rounded(milliseconds),
    ...ruleRecords(rules),
  };
}
