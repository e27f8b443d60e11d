/** Estimates a lease for a caller, for the API and the console, limited to what a member may see. */

import type { Deadline } from '../../base/deadline.ts';
import { yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import { decisionRecord } from '../../decisions/lease-record.ts';
import { memberView } from '../../decisions/store/member-view.ts';
import { sectionOf } from '../../enforcement/configuration.ts';
import type { Estimate, EstimatedCharge } from '../../enforcement/estimate/ways.ts';
import { chargeText } from '../../filter/claim.ts';
import { type Instant, toInstant } from '../../lease/dates.ts';
import type { CreateRequest, Lease, UpdateRequest } from '../../lease/lease.ts';
import type { RecordedLease } from '../../ledger/reports/one-lease.ts';
import { keystoneSection } from '../../openstack/options.ts';
import { accountJson } from '../api/shown.ts';
import type { Generation } from '../configuration/generation.ts';
import { changeRequest, changeTo, type LeaseChange } from './changed-lease.ts';
import { asSentToBlazar, requestFor, type WantedLease } from './wanted-lease.ts';

interface Asking {
  readonly generation: Generation;
  readonly requestId: string;
  readonly deadline: Deadline;
  /** Whether the caller is a member, who does not see filters in audit mode. Default true. */
  readonly forMember?: boolean;
}

export type ShownEstimate<Sent = object> = Awaited<ReturnType<typeof shownEstimate<Sent>>>;
export type ShownCharge = ShownEstimate['charges'][number];

/**
 * Runs all filters on a lease, without the effects of a decision; nothing is recorded. Queued like other
 * requests of users, not in the queue of decisions. `userId`: the user of the lease. Throws
 * `UnusableLeaseError` and `InvalidRequestError`.
 */
export async function estimateLease(
  asking: Asking & { readonly projectId: string; readonly userId: string; readonly wanted: WantedLease },
) {
  const { generation, projectId, userId, wanted } = asking;
  const context = { user_id: userId, project_id: projectId, ...cloudOf(generation) };
  const request = requestFor(wanted, context, filterNow(generation));
  return shownEstimate(asking, request, (lease) => asSentToBlazar(wanted, request, lease));
}

/** The same for a change of a lease in the ledger. */
export async function estimateChange(
  asking: Asking & { readonly lease: RecordedLease; readonly change: LeaseChange },
) {
  const { generation, lease, change } = asking;
  const request = changeRequest(lease, change, cloudOf(generation), filterNow(generation));
  return shownEstimate(asking, request, (suggested) => changeTo(request, suggested));
}

export function filterNow({ enforcement }: Generation): Instant {
  return toInstant(enforcement.clock.now()) ?? 0n;
}

/** Blazar's addresses in the context of a request. */
export function cloudOf({ configuration }: Generation) {
  const { auth_url = null, region_name = null } = sectionOf(configuration, keystoneSection);
  return { auth_url, region_name };
}

/** `sentAs`: a suggested lease as it is sent: to Blazar, or by a form. */
export async function shownEstimate<Sent>(
  { generation, requestId, deadline, forMember = true }: Asking,
  request: CreateRequest | UpdateRequest,
  sentAs: (lease: Lease) => Sent,
) {
  const { enforcement, number } = generation;
  const started = performance.now();
  // As for Blazar, which cannot accept a changed lease.
  const how = { deadline, requestId, acceptsChanges: false };
  const estimate = await enforcement.estimate(request, how);
  const milliseconds = performance.now() - started;
  await yieldToEventLoop();
  const { decision } = estimate;
  const record = decisionRecord(decision, { requestId, generation: number, milliseconds, request });
  const { allowed, outcome, filter, message, warnings, filters } = forMember ? memberView(record) : record;
  const { charges, suggestions, searched } = forMember ? memberEstimate(estimate) : estimate;
  const { user_id, project_id } = request.context;
  return {
    project: accountJson(project_id, decision.names?.project),
    user: accountJson(user_id, decision.names?.user),
    allowed,
    outcome,
    filter,
    message,
    warnings,
    filters,
    charges: charges.map(shown),
    suggestions: suggestions.map(({ change, text, lease, charges: its }) => ({
      change,
      text,
      lease: sentAs(lease),
      charges: its.map(shown),
    })),
    searched,
    /** What the estimate cannot check. */
    notes: 'currentLease' in request ? notesOnChange(charges) : notesOn(charges),
  };
}

function shown({ filter, account: name, kind, amount, precision, limit, taken, left }: EstimatedCharge) {
  return {
    filter,
    account: name,
    kind,
    precision,
    amount: chargeText(kind, amount),
    limit: limit === null ? null : chargeText(kind, limit, 'down'),
    taken: chargeText(kind, taken),
    left: left === null ? null : chargeText(kind, left, 'down'),
  };
}

const NOT_CHECKED = 'It was not checked whether Blazar has free resources at that time.';
const AT_MOST = 'The number of hosts is decided when the lease is created: this is the maximum cost.';
const ABOUT =
  'The hosts are chosen when the lease is created, and have different rates: it may cost more or less than this.';

function notesOn(charges: readonly EstimatedCharge[]): string[] {
  const has = (precision: EstimatedCharge['precision']) => charges.some((one) => one.precision === precision);
  return [...(has('at-most') ? [AT_MOST] : []), ...(has('about') ? [ABOUT] : []), NOT_CHECKED];
}

const CHANGE_IS_ABOUT =
  'Not everything that the cost depends on is known here, such as hosts or flavors: the change may cost more or less than this.';
const LATER = 'A refund can be used once Blazar has shown the changed lease.';

function notesOnChange(charges: readonly EstimatedCharge[]): string[] {
  return [
    ...(charges.some(({ precision }) => precision === 'about') ? [CHANGE_IS_ABOUT] : []),
    ...(charges.some(({ amount }) => amount < 0n) ? [LATER] : []),
    `${NOT_CHECKED} Only types and numbers of the reservations are known here, not their properties.`,
  ];
}

/** Without what filters in audit mode would charge. */
function memberEstimate({ decision, charges, suggestions, searched }: Estimate) {
  const tried = new Set(decision.outcomes.filter(({ audit }) => audit).map(({ filter }) => filter));
  const seen = (all: readonly EstimatedCharge[]) => all.filter(({ filter }) => !tried.has(filter));
  return {
    charges: seen(charges),
    suggestions: suggestions.map((one) => ({ ...one, charges: seen(one.charges) })),
    searched,
  };
}
