/** Estimates a lease for a caller: what a member sees of it, and the form of the API. */

import type { Deadline } from '../../base/deadline.ts';
import { yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import { decisionRecord } from '../../decisions/lease-record.ts';
import { memberView } from '../../decisions/store/member-view.ts';
import { sectionOf } from '../../enforcement/configuration.ts';
import type { Estimate, EstimatedCharge } from '../../enforcement/estimate/contract.ts';
import type { Named } from '../../filter/call.ts';
import { type Amount, formatUnitHours } from '../../filter/claim.ts';
import { toInstant } from '../../lease/dates.ts';
import { keystoneSection } from '../../openstack/options.ts';
import type { Generation } from '../configuration/generation.ts';
import { asSentToBlazar, requestFor, type WantedLease } from './wanted-lease.ts';

interface EstimateAsked {
  readonly generation: Generation;
  readonly requestId: string;
  readonly projectId: string;
  /** For whom the lease would be. */
  readonly userId: string;
  readonly wanted: WantedLease;
  readonly deadline: Deadline;
  /** Whether a member asks, who does not see filters that are only tried. Default true. */
  readonly forMember?: boolean;
}

export type ShownEstimate = Awaited<ReturnType<typeof estimateLease>>;
export type ShownCharge = ShownEstimate['charges'][number];

/**
 * In the form of the API: asks all filters about a lease, without the effects of a decision; nothing is recorded. It waits as other requests
 * of users do, and takes no place of a decision. Throws `UnusableLeaseError` and `InvalidRequestError`.
 */
export async function estimateLease(asked: EstimateAsked) {
  const { generation, requestId, projectId, userId, wanted, deadline, forMember = true } = asked;
  const { enforcement, configuration, number } = generation;
  const { auth_url = null, region_name = null } = sectionOf(configuration, keystoneSection);
  const context = { user_id: userId, project_id: projectId, auth_url, region_name };
  const started = performance.now();
  const now = toInstant(enforcement.clock.now()) ?? 0n;
  const request = requestFor(wanted, context, now);
  // As for Blazar, which cannot take a changed lease.
  const how = { deadline, requestId, acceptsChanges: false };
  const estimate = await enforcement.estimate(request, how);
  const milliseconds = performance.now() - started;
  await yieldToEventLoop();
  const { decision } = estimate;
  const record = decisionRecord(decision, { requestId, generation: number, milliseconds, request });
  const { allowed, outcome, filter, message, warnings, filters } = forMember ? memberView(record) : record;
  const { charges, suggestions, searched } = forMember ? memberEstimate(estimate) : estimate;
  return {
    project: account(projectId, decision.names?.project),
    user: account(userId, decision.names?.user),
    ...{ allowed, outcome, filter, message, warnings, filters },
    charges: charges.map(shown),
    suggestions: suggestions.map(({ change, text, lease, charges: its }) => ({
      change,
      text,
      /** As Blazar takes it. */
      lease: asSentToBlazar(wanted, request, lease),
      charges: its.map(shown),
    })),
    searched,
    /** What an estimate cannot know. */
    notes: notesOn(charges),
  };
}

function account(id: string, named: Named | undefined) {
  return { id, name: named?.name ?? null, domain: named?.domain || null };
}

function shown({ filter, account: name, kind, amount, precision, limit, taken, left }: EstimatedCharge) {
  return {
    ...{ filter, account: name, kind, precision },
    amount: chargeText(kind, amount),
    limit: limit === null ? null : chargeText(kind, limit, 'down'),
    taken: chargeText(kind, taken),
    left: left === null ? null : chargeText(kind, left, 'down'),
  };
}

/** Usage in unit-hours; what is held, such as leases, as a number. */
export function chargeText(kind: EstimatedCharge['kind'], value: Amount, rounding: 'up' | 'down' = 'up') {
  return kind === 'usage' ? formatUnitHours(value, rounding) : String(value);
}

const NOT_CHECKED = 'Whether Blazar has resources that are free then was not checked.';
const AT_MOST =
  'How many hosts the lease gets, and which, is decided when it is created: it costs at most this.';
const ABOUT =
  'Which hosts the lease gets is decided when it is created: it may cost more or less than this, since hosts have different rates.';

function notesOn(charges: readonly EstimatedCharge[]): string[] {
  const has = (precision: EstimatedCharge['precision']) => charges.some((one) => one.precision === precision);
  return [...(has('at-most') ? [AT_MOST] : []), ...(has('about') ? [ABOUT] : []), NOT_CHECKED];
}

export function memberEstimate(estimate: Estimate): Estimate {
  const { decision, charges, suggestions } = estimate;
  const tried = new Set(decision.outcomes.filter(({ audit }) => audit).map(({ filter }) => filter));
  const seen = (all: readonly EstimatedCharge[]) => all.filter(({ filter }) => !tried.has(filter));
  return {
    ...estimate,
    decision: {
      ...decision,
      warnings: [],
      outcomes: decision.outcomes
        .filter(({ audit }) => !audit)
        .map((one) => (one.onError ? { ...one, onError: false, message: null } : one)),
    },
    charges: seen(charges),
    suggestions: suggestions.map((one) => ({ ...one, charges: seen(one.charges) })),
  };
}
