/** The record of a decision about a lease, with the lease that was asked for, and the common parts of the records of all protocols. */
import type { Decision, EndReport, Outcome, RequestNames, RuleOutcomes } from '../filter/verdict.ts';
import { type Instant, leaseEnd, leaseStart } from '../lease/dates.ts';
import { type Context, type Lease, type Reservation, reservationsAfterUpdate } from '../lease/lease.ts';
import { leastJsonLength } from '../lease/request.ts';
import type { DecisionRecord, FilterOutcome, FilterRecord } from './record.ts';

/** The parts of a record other than the decision. */
export interface DecisionFacts {
  readonly requestId: string;
  readonly generation: number;
  readonly milliseconds: number;
}

/**
 * The decision of a protocol. Texts may have any length; names come unchecked from users and plug-ins: other
 * types are not recorded.
 */
interface Decided
  extends Pick<
    DecisionRecord,
    'operation' | 'allowed' | 'outcome' | 'filter' | 'message' | 'failed' | 'warnings' | 'filters'
  > {
  readonly project: unknown;
  readonly user: unknown;
  readonly leaseId: unknown;
  readonly leaseName: unknown;
}

const MAX_NAME = 255;
const MAX_MESSAGE = 2000;
/** Per decision. */
const MAX_RULES = 100;

export function recordOf(facts: DecisionFacts, decided: Decided): DecisionRecord {
  return {
    time: now(),
    request_id: facts.requestId,
    operation: decided.operation,
    project_id: name(decided.project),
    user_id: name(decided.user),
    lease_id: name(decided.leaseId),
    lease_name: name(decided.leaseName),
    allowed: decided.allowed,
    outcome: decided.outcome,
    filter: decided.filter,
    message: shownMessage(decided.message),
    failed: decided.failed,
    warnings: decided.warnings.map((warning) => cut(warning, MAX_MESSAGE)),
    filters: decided.filters,
    generation: facts.generation,
    duration_ms: rounded(facts.milliseconds),
  };
}

/** `outcome`: of a filter or a policy. */
export function filterRecord(
  filter: string,
  outcome: FilterOutcome,
  {
    audit,
    message,
    milliseconds,
    rules,
  }: Pick<Outcome, 'audit' | 'message' | 'milliseconds'> & { readonly rules?: RuleOutcomes | undefined },
): FilterRecord {
  const duration_ms = rounded(milliseconds);
  const record = { filter, outcome, audit, message: shownMessage(message), duration_ms };
  return rules === undefined
    ? record
    : {
        ...record,
        rules: rules
          .slice(0, MAX_RULES)
          .map((one) => ({ rule: cut(one.rule, MAX_NAME), outcome: one.outcome, audit: one.audit })),
      };
}

/** The result that would have refused an allowed request, if it had not been in audit mode. */
export function auditedAnswer<
  Answer extends {
    readonly audit: boolean;
    readonly allowed: boolean;
    readonly rules?: RuleOutcomes | undefined;
  },
>(answers: readonly Answer[]): Answer | undefined {
  return (
    answers.find(({ audit, allowed }) => audit && !allowed) ??
    answers.find(({ rules }) => rules?.some(({ audit }) => audit))
  );
}

/** A decided, so validated, request. An update may contain only the changes. */
export interface DecidedRequest {
  readonly context: Context;
  readonly lease: Lease;
  readonly current_lease?: Lease;
  readonly currentLease?: Lease;
}

