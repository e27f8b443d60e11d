/** A decision as it is logged, counted and shown: one flat object for all protocols. */
import { z } from 'zod';
import type { RequestNames } from '../filter/request-names.ts';
import type { Decision, EndReport, Outcome } from '../filter/verdict.ts';
import type { BindingRequest, PodRequest } from '../kubernetes/admission-review.ts';
import type { DecidedAdmission } from '../kubernetes/pod-admission.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { PolicyOutcome, Review } from '../skypilot/policy-chain.ts';
import { REQUEST_NAMES } from '../skypilot/user-request.ts';
import type { ReceivedRequest } from '../skypilot/wire.ts';
import { OPERATIONS, type RecordedOperation } from './recorded-operation.ts';

/** The answer of one filter. */
export type FilterOutcome = 'allowed' | 'changed' | 'rejected' | 'failed' | 'allowed-on-error';

/** The outcome of a request. */
export type DecisionOutcome = FilterOutcome | 'exempt' | 'audit';

/** One line of the decision log. Texts from the request are cut at 255 characters, messages at 2000. */
export interface DecisionRecord {
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  readonly request_id: string;
  readonly operation: RecordedOperation;
  /** For SkyPilot the workspace, if the configuration names one; for Kubernetes the namespace. */
  readonly project_id: string | null;
  /** `null` if SkyPilot does not name the user; for Kubernetes the service account. */
  readonly user_id: string | null;
  /** What Keystone calls project and user; `null` = it does not tell. Missing unless `[keystone] resolve_names` is true. */
  readonly project_name?: string | null | undefined;
  readonly project_domain?: string | null | undefined;
  readonly user_name?: string | null | undefined;
  readonly user_domain?: string | null | undefined;
  /** `null` if the request has none: Blazar sends none for a new lease. */
  readonly lease_id: string | null;
  /** For SkyPilot the cluster, for Kubernetes the pod. */
  readonly lease_name: string | null;
  readonly allowed: boolean;
  /**
   * `changed`: allowed in another form than requested. `audit`: allowed, but an audited filter would have rejected it, or failed.
   * `allowed-on-error`: a filter failed and let it through. `exempt`: the project is in exempt_projects.
   */
  readonly outcome: DecisionOutcome;
  /** The filter or policy that caused the outcome; `null` = none. */
  readonly filter: string | null;
  /** The message for the user; `null` if allowed. */
  readonly message: string | null;
  readonly failed: boolean;
  readonly warnings: readonly string[];
  readonly filters: readonly FilterRecord[];
  /** The number of the configuration that decided: 1 since the start, one more with each reload. */
  readonly generation: number;
  /** From the whole request to the answer, waiting included. */
  readonly duration_ms: number;
}

/** The answer of one filter or policy, and how long it took. */
export interface FilterRecord {
  readonly filter: string;
  readonly outcome: FilterOutcome;
  readonly audit: boolean;
  readonly message: string | null;
  readonly duration_ms: number;
}

const filterRecordSchema = z.object({
  filter: z.string(),
  outcome: z.enum(['allowed', 'changed', 'rejected', 'failed', 'allowed-on-error']),
  audit: z.boolean(),
  message: z.string().nullable(),
  duration_ms: z.number().nonnegative(),
}) satisfies z.ZodType<FilterRecord>;

/** A line of the log. Unknown fields, which a later version may add, are dropped. */
export const decisionRecordSchema = z.object({
  time: z.iso.datetime({ precision: 3 }),
  request_id: z.string(),
  operation: z.enum(OPERATIONS),
  project_id: z.string().nullable(),
  user_id: z.string().nullable(),
  project_name: z.string().nullish(),
  project_domain: z.string().nullish(),
  user_name: z.string().nullish(),
  user_domain: z.string().nullish(),
  lease_id: z.string().nullable(),
  lease_name: z.string().nullable(),
  allowed: z.boolean(),
  outcome: z.enum([...filterRecordSchema.shape.outcome.options, 'exempt', 'audit']),
  filter: z.string().nullable(),
  message: z.string().nullable(),
  failed: z.boolean(),
  warnings: z.array(z.string()),
  filters: z.array(filterRecordSchema),
  generation: z.int().positive(),
  duration_ms: z.number().nonnegative(),
}) satisfies z.ZodType<DecisionRecord>;

/** The parts of a record other than the decision. */
export interface DecisionFacts<Request> {
  readonly requestId: string;
  readonly generation: number;
  readonly milliseconds: number;
  readonly request: Request;
}

