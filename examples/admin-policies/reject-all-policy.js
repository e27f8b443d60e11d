import { AdminPolicy, PolicyRejected } from 'blazar-enforcement/skypilot';

/** Rejects every request: the smallest policy. */
export class RejectAllPolicy extends AdminPolicy {
  /** @returns {never} */
  validateAndMutate() {
    throw new PolicyRejected('No requests are accepted at the moment.');
  }
}
