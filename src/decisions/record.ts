/** A decision as it is logged, counted and shown: one flat object for all protocols. */
import { z } from 'zod';
import type { RequestNames } from '../filter/request-names.ts';
import type { Decision, EndReport, Outcome, RuleOutcomes } from '../filter/verdict.ts';
import type { BindingRequest, PodRequest, WorkloadRequest } from '../kubernetes/admission-review.ts';
import type { DecidedAdmission } from '../kubernetes/pod-admission.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { PolicyOutcome, Review } from '../skypilot/policy-chain.ts';
import { REQUEST_NAMES } from '../skypilot/user-request.ts';
import type { ReceivedRequest } from '../skypilot/wire.ts';
import { changeRecordSchema, changeRecords, type RecordedChanges } from './change-records.ts';
import { isCountedLaunch } from './launches.ts';
import { OPERATIONS, type RecordedOperation } from './recorded-operation.ts';

/** The answer of one filter. `bypassed`: it was not asked. */
export type FilterOutcome = 'allowed' | 'changed' | 'rejected' | 'failed' | 'allowed-on-error' | 'bypassed';

/** The outcome of a request. */
export type DecisionOutcome = FilterOutcome | 'exempt' | 'audit';

/** One line of the decision log. Texts from the request are cut at 255 characters, messages at 2000. */
export interface DecisionRecord {
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  readonly request_id: string;
  readonly operation: RecordedOperation;
  /** Only for SkyPilot: which side of it asked. */
  readonly side?: Side | undefined;
  /** Only for SkyPilot: whether this is the decision that counts for a launch. SkyPilot asks several times about each. */
  readonly launch?: boolean | undefined;
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
   * `allowed-on-error`: a filter failed and let it through. `exempt`: the project, or the SkyPilot user or workspace, is exempt.
   * `bypassed`: nobody was asked, and it was found later.
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
  /** The trace of OpenTelemetry that the request is part of; missing unless it is recorded. */
  readonly trace_id?: string | undefined;
}

/** The side of SkyPilot that asks: the user's machine, or the API server and its controllers. */
export const SIDES = ['client', 'server'] as const;
export type Side = (typeof SIDES)[number];

/** The answer of one filter or policy, and how long it took. */
export interface FilterRecord extends RecordedChanges {
  readonly filter: string;
  readonly outcome: FilterOutcome;
  readonly audit: boolean;
  readonly message: string | null;
  readonly duration_ms: number;
  /** Only for filters and policies that judge by rules with names: those that said no. */
  readonly rules?: readonly RuleRecord[] | undefined;
}

/** A rule that rejected the request or failed; with `audit`, it refused nothing. */
export interface RuleRecord {
  readonly rule: string;
  readonly outcome: 'rejected' | 'failed';
  readonly audit: boolean;
}

const filterRecordSchema = z.object({
  filter: z.string(),
  outcome: z.enum(['allowed', 'changed', 'rejected', 'failed', 'allowed-on-error', 'bypassed']),
  audit: z.boolean(),
  message: z.string().nullable(),
  duration_ms: z.number().nonnegative(),
  rules: z
    .array(z.object({ rule: z.string(), outcome: z.enum(['rejected', 'failed']), audit: z.boolean() }))
    .optional(),
  changes: z.array(changeRecordSchema).optional(),
  changes_left_out: z.int().positive().optional(),
}) satisfies z.ZodType<FilterRecord>;

/** A line of the log. Unknown fields, which a later version may add, are dropped. */
export const decisionRecordSchema = z.object({
  time: z.iso.datetime({ precision: 3 }),
  request_id: z.string(),
  operation: z.enum(OPERATIONS),
  side: z.enum(SIDES).optional(),
  launch: z.boolean().optional(),
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
  trace_id: z.string().optional(),
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
/** Of one decision. */
const MAX_RULES = 100;

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

function filterRecord(outcome: Outcome): FilterRecord {
  const { filter, audit, message, milliseconds, rules } = outcome;
  return {
    filter,
    outcome: filterOutcome(outcome),
    audit,
    message: message === null ? null : cut(message, MAX_MESSAGE),
    duration_ms: rounded(milliseconds),
    ...ruleRecords(rules),
  };
}

function ruleRecords(rules: RuleOutcomes | undefined): Pick<FilterRecord, 'rules'> {
  return rules === undefined
    ? {}
    : {
        rules: rules
          .slice(0, MAX_RULES)
          .map(({ rule, outcome, audit }) => ({ rule: cut(rule, MAX_NAME), outcome, audit })),
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