/** A request that was decided, so its form has been checked. An update may name only what changes. */
export interface DecidedRequest {
  readonly context: Context;
  readonly lease: Lease;
  readonly current_lease?: Lease;
  readonly currentLease?: Lease;
}

const MAX_NAME = 255;
const MAX_MESSAGE = 2000;

export function decisionRecord(
  decision: Decision | EndReport,
  { requestId, generation, milliseconds, request }: DecisionFacts<DecidedRequest>,
): DecisionRecord {
  const { context, lease } = request;
  const current = request.current_lease ?? request.currentLease;
  const { operation, failed, warnings, outcomes, names } = decision;
  const { outcome, filter } = decisionOutcome(decision);
  return {
    time: now(),
    request_id: requestId,
    operation,
    project_id: cut(context.project_id, MAX_NAME),
    user_id: cut(context.user_id, MAX_NAME),
    ...(names && namesOf(names)),
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
}

function namesOf({ project, user }: RequestNames) {
  return {
    project_name: name(project?.name),
    project_domain: name(project?.domain || null),
    user_name: name(user?.name),
    user_domain: name(user?.domain || null),
  };
}

/** Of the configuration in the request, only the workspace is recorded. */
export function reviewRecord(
  review: Review,
  { requestId, generation, milliseconds, request }: DecisionFacts<ReceivedRequest>,
): DecisionRecord {
  const known = REQUEST_NAMES.find((one) => one === request.requestName);
  const { allowed, changed, failed, message, policy, outcomes } = review;
  const changing = outcomes.find((outcome) => outcome.changed);
  return {
    time: now(),
    request_id: requestId,
    operation: `skypilot.${known ?? 'other'}`,
    project_id: name(review.skypilotConfig.getNested(['active_workspace'])),
    user_id: name(request.user?.id),
    lease_id: null,
    lease_name: name(request.requestOptions?.clusterName),
    allowed,
    outcome: failed ? 'failed' : !allowed ? 'rejected' : changed ? 'changed' : 'allowed',
    filter: policy ?? (changed ? (changing?.policy ?? null) : null),
    message: message === null ? null : cut(message, MAX_MESSAGE),
    failed,
    warnings: [],
    filters: outcomes.map(policyRecord),
    generation,
    duration_ms: rounded(milliseconds),
  };
}

/** Scheduling policies decide together, under one name. */
const SCHEDULING_POLICY = 'SchedulingPolicy';

/** Of the pod, only the name is recorded. */
export function admissionRecord(
  operation: Extract<RecordedOperation, `kubernetes.${string}`>,
  { account, allowed, message, patch, warnings, isAudited }: DecidedAdmission,
  { requestId, generation, milliseconds, request }: DecisionFacts<PodRequest | BindingRequest>,
): DecisionRecord {
  const changed = patch.length > 0;
  const own = !allowed ? 'rejected' : changed ? 'changed' : 'allowed';
  const outcome = own === 'allowed' && isAudited ? 'audit' : own;
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
    failed: false,
    warnings,
    filters: [{ filter: SCHEDULING_POLICY, outcome: own, audit: false, message: shown, duration_ms }],
    generation,
    duration_ms,
  };
}

function policyRecord({
  policy,
  allowed,
  failed,
  changed,
  message,
  milliseconds,
}: PolicyOutcome): FilterRecord {
  return {
    filter: policy,
    outcome: failed ? 'failed' : !allowed ? 'rejected' : changed ? 'changed' : 'allowed',
    audit: false,
    message: message === null ? null : cut(message, MAX_MESSAGE),
    duration_ms: rounded(milliseconds),
  };
}

function filterRecord(outcome: Outcome): FilterRecord {
  const { filter, audit, message, milliseconds } = outcome;
  return {
    filter,
    outcome: filterOutcome(outcome),
    audit,
    message: message === null ? null : cut(message, MAX_MESSAGE),
    duration_ms: rounded(milliseconds),
  };
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
  const audited = outcomes.find((outcome) => outcome.audit && !outcome.allowed);
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

/** Names come unchecked from users and plug-ins; only texts are recorded. */
function name(value: unknown): string | null {
  return typeof value === 'string' ? cut(value, MAX_NAME) : null;
}

/** Copies the part: a slice would keep the whole text in memory. */
function cut(text: string, length: number): string {
  return text.length > length ? `${structuredClone(text.slice(0, length))}…` : text;
}

let lastMillisecond = 0;
let lastTime = '';

/** Under load, many decisions are made in the same millisecond, and formatting it is half the cost of a record. */
function now(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastTime = new Date(millisecond).toISOString();
  }
  return lastTime;
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
