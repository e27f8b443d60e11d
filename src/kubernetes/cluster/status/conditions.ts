/** What the status of a policy says. Source: Kubernetes API conventions, "Typical status properties"; meta/v1, Condition. */
import type { LivePolicy } from '../live/contract.ts';
import { shownText } from './text.ts';

export const ACCEPTED = 'Accepted';
export const ENFORCED = 'Enforced';

export interface Condition {
  readonly type: typeof ACCEPTED | typeof ENFORCED;
  readonly status: 'True' | 'False';
  readonly reason: 'Valid' | 'Invalid' | 'Enforced' | 'Audited' | 'LastGoodForm';
  readonly message: string;
  readonly observedGeneration: number;
}

/** `isAudited`: what the policy would reject becomes a warning. */
export function conditionsOf(policy: LivePolicy, isAudited: boolean): readonly Condition[] {
  const { generation: observedGeneration } = policy;
  return [
    { type: ACCEPTED, ...accepted(policy), observedGeneration },
    { type: ENFORCED, ...enforced(policy, isAudited), observedGeneration },
  ];
}

type Said = Pick<Condition, 'status' | 'reason' | 'message'>;

function accepted({ mistake }: LivePolicy): Said {
  return mistake === undefined
    ? { status: 'True', reason: 'Valid', message: 'The policy is valid.' }
    : { status: 'False', reason: 'Invalid', message: shownText(mistake) };
}

function enforced({ generation, enforcedGeneration }: LivePolicy, isAudited: boolean): Said {
  const isLastGood = enforcedGeneration !== undefined && enforcedGeneration !== generation;
  const which = isLastGood ? `Generation ${enforcedGeneration}, the last valid one,` : 'The policy';
  if (isAudited) {
    const message =
      enforcedGeneration === undefined
        ? 'The policy is in audit mode and was never valid: pods of accounts that may use it get a warning.'
        : `${which} is in audit mode: what it would reject gets a warning.`;
    return { status: 'False', reason: 'Audited', message };
  }
  if (enforcedGeneration === undefined) {
    const message = 'The policy was never valid: pods of accounts that may use it are refused.';
    return { status: 'False', reason: 'Invalid', message };
  }
  return isLastGood
    ? {
        status: 'True',
        reason: 'LastGoodForm',
        // A replica that starts knows no earlier form.
        message: `${which} is in force until the service restarts; then pods of accounts that may use the policy are refused.`,
      }
    : { status: 'True', reason: 'Enforced', message: 'The policy is in force.' };
}
