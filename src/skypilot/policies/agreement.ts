/**
 * Which policies agree with a request as it stands. One that was asked before another one changed it is asked again, until nothing changes: what
 * an earlier policy makes sure of holds for the answer of all.
 */
import type { PolicyOutcome, State } from '../review.ts';

/** How often a policy is asked about one request. Policies that need more never agree. */
export const MAX_ROUNDS = 5;

export class Agreement<Policy extends { readonly isAskedOnce: boolean }> {
  /** The request as each policy left it: idempotent as they are, they would leave it so again. */
  readonly #left = new Map<Policy, State>();

  agrees(policy: Policy, state: State): boolean {
    const left = this.#left.get(policy);
    return (
      left !== undefined &&
      (policy.isAskedOnce || (left.task === state.task && left.skypilotConfig === state.skypilotConfig))
    );
  }

  left(policy: Policy, state: State): void {
    this.#left.set(policy, state);
  }
}

/** For the log: `names` are those that still changed the request in the last round. */
export function disagreement(names: readonly string[]): Error {
  return new Error(
    `the policies do not agree: asked ${MAX_ROUNDS} times, ${names.join(' and ')} still changed what another policy, or the policy itself, had set`,
  );
}

/** The outcome of a policy that was asked again. */
export function combined(earlier: PolicyOutcome | undefined, latest: PolicyOutcome): PolicyOutcome {
  return earlier === undefined
    ? latest
    : {
        ...latest,
        changed: latest.allowed && (earlier.changed || latest.changed),
        milliseconds: earlier.milliseconds + latest.milliseconds,
      };
}
