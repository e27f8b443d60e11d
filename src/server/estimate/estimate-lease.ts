/** Estimates a lease for a person, in the form of the API. The console asks `UsageEnforcement.estimate` itself, for its own words. */

import type { Deadline } from '../../base/deadline.ts';
import { yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import { decisionRecord } from '../../decisions/lease-record.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import { memberView } from '../../decisions/store/member-view.ts';
import { sectionOf } from '../../enforcement/configuration.ts';
import type { EstimatedCharge, Suggestion } from '../../enforcement/estimate/contract.ts';
import { formatUnitHours } from '../../filter/amount.ts';
import type { Named } from '../../filter/request-names.ts';
import { toInstant } from '../../lease/dates.ts';
import { keystoneSection } from '../../openstack/options.ts';
import type { Generation } from '../configuration/generation.ts';
import { asSentToBlazar, requestFor, type WantedLease } from './wanted-lease.ts';

export interface EstimateAsked {
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

/** In the form of the API. Usage in unit-hours; what is held, such as leases, as a number. */
export interface ShownCharge {
  readonly filter: string;
  readonly account: string;
  readonly kind: EstimatedCharge['kind'];
  readonly amount: string;
  readonly precision: EstimatedCharge['precision'];
  readonly limit: string | null;
  readonly taken: string;
  readonly left: string | null;
}

export interface ShownSuggestion {
  readonly change: Suggestion['change'];
  readonly text: string;
  /** As Blazar takes it. */
  readonly lease: WantedLease;
  readonly charges: readonly ShownCharge[];
}

export interface ShownEstimate {
  readonly project: ShownAccount;
  readonly user: ShownAccount;
  readonly allowed: boolean;
  readonly outcome: DecisionRecord['outcome'];
  readonly filter: string | null;
  readonly message: string | null;
  readonly warnings: readonly string[];
  readonly filters: DecisionRecord['filters'];
  readonly charges: readonly ShownCharge[];
  readonly suggestions: readonly ShownSuggestion[];
  readonly searched: string | null;
  /** What an estimate cannot know. */
  readonly notes: readonly string[];
}

interface ShownAccount {
  readonly id: string;
  readonly name: string | null;
  readonly domain: string | null;
}

/**
 * Asks all filters about a lease, without the effects of a decision: nothing is recorded. It waits as other requests of users do, and takes
 * no place of a decision. Throws `UnusableLeaseError` and `InvalidRequestError`.
 */
export async function estimateLease(asked: EstimateAsked): Promise<ShownEstimate> {
  const { generation, requestId, projectId, userId, wanted, deadline, forMember = true } = asked;
  const { enforcement, configuration, number } = generation;
  const { auth_url = null, region_name = null } = sectionOf(configuration, keystoneSection);
  const context = { user_id: userId, project_id: projectId, auth_url, region_name };
  const started = performance.now();
  const now = toInstant(enforcement.clock.now()) ?? 0n;
  const request = requestFor(wanted, context, now);
  // As for Blazar, which cannot take a changed lease.
  const how = { deadline, requestId, acceptsChanges: false };
  const { decision, charges, suggestions, searched } = await enforcement.estimate(request, how);
  const milliseconds = performance.now() - started;
  await yieldToEventLoop();
  const facts = { requestId, generation: number, milliseconds, request };
  const record = decisionRecord(decision, facts);
  const { allowed, outcome, filter, message, warnings, filters } = forMember ? memberView(record) : record;
  const tried = decision.outcomes.filter(({ audit }) => audit).map((one) => one.filter);
  const seen = (all: readonly EstimatedCharge[]) =>
    all.filter((one) => !forMember || !tried.includes(one.filter));
  return {
    project: account(projectId, decision.names?.project),
    user: account(userId, decision.names?.user),
    ...{ allowed, outcome, filter, message, warnings, filters },
    charges: seen(charges).map(shown),
    suggestions: suggestions.map(({ change, text, lease, charges: its }) => ({
      change,
      text,
      lease: asSentToBlazar(wanted, request, lease),
      charges: seen(its).map(shown),
    })),
    searched,
    notes: notesOn(seen(charges)),
  };
}

function account(id: string, named: Named | undefined): ShownAccount {
  return { id, name: named?.name ?? null, domain: named?.domain || null };
}

function shown({ filter, account: name, kind, amount, precision, limit, taken, left }: EstimatedCharge) {
  const text = (value: bigint, rounding: 'up' | 'down') =>
    kind === 'usage' ? formatUnitHours(value, rounding) : String(value);
  return {
    ...{ filter, account: name, kind, precision },
    amount: text(amount, 'up'),
    limit: limit === null ? null : text(limit, 'down'),
    taken: text(taken, 'up'),
    left: left === null ? null : text(left, 'down'),
  };
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
