/** The events, as CloudEvents 1.0 in structured JSON mode. Source: CloudEvents 1.0.2, "Context Attributes". */
import { formatUnitHours } from '../../filter/claim.ts';
import { formatInstant, secondText } from '../../lease/dates.ts';
import type { BudgetRequest, TakenStep } from '../../ledger/budgets/requests/rows.ts';
import { budgetAmountText } from '../../ledger/budgets/terms.ts';
import type { Crossing } from '../../ledger/outbox/crossings.ts';
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';
import type { EventKind } from './options.ts';

interface Named {
  readonly id: string | null;
  readonly name?: string | null | undefined;
  readonly domain?: string | null | undefined;
}

interface Facts {
  readonly kind: EventKind;
  readonly source: string;
  readonly id: string;
  /** Segments of the subject: `projects`, an id. */
  readonly subject: readonly string[];
  /** ISO 8601. */
  readonly time: string;
  readonly data: object;
}

/** Prefix of event types. */
export const PREFIX = 'io.blazar-enforcement.';
/** In characters. OpenStack's ids and names are shorter; reasons are already cut. */
const LONGEST = 2000;

function cloudEvent({ kind, source, id, subject, time, data }: Facts): string {
  return JSON.stringify({
    specversion: '1.0',
    id,
    source,
    type: `${PREFIX}${kind}`,
    // Attributes have no control characters, but a malicious client's ids may.
    subject: subject.map(encoded).join('/'),
    time,
    datacontenttype: 'application/json',
    data,
  });
}

function encoded(part: string): string {
  return encodeURIComponent(part.replace(/\p{Surrogate}/gu, '\ufffd'));
}

/** `budget.threshold` */
export function thresholdEvent(source: string, id: string, crossing: Crossing): string {
  const { budget, threshold, before, taken, at, cause, who, requestId } = crossing;
  const { projectId, userId, amount, validFrom, validUntil } = budget;
  const time = formatInstant(at);
  return cloudEvent({
    kind: 'budget.threshold',
    source,
    id,
    time,
    subject: ['projects', projectId, ...(userId === null ? [] : ['users', userId])],
    data: {
      threshold,
      project: named({ id: projectId }),
      user: userId === null ? null : named({ id: userId }),
      budget: {
        from: secondText(validFrom),
        until: secondText(validUntil),
        amount: formatUnitHours(amount, 'down'),
        taken: formatUnitHours(taken, 'up'),
        left: formatUnitHours(amount - taken, 'down'),
      },
      taken_before: formatUnitHours(before, 'up'),
      cause,
      changed_by: bounded(who),
      request_id: requestId === null ? null : bounded(requestId),
    },
  });
}

/** `budget.request` */
export function requestEvent(source: string, id: string, request: BudgetRequest): string {
  const { projectId, userId, amount, validUntil, reason, state, asked, endorsed, settled, granted } = request;
  const { at } = settled ?? endorsed ?? asked;
  return cloudEvent({
    kind: 'budget.request',
    source,
    id,
    time: formatInstant(at),
    subject: ['projects', projectId, ...(userId === null ? [] : ['users', userId])],
    data: {
      request: String(request.id),
      state,
      project: named({ id: projectId }),
      user: userId === null ? null : named({ id: userId }),
      amount: budgetAmountText(amount),
      until: secondText(validUntil),
      reason: bounded(reason),
      asked: { at: formatInstant(asked.at), by: bounded(asked.who) },
      endorsed: endorsed && takenStep(endorsed),
      settled: settled && takenStep(settled),
      granted: granted && {
        amount: budgetAmountText(granted.amount),
        until: secondText(granted.validUntil),
        budget: String(granted.budget),
      },
    },
  });
}

function takenStep({ at, who, reason }: TakenStep) {
  return { at: formatInstant(at), by: bounded(who), reason: reason === null ? null : bounded(reason) };
}

/** A refusal of a lease, as in the decision log: texts are of bounded length. */
export interface Refused {
  /** ISO 8601. */
  readonly time: string;
  readonly request_id: string;
  readonly operation: string;
  readonly outcome: string;
  readonly message: string | null;
  readonly filter: string | null;
  readonly project_id: string | null;
  readonly project_name?: string | null | undefined;
  readonly project_domain?: string | null | undefined;
  readonly user_id: string | null;
  readonly user_name?: string | null | undefined;
  readonly user_domain?: string | null | undefined;
  readonly lease_id: string | null;
  readonly lease_name: string | null;
}

