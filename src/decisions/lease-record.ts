/** The record of a decision about a lease. */
import type { RequestNames } from '../filter/request-names.ts';
import type { Decision, EndReport, Outcome } from '../filter/verdict.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { DecisionRecord, FilterOutcome, FilterRecord } from './record.ts';
import {
  cut,
  type DecisionFacts,
  MAX_MESSAGE,
  MAX_NAME,
  name,
  now,
  rounded,
  ruleRecords,
} from './record-parts.ts';

/** A request that was decided, so its form has been checked. An update may name only what changes. */
export interface DecidedRequest {
  readonly context: Context;
  readonly lease: Lease;
  readonly current_lease?: Lease;
  readonly currentLease?: Lease;
}

export function decisionRecord(
  decision: Decision | EndReport,
  { requestId, generation, milliseconds, request }: DecisionFacts<DecidedRequest>,
): DecisionRecord {
  const { context, lease } = request;
  const current = request.current_lease ?? request.currentLease;
  const { operation, failed, warnings, outcomes, names } = decision;
  const { outcome, filter } = decisionOutcome(decision);
  const record = {
    time: now(),
    request_id: requestId,
    operation,
    project_id: cut(context.project_id, MAX_NAME),
    user_id: cut(context.user_id, MAX_NAME),
    lease_id: name(lease.id ?? current?.id),
    lease_name: name(lease.name ?? current?.name),
    allowed: operation === 'end' || decision.allowed,
    outcome,
    filter,
    message: operation === 'end' || decision.message === null ? null : cut(decision.message, MAX_MESSAGE),
    failed,
    warnings: warnings.map((warning) => cut(warning, MAX_MESSAGE)),
    filters: outcomes.map(filterRecord),
    generation,
    duration_ms: rounded(milliseconds),
  };
  return names === undefined ? record : { ...record, ...namesOf(names) };
}

function namesOf({ project, user }: RequestNames) {
  return {
    project_name: name(project?.name),
    project_domain: name(project?.domain || null),
    user_name: name(user?.name),
    user_domain: name(user?.domain || null),
  };
}

function filterRecord(outcome: Outcome): FilterRecord {
  const { filter, audit, message, milliseconds, rules } = outcome;
  const record = {
    filter,
    outcome: filterOutcome(outcome),
    audit,
    message: message === null ? null : cut(message, MAX_MESSAGE),
    duration_ms: rounded(milliseconds),
  };
  return rules === undefined ? record : { ...record, ...ruleRecords(rules) };
}

/** The gravest outcome that applies. */
function decisionOutcome(decision: Decision | EndReport): Pick<DecisionRecord, 'outcome' | 'filter'> {
  const { outcomes, failed } = decision;
  if (decision.operation === 'end') {
    const deaf = failed ? outcomes.find((outcome) => outcome.failed) : undefined;
    return deaf === undefined
      ? { outcome: 'allowed', filter: null }
      : { outcome: 'failed', filter: deaf.filter };
  }
  if (!decision.allowed) {
    return { outcome: failed ? 'failed' : 'rejected', filter: decision.filter };
  }
  if (decision.exempt) {
    return { outcome: 'exempt', filter: null };
  }
  const onError = outcomes.find((outcome) => outcome.onError && !outcome.audit);
  if (onError !== undefined) {
    return { outcome: 'allowed-on-error', filter: onError.filter };
  }
  const audited =
    outcomes.find((outcome) => outcome.audit && !outcome.allowed) ??
    outcomes.find(({ rules }) => rules?.some(({ audit }) => audit));
  return audited === undefined
    ? { outcome: 'allowed', filter: null }
    : { outcome: 'audit', filter: audited.filter };
}

function filterOutcome({ allowed, failed, onError }: Outcome): FilterOutcome {
  if (failed) {
    return 'failed';
  }
  return !allowed ? 'rejected' : onError ? 'allowed-on-error' : 'allowed';
}
