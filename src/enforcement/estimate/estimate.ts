/** What a lease would cost and whether it would be allowed; for one that would be refused, what would be allowed instead. */
import { LedgerUnavailableError } from '../../errors.ts';
import type { RequestNames } from '../../filter/request-names.ts';
import { type Decision, reject } from '../../filter/verdict.ts';
import type { CreateRequest, Lease } from '../../lease/lease.ts';
import type { Claimant } from '../../ledger/claimant.ts';
import { foreseenCharges } from '../../ledger/foreseen.ts';
import type { Prospect } from '../../ledger/prospect.ts';
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
  const decision = await trial.explain(lease);
  const prospect = await foreseenIn(trial, decision.lease);
  const charges = prospect === undefined ? [] : foreseenCharges(prospect);
  const result = decision.allowed ? NOT_SEARCHED : await instead(trial, decision, prospect);
  return { decision: named(decision), charges, ...result };
}

const NOT_SEARCHED = { suggestions: [], searched: null };

/** Nothing if the ledger does not answer: the decision says so already. */
async function foreseenIn(trial: Trial, lease: Lease): Promise<Prospect | undefined> {
  try {
    return await trial.foresee(lease);
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      return undefined;
    }
    throw thrown;
  }
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
