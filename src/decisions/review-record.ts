/**
 * Records of decisions about SkyPilot requests, of SkyPilot events that bypassed policies, and of decisions
 * about pods and workloads of Kubernetes.
 */
import { randomUUID } from 'node:crypto';
import type {
  BindingRequest,
  PodRequest,
  WorkloadRequest,
} from '../kubernetes/admission/admission-review.ts';
import type { DecidedAdmission } from '../kubernetes/admission/pod-admission.ts';
import { formatInstant, type Instant } from '../lease/dates.ts';
import type { Changes } from '../skypilot/policies/changes.ts';
import type { PolicyOutcome, Review } from '../skypilot/policies/policy-chain.ts';
import { FORERUNNERS, REQUEST_NAMES } from '../skypilot/request/user-request.ts';
import type { ReceivedRequest } from '../skypilot/request/wire.ts';
import { auditedAnswer, type DecisionFacts, filterRecord, recordOf } from './lease-record.ts';
import type { DecisionRecord, FilterOutcome, FilterRecord, RecordedOperation } from './record.ts';

/** Of task and configuration, only the workspace and the changes by policies are recorded. */
export function reviewRecord(
  review: Review,
  facts: DecisionFacts & { readonly request: ReceivedRequest },
): DecisionRecord {
  const { request } = facts;
  const known = REQUEST_NAMES.find((one) => one === request.requestName);
  const { allowed, message, outcomes, warnings, failed } = review;
  const { outcome, filter } = reviewOutcome(review);
  const changes = changeRecords(outcomes.map((one) => one.changes));
  const record = recordOf(facts, {
    operation: `skypilot.${known ?? 'other'}`,
    project: review.skypilotConfig.getNested(['active_workspace']),
    user: request.user?.id,
    leaseId: null,
    leaseName: request.requestOptions?.clusterName,
    allowed,
    outcome,
    filter,
    message,
    failed,
    warnings,
    filters: outcomes.map((one, index) => ({
      ...filterRecord(one.policy, policyOutcome(one), one),
      ...changes[index],
    })),
  });
  return {
    ...record,
    side: request.atClientSide ? 'client' : 'server',
    launch: isCountedLaunch(request, allowed),
  };
}

/** The most severe outcome that applies. */
function reviewOutcome(review: Review): Pick<DecisionRecord, 'outcome' | 'filter'> {
  const { allowed, failed, exempt, changed, policy, outcomes } = review;
  if (!allowed) {
    return { outcome: failed ? 'failed' : 'rejected', filter: policy };
  }
  if (exempt) {
    return { outcome: 'exempt', filter: null };
  }
  const audited = auditedAnswer(outcomes);
  if (audited !== undefined) {
    return { outcome: 'audit', filter: audited.policy };
  }
  const changing = changed ? outcomes.find((outcome) => outcome.changed && !outcome.audit) : undefined;
  return { outcome: changed ? 'changed' : 'allowed', filter: changing?.policy ?? null };
}

function policyOutcome({
  allowed,
  failed,
  changed,
}: Pick<PolicyOutcome, 'allowed' | 'failed' | 'changed'>): FilterOutcome {
  return failed ? 'failed' : !allowed ? 'rejected' : changed ? 'changed' : 'allowed';
}

/** Limit for all policies of a decision: a line of the log must stay short. */
const MAX_CHANGES = 50;

/** In the order of `all`. Policies with few changes are complete; the others share the rest. */
function changeRecords(
  all: readonly (Changes | undefined)[],
): Pick<FilterRecord, 'changes' | 'changes_left_out'>[] {
  const changing = all.filter((one) => one !== undefined);
  const shares = new Map<Changes, number>();
  let left = MAX_CHANGES;
  for (const [index, one] of [...changing].sort((a, b) => a.list.length - b.list.length).entries()) {
    const share = Math.min(one.list.length, Math.floor(left / (changing.length - index)));
    shares.set(one, share);
    left -= share;
  }
  return all.map((one) => {
    if (one === undefined) {
      return {};
    }
    const changes = one.list.slice(0, shares.get(one));
    const leftOut = one.leftOut + one.list.length - changes.length;
    return { changes, ...(leftOut > 0 && { changes_left_out: leftOut }) };
  });
}

/**
 * The server's last request before it launches something for a user. A pool is created as a service:
 * `serve.up`. Unknown names count, too, since a later SkyPilot may launch with them. Source: SkyPilot 0.13,
 * its calls of the admin policy.
 */
