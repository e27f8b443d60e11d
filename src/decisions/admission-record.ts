/** The record of a decision about a pod or a workload of Kubernetes. */
import type {
  BindingRequest,
  PodRequest,
  WorkloadRequest,
} from '../kubernetes/admission/admission-review.ts';
import type { DecidedAdmission } from '../kubernetes/admission/pod-admission.ts';
import type { DecisionRecord } from './record.ts';
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
import type { RecordedOperation } from './recorded-operation.ts';

/** Scheduling policies decide together, under one name. */
const SCHEDULING_POLICY = 'SchedulingPolicy';

/** Of the pod or workload, only the name is recorded. */
export function admissionRecord(
  operation: Extract<RecordedOperation, `kubernetes.${string}`>,
  { account, allowed, message, patch, warnings, isAudited, failed, tried, rules }: DecidedAdmission,
  {
    requestId,
    generation,
    milliseconds,
    request,
  }: DecisionFacts<PodRequest | BindingRequest | WorkloadRequest>,
): DecisionRecord {
  const changed = patch.length > 0;
  const own = failed !== undefined ? 'failed' : !allowed ? 'rejected' : changed ? 'changed' : 'allowed';
  const outcome = isAudited && !changed ? 'audit' : own;
  const duration_ms = rounded(milliseconds);
  const shown = message === null ? null : cut(message, MAX_MESSAGE);
  return {
    time: now(),
    request_id: requestId,
    operation,
    project_id: cut(request.namespace, MAX_NAME),
    user_id: cut(account.user, MAX_NAME),
    lease_id: null,
    lease_name: name(request.name),
    allowed,
    outcome,
    filter: outcome === 'allowed' ? null : SCHEDULING_POLICY,
    message: shown,
    failed: failed !== undefined && !allowed,
    warnings,
    filters: [
      {
        ...{ filter: SCHEDULING_POLICY, outcome: own, audit: failed !== undefined && allowed },
        ...{ message: shown, duration_ms, ...ruleRecords(rules) },
      },
      // What policies in audit mode would have done, in the same time.
      ...(tried.length > 0
        ? [
            {
              filter: SCHEDULING_POLICY,
              outcome: 'rejected',
              audit: true,
              message: null,
              duration_ms,
            } as const,
          ]
        : []),
    ],
    generation,
    duration_ms,
  };
}