export function decisionRecord(
  decision: Decision | EndReport,
  facts: DecisionFacts & { readonly request: DecidedRequest },
): DecisionRecord {
  const { context, lease, current_lease, currentLease } = facts.request;
  const current = current_lease ?? currentLease;
  const { operation, failed, warnings, outcomes, names } = decision;
  const { outcome, filter } = decisionOutcome(decision);
  const record = recordOf(facts, {
    operation,
    project: context.project_id,
    user: context.user_id,
    leaseId: lease.id ?? current?.id,
    leaseName: lease.name ?? current?.name,
    allowed: operation === 'end' || decision.allowed,
    outcome,
    filter,
    message: operation === 'end' ? null : decision.message,
    failed,
    warnings,
    filters: outcomes.map((one) => filterRecord(one.filter, filterOutcome(one), one)),
  });
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

/** The most severe outcome that applies. */
function decisionOutcome(decision: Decision | EndReport): Pick<DecisionRecord, 'outcome' | 'filter'> {
  const { outcomes, failed } = decision;
  if (decision.operation === 'end') {
    const failing = failed ? outcomes.find((outcome) => outcome.failed) : undefined;
    return failing === undefined
      ? { outcome: 'allowed', filter: null }
      : { outcome: 'failed', filter: failing.filter };
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
  const audited = auditedAnswer(outcomes);
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

function name(value: unknown): string | null {
  return typeof value === 'string' ? cut(value, MAX_NAME) : null;
}

function shownMessage(message: string | null): string | null {
  return message === null ? null : cut(message, MAX_MESSAGE);
}

/** Copies the part: a slice would keep the whole text in memory. */
function cut(text: string, length: number): string {
  return text.length > length ? `${structuredClone(text.slice(0, length))}…` : text;
}

let lastMillisecond = Number.NaN;
let lastTime = '';
let lastSecond = Number.NaN;
/** `2026-11-23T09:47:05.` */
let upToMilliseconds = '';

/** Cached: formatting a whole date is half the cost of a record, and many share a second under load. */
export function now(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) {
    const second = Math.floor(millisecond / 1000);
    if (second !== lastSecond) {
      upToMilliseconds = new Date(millisecond).toISOString().slice(0, -4);
      lastSecond = second;
    }
    lastTime = `${upToMilliseconds}${String(millisecond - second * 1000).padStart(3, '0')}Z`;
    lastMillisecond = millisecond;
  }
  return lastTime;
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

/**
 * The dates and reservations of a refused lease. The store and the console keep them to try the lease again;
 * the log has whole requests, if configured.
 */
export interface RequestedLease {
  readonly start: Instant;
  readonly end: Instant;
  /**
   * Without allocations and attributes that Blazar adds. `undefined` = not kept: too many or too long, or
   * decided by an older version.
   */
  readonly reservations?: readonly Reservation[] | undefined;
}

const MOST_RESERVATIONS = 20;
/** All reservations together, as JSON in UTF-8. */
const MOST_BYTES = 4096;

/** Attributes that Blazar adds to the reservations of a lease; users cannot request them. */
const ADDED: ReadonlySet<string> = new Set([
  'id',
  'lease_id',
  'resource_id',
  'allocations',
  'status',
  'created_at',
  'updated_at',
  'missing_resources',
  'resources_changed',
]);

/** An update need not repeat unchanged values. `undefined` = a date is missing. */
export function requestedLeaseOf({
  lease,
  current_lease,
  currentLease,
}: DecidedRequest): RequestedLease | undefined {
  const current = current_lease ?? currentLease ?? {};
  const start = leaseStart(lease) ?? leaseStart(current);
  const end = leaseEnd(lease) ?? leaseEnd(current);
  return start === undefined || end === undefined
    ? undefined
    : { start, end, reservations: kept(reservationsAfterUpdate(current, lease)) };
}

/** All or nothing: a part of the reservations could be judged differently. */
function kept(reservations: readonly Reservation[]): readonly Reservation[] | undefined {
  if (reservations.length > MOST_RESERVATIONS) {
    return undefined;
  }
  const asked = reservations.map(
    (reservation): Reservation =>
      Object.fromEntries(
        Object.entries(reservation).filter(
          ([name, value]) => !ADDED.has(name) && value !== undefined && value !== null,
        ),
      ),
  );
  const isShort =
    leastJsonLength(asked, MOST_BYTES) <= MOST_BYTES &&
    Buffer.byteLength(JSON.stringify(asked)) <= MOST_BYTES;
  return isShort ? asked : undefined;
}