/** One refusal, or several. */
export interface Refusals {
  readonly last: Refused;
  /** Whether they differ in project, user or filter: the event then has only their number. */
  readonly isMixed: boolean;
  readonly count: number;
  /** ISO 8601. */
  readonly firstAt: string;
}

/** `lease.refused` */
export function refusedEvent(source: string, id: string, refusals: Refusals): string {
  const { last, isMixed, count, firstAt } = refusals;
  const { project_id, user_id, filter, time, message } = last;
  const project = { id: project_id, name: last.project_name, domain: last.project_domain };
  const user = { id: user_id, name: last.user_name, domain: last.user_domain };
  return cloudEvent({
    kind: 'lease.refused',
    source,
    id,
    time,
    subject: isMixed || project_id === null ? ['projects'] : ['projects', project_id],
    data: {
      project: isMixed || project_id === null ? null : named(project),
      user: isMixed || user_id === null ? null : named(user),
      filter: isMixed ? null : filter,
      count,
      first_at: firstAt,
      last_at: time,
      last: isMixed
        ? null
        : {
            request_id: bounded(last.request_id),
            operation: last.operation,
            outcome: last.outcome,
            message: message === null ? null : bounded(message),
            lease: { id: last.lease_id, name: last.lease_name },
          },
    },
  });
}

export interface Comparison {
  readonly who: string;
  readonly reason: string | null;
  readonly at: Date;
  readonly corrections: Corrections;
}

/** `ledger.corrected` */
export function correctedEvent(source: string, id: string, comparison: Comparison): string {
  const { who, reason, at, corrections } = comparison;
  return cloudEvent({
    kind: 'ledger.corrected',
    source,
    id,
    subject: ['ledger'],
    time: at.toISOString(),
    data: {
      changed_by: bounded(who),
      reason: reason === null ? null : bounded(reason),
      ...corrections.counts,
      leases: corrections.listed.map(correctedLease),
      leases_left_out: corrections.leftOut,
    },
  });
}

function correctedLease({ outcome, leaseId, name, projectId, userId, start, end, note }: Reconciled) {
  return {
    outcome,
    id: leaseId === null ? null : bounded(leaseId),
    name: bounded(name),
    project: projectId === null ? null : named({ id: projectId }),
    user: userId === null ? null : named({ id: userId }),
    start: formatInstant(start),
    end: formatInstant(end),
    reason: note === null ? null : bounded(note),
  };
}

export interface FoundBypasses {
  readonly at: Date;
  readonly records: readonly FoundBypass[];
}

/** As in the decision log. */
interface FoundBypass {
  readonly request_id: string;
  readonly project_id: string | null;
  readonly user_id: string | null;
  readonly lease_name: string | null;
  readonly message: string | null;
  readonly filters: readonly { readonly filter: string }[];
}

/** Maximum number of listed clusters. */
const MOST_CLUSTERS = 50;

/** `skypilot.bypassed` */
export function bypassedEvent(source: string, id: string, { at, records }: FoundBypasses): string {
  const listed = records.slice(0, MOST_CLUSTERS);
  return cloudEvent({
    kind: 'skypilot.bypassed',
    source,
    id,
    subject: ['skypilot'],
    time: at.toISOString(),
    data: {
      count: records.length,
      clusters: listed.map(({ request_id, project_id, user_id, lease_name, message, filters }) => ({
        request_id,
        workspace: project_id,
        name: lease_name,
        user: user_id === null ? null : named({ id: user_id }),
        policies: filters.map(({ filter }) => bounded(filter)),
        message: message === null ? null : bounded(message),
      })),
      clusters_left_out: records.length - listed.length,
    },
  });
}

/** Projects and users as in the API. */
function named({ id, name = null, domain = null }: Named) {
  return { id: id === null ? null : bounded(id), name, domain };
}

function bounded(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** Maximum number of listed leases. */
const MOST_LISTED = 50;

/** The changes of a reconciliation. A lease that only got its id does not count. */
export class Corrections {
  readonly counts = { released: 0, recorded: 0, corrected: 0 };
  /** The first of them. */
  readonly listed: Reconciled[] = [];

  add(one: Reconciled): void {
    const { outcome } = one;
    if (outcome !== 'released' && outcome !== 'recorded' && outcome !== 'corrected') {
      return;
    }
    this.counts[outcome] += 1;
    if (this.listed.length < MOST_LISTED) {
      this.listed.push(one);
    }
  }

  get isEmpty(): boolean {
    return this.listed.length === 0;
  }

  get leftOut(): number {
    const { released, recorded, corrected } = this.counts;
    return released + recorded + corrected - this.listed.length;
  }
}
