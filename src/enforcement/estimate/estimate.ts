/** What a lease would cost and whether it would be allowed; for one that would be refused, what would be allowed instead. */

import { LedgerUnavailableError } from '../../base/errors.ts';
import { yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import type { RequestNames } from '../../filter/request-names.ts';
import { type Decision, reject } from '../../filter/verdict.ts';
import type { CreateRequest, Lease } from '../../lease/lease.ts';
import type { Claimant } from '../../ledger/ledger-request.ts';
import type { LeasePreview } from '../../ledger/transactions/preview.ts';
import { previewedCharges } from '../../ledger/transactions/previewed-charges.ts';
import { failureMessage } from '../chain/messages.ts';
import type { Estimate } from './contract.ts';
import { instead } from './instead.ts';
import { type EstimateOptions, type EstimateParts, Trial } from './trial.ts';

/** `request`: one that was parsed. */
export async function estimate(
  parts: EstimateParts,
  request: CreateRequest,
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
  const foreseen = await previewedIn(trial, explained.lease);
  const broken = before ?? (foreseen instanceof LedgerUnavailableError ? foreseen : undefined);
  const decision = broken === undefined ? explained : unrecorded(explained, parts.claimants, broken);
  const preview = foreseen instanceof LedgerUnavailableError ? undefined : foreseen;
  const charges = preview === undefined ? [] : previewedCharges(preview);
  await yieldToEventLoop();
  const result = decision.allowed ? NOT_SEARCHED : await instead(trial, decision, preview);
  return { decision: named(decision), charges, ...result };
}

const NOT_SEARCHED = { suggestions: [], searched: null };

/** The error if the ledger does not answer. */
async function previewedIn(
  trial: Trial,
  lease: Lease,
): Promise<LeasePreview | LedgerUnavailableError | undefined> {
  try {
    return await trial.preview(lease);
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return thrown;
    }
    throw thrown;
  }
}

/** What every filter allows is refused all the same when it cannot be recorded: by the first enforced filter with a ledger, as a commit would be. */
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

/** A filter that throws has failed in the decision already. */
function claimingNothingOnFailure(claimant: Claimant): Claimant {
  return {
    ...claimant,
    claims(proposal, standing) {
      try {
        return claimant.claims(proposal, standing);
      } catch {
        return reject('failed');
      }
    },
  };
}