const LAUNCHES: ReadonlySet<string> = new Set([
  'launch',
  'jobs.launch',
  'jobs.pool_apply',
  'serve.up',
  'serve.update',
]);

/**
 * Whether a decision counts as a launch: the last request of the server if allowed, or any request of the
 * launch that is refused. Dry runs, commands for running clusters, and launches by controllers for a counted
 * job or service do not count.
 */
function isCountedLaunch(
  { requestName, requestOptions, atClientSide }: ReceivedRequest,
  isAllowed: boolean,
): boolean {
  if (requestOptions?.dryrun === true) {
    return false;
  }
  const isKnown = REQUEST_NAMES.some((name) => name === requestName);
  const launches = LAUNCHES.has(requestName) || !isKnown;
  return isAllowed ? launches && !atClientSide : launches || FORERUNNERS.has(requestName);
}

/**
 * `undecided`: a cluster was started without calling a policy. `autostop-off`: autostop was switched off
 * after the launch.
 */
export type BypassKind = 'undecided' | 'autostop-off';

/**
 * A SkyPilot event that bypassed its admin policies: one event, whatever the number of bypassed policies.
 * Source: SkyPilot 0.13: `sky start` and `sky autostop` call no policy.
 */
export interface Bypass {
  readonly kind: BypassKind;
  readonly workspace: string;
  readonly cluster: string;
  /** Empty = unknown. */
  readonly userId: string;
  /** When the cluster was last started; `undefined` = unknown. */
  readonly startedAt: Instant | undefined;
  /** In the order of the configuration. */
  readonly policies: readonly string[];
  /** The message of the limit that is now exceeded; `undefined` = none. */
  readonly exceeded: string | undefined;
}

/** `at`: when the event was found. */
export function bypassRecord(bypass: Bypass, at: Date, generation: number): DecisionRecord {
  const { workspace, cluster, userId, policies } = bypass;
  const answer = { audit: false, message: null, milliseconds: 0 };
  const record = recordOf(
    { requestId: `req-${randomUUID()}`, generation, milliseconds: 0 },
    {
      operation: 'skypilot.bypass',
      project: workspace,
      user: userId || null,
      leaseId: null,
      leaseName: cluster,
      allowed: true,
      outcome: 'bypassed',
      filter: policies[0] ?? null,
      message: bypassText(bypass),
      failed: false,
      warnings: [],
      filters: policies.map((filter) => filterRecord(filter, 'bypassed', answer)),
    },
  );
  return { ...record, time: at.toISOString() };
}

function bypassText({ kind, cluster, startedAt, exceeded }: Bypass): string {
  const when = startedAt === undefined ? '' : ` at ${formatInstant(startedAt)}`;
  const what =
    kind === 'undecided'
      ? `The cluster ${cluster} was started${when} without asking a policy, for example by "sky start".`
      : `Autostop of the cluster ${cluster} was switched off after its launch, for example by "sky autostop --cancel".`;
  return exceeded === undefined ? what : `${what} It is up beyond a limit: ${exceeded}`;
}

/** Scheduling policies decide together, under one name. */
const SCHEDULING_POLICY = 'SchedulingPolicy';

/** Of the pod or workload, only the name is recorded. */
export function admissionRecord(
  operation: Extract<RecordedOperation, `kubernetes.${string}`>,
  { account, allowed, message, patch, warnings, isAudited, failed, tried, rules }: DecidedAdmission,
  facts: DecisionFacts & { readonly request: PodRequest | BindingRequest | WorkloadRequest },
): DecisionRecord {
  const { milliseconds, request } = facts;
  const changed = patch.length > 0;
  const own = policyOutcome({ allowed, changed, failed: failed !== undefined });
  const outcome = isAudited && !changed ? 'audit' : own;
  const audit = failed !== undefined && allowed;
  return recordOf(facts, {
    operation,
    project: request.namespace,
    user: account.user,
    leaseId: null,
    leaseName: request.name,
    allowed,
    outcome,
    message,
    warnings,
    filter: outcome === 'allowed' ? null : SCHEDULING_POLICY,
    failed: failed !== undefined && !allowed,
    filters: [
      filterRecord(SCHEDULING_POLICY, own, { audit, message, milliseconds, rules }),
      // The result of policies in audit mode, with the same duration.
      ...(tried.length > 0
        ? [filterRecord(SCHEDULING_POLICY, 'rejected', { audit: true, message: null, milliseconds })]
        : []),
    ],
  });
}
