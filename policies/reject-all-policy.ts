import { AdminPolicy, PolicyRejected } from '../src/skypilot/index.ts';

/** Rejects every request: the smallest policy. */
export class RejectAllPolicy extends AdminPolicy {
  override validateAndMutate(): never {
    throw new PolicyRejected('No requests are accepted at the moment.');
  }
}
