/**
 * What a lease or a change of one would cost and whether it would be allowed; if not, what would be allowed
 * instead.
 */

import { LedgerUnavailableError } from '../../base/errors.ts';
import { yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import { type Decision, type RequestNames, reject } from '../../filter/verdict.ts';
import { type Instant, leaseEnd, leaseStart } from '../../lease/dates.ts';
import type { CreateRequest, Lease, UpdateRequest } from '../../lease/lease.ts';
import type { Claimant } from '../../ledger/ledger-request.ts';
import type { LeasePreview } from '../../ledger/transactions/preview.ts';
import { fittingTimes, previewedCharges } from '../../ledger/transactions/previewed-charges.ts';
import { failureMessage } from '../chain/messages.ts';
import { type Candidate, halves, NO_TIMES, type RefusedLease, search } from './search.ts';
import {
  type EstimateOptions,
  type EstimateParts,
  orUnavailable,
  Trial,
  TrialFailedError,
  TrialOverError,
} from './trial.ts';
import { type Estimate, LATEST, SHORTEST, type Suggestion } from './ways.ts';

/** `request`: already parsed. */
export async function estimate(
  parts: EstimateParts,
  request: CreateRequest | UpdateRequest,
  options: EstimateOptions,
  names: RequestNames | undefined,
): Promise<Estimate> {
  const claimants = parts.claimants.map(claimingNothingOnFailure);
  const trial = new Trial({ ...parts, claimants }, request, options, names);
  const { lease } = request;
  const exemption = trial.exemption(lease);
  const named = (decision: Decision) => (names === undefined ? decision : { ...decision, names });
  if (exemption !== undefined) {
    return { decision: named(exemption), charges: [], suggestions: [], searched: null };
  }
  const before = await trial.whyNotRecorded();
  await yieldToEventLoop();
  const explained = await trial.explain(lease);
  await yieldToEventLoop();
  const previewed = await orUnavailable(() => trial.preview(explained.lease));
  const broken = before ?? (previewed instanceof LedgerUnavailableError ? previewed : undefined);
  const decision = broken === undefined ? explained : unrecorded(explained, parts.claimants, broken);
  const preview = previewed instanceof LedgerUnavailableError ? undefined : previewed;
  const charges = preview === undefined ? [] : previewedCharges(preview);
  await yieldToEventLoop();
  const refused = refusedLease(request, decision.lease, parts.now);
  const result = decision.allowed ? NOT_SEARCHED : await instead(trial, decision, preview, refused);
  return { decision: named(decision), charges, ...result };
}

const NOT_SEARCHED = { suggestions: [], searched: null };

/**
 * An allowed lease is refused if it cannot be recorded: by the first enforced filter with a ledger, as in a
 * commit.
 */
function unrecorded(
  decision: Decision,
  claimants: readonly Claimant[],
  thrown: LedgerUnavailableError,
): Decision {
  const name = claimants.find(({ audit }) => !audit)?.name;
  if (!decision.allowed || name === undefined) {
    return decision;
  }
  const message = failureMessage(thrown);
  const outcomes = decision.outcomes.map((one) =>
    one.filter === name ? { ...one, allowed: false, failed: true, onError: false, message } : one,
  );
  return { ...decision, allowed: false, failed: true, filter: name, message, outcomes };
}

/** A filter that throws has already failed in the decision. */
function claimingNothingOnFailure(claimant: Claimant): Claimant {
  return {
    ...claimant,
    claims(proposal, state) {
      try {
        return claimant.claims(proposal, state);
      } catch {
        return reject('failed');
      }
    },
  };
}

type Instead = Pick<Estimate, 'suggestions' | 'searched'>;

/** Adds the dates that a change omits. */
function refusedLease(request: CreateRequest | UpdateRequest, lease: Lease, now: Instant): RefusedLease {
  if (!('currentLease' in request)) {
    return { lease, current: undefined, now };
  }
  const { currentLease: current } = request;
  const { start_date, end_date, end_time } = current;
  const dates = {
    ...(leaseStart(lease) === undefined && start_date !== undefined && { start_date }),
    ...(leaseEnd(lease) === undefined && { end_time, ...(end_date !== undefined && { end_date }) }),
  };
  return { lease: { ...lease, ...dates }, current, now };
}

const CHANGES = ['shorter', 'smaller', 'later'] as const;

const FAILED = 'A filter could not decide, so nothing else was looked for.';
const LOOKED = `Looked for the nearest lease that is shorter (at least ${SHORTEST} minutes, or less if less was asked for), smaller (not below min, and at least 1) or later (by up to ${LATEST} days).`;

/**
 * All suggestions were allowed by every filter. `preview`: of the refused lease; `undefined` = there is no
 * ledger.
 */
async function instead(
  trial: Trial,
  decision: Decision,
  preview: LeasePreview | undefined,
  refused: RefusedLease,
): Promise<Instead> {
  const { outcomes } = decision;
  const enforced = outcomes.filter(({ audit }) => !audit);
  if (decision.failed || enforced.some(({ failed }) => failed)) {
    return { suggestions: [], searched: FAILED };
  }
  const refusers = new Set(enforced.filter(({ allowed }) => !allowed).map(({ filter }) => filter));
  if (decision.filter !== null) {
    refusers.add(decision.filter);
  }
  const times = preview === undefined ? NO_TIMES : fittingTimes(preview);
  const elsewhere = [...refusers].filter((name) => trial.isElsewhere(name));
  const suggestions: Suggestion[] = [];
  const said: string[] = [];
  try {
    if (elsewhere.length === refusers.size) {
      said.push(
        `${elsewhere.join(', ')} calls another service: it was asked only about half the time, and about half the resources.`,
      );
      await confirm(trial, halves(refused, times), suggestions, said);
    } else {
      const { candidates, isCutShort } = await search(trial, refused, times, refusers);
      said.push(LOOKED, ...(isCutShort ? ['The search ended before it was complete.'] : []));
      const missing = CHANGES.filter((change) => !candidates.some((one) => one.change === change));
      said.push(...missing.map((change) => `Found none that is ${change}.`));
      if (missing.length === CHANGES.length) {
        said.push(
          `Looked for two of these changes at once${candidates.length > 0 ? '' : ', and found none'}.`,
        );
      }
      if (trial.isElsewhere()) {
        await confirm(trial, candidates, suggestions, said);
      } else {
        suggestions.push(...candidates.map((one) => suggestionOf(one, one.preview)));
      }
    }
  } catch (thrown) {
    if (thrown instanceof TrialFailedError || thrown instanceof LedgerUnavailableError) {
      said.push('A filter failed meanwhile.');
    } else if (thrown instanceof TrialOverError) {
      said.push('The time limit was reached before the search was complete.');
    } else {
      throw thrown;
    }
  }
  return { suggestions, searched: said.join(' ') };
}

/**
 * Adds those that every filter allows, including those that call services. Rereads the ledger: the search may
 * be old.
 */
async function confirm(
  trial: Trial,
  candidates: readonly Candidate[],
  suggestions: Suggestion[],
  said: string[],
): Promise<void> {
  for (const [index, candidate] of candidates.entries()) {
    const { lease, change } = candidate;
    if (index === 0) {
      trial.refresh(lease);
    }
    const tried = await trial.askAll(lease);
    if (tried === undefined) {
      const rest = candidates.slice(index).map((one) => `a ${inWords(one.change)} one`);
      said.push(`Another service was not asked about ${rest.join(' and ')}: it was asked often enough.`);
      return;
    }
    if (tried.allowed) {
      suggestions.push(suggestionOf(candidate, tried.preview));
    } else {
      said.push(`One that is ${inWords(change)} was refused in the end.`);
    }
  }
}

function inWords(change: Candidate['change']): string {
  return change.replace('-', ' and ');
}

function suggestionOf({ change, lease, text }: Candidate, preview: LeasePreview | undefined): Suggestion {
  return { change, lease, text, charges: preview === undefined ? [] : previewedCharges(preview) };
}
