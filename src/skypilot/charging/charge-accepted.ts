/** Charges a launch that all policies have accepted. */
import { type Deadline, inTime } from '../../base/deadline.ts';
import { FAILED, type PolicyOutcome, type Refusal } from '../review.ts';
import type { OpenLaunchLedger } from './open-launch-ledger.ts';

/** Why a launch is refused although all policies have accepted it. */
export interface NotCharged {
  readonly policy: string | null;
  /** `undefined` = none, because only policies that are not enforced would have charged it. */
  readonly refusal: Refusal | undefined;
  /** What the ledger could not do. */
  readonly thrown?: unknown;
}

/** Resolves to `undefined` if the launch is charged, or costs nothing. Never rejects. */
export async function chargeAccepted(
  launches: OpenLaunchLedger,
  deadline: Deadline,
): Promise<NotCharged | undefined> {
  const { policy, binds } = launches.stakeOf(deadline);
  try {
    deadline.throwIfOver();
    const overtaken = await inTime(launches.charge(deadline), deadline);
    return overtaken && { policy: overtaken.policy, refusal: { message: overtaken.message, failed: false } };
  } catch (thrown) {
    return { policy, refusal: binds ? FAILED : undefined, thrown };
  }
}

/** The outcomes, of which that of the policy is the refusal now. */
export function withRefusal(
  outcomes: readonly PolicyOutcome[],
  policy: string | null,
  refusal: Refusal,
): PolicyOutcome[] {
  return outcomes.map((outcome) =>
    outcome.policy === policy && !outcome.audit
      ? { ...outcome, ...refusal, allowed: false, changed: false }
      : outcome,
  );
}
