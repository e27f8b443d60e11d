/** Asks policies in their order until all agree with the request as it stands. */
import { FAILED, type PolicyOutcome, type Refusal, type State } from '../review.ts';
import { type Call, isChanged, type PolicyAsking } from './policy-asking.ts';
import type { PolicyRunner } from './policy-runner.ts';

/** How often a policy is asked about one request. Policies that need more never agree. */
export const MAX_PASSES = 5;

export interface ChainedPolicy {
  readonly runner: PolicyRunner;
  readonly audit: boolean;
  /** Records launches: it is asked when all others agree. */
  readonly charges: boolean;
  /** It judges what the user asked for, and not what later policies make of it. */
  readonly isAskedOnce: boolean;
}

export interface Passed {
  state: State;
  refusal: (Refusal & { readonly policy: string }) | undefined;
  /** By policy, in order. */
  readonly outcomes: Map<string, PolicyOutcome | Promise<PolicyOutcome>>;
  readonly notes: string[];
  readonly mismatches: string[];
}

/**
 * Asks again those that were asked before another one changed the request, until nothing changes: what an earlier policy makes sure of holds for the
 * answer of all.
 */
export async function askUntilAgreed(
  asking: PolicyAsking,
  policies: readonly ChainedPolicy[],
  passed: Passed,
  call: Call,
): Promise<void> {
  // The request as each policy left it: idempotent as they are, they would leave it so again.
  const left = new Map<ChainedPolicy, State>();
  const agrees = (policy: ChainedPolicy): boolean => {
    const own = left.get(policy);
    return own !== undefined && (policy.isAskedOnce || !isChanged(passed.state, own));
  };
  for (let round = 1; round <= MAX_PASSES; round += 1) {
    const changed: string[] = [];
    for (const policy of policies) {
      const { runner, audit } = policy;
      if (audit && round === 1) {
        // The others do not wait for it: one that hangs must not take their time.
        const tried = asking.tryOut(runner, passed.state, call);
        tried.catch(() => {});
        passed.outcomes.set(runner.name, tried);
      } else if (!audit && passed.refusal === undefined && !agrees(policy)) {
        const before = passed.state;
        await ask(asking, runner, passed, call);
        left.set(policy, passed.state);
        changed.push(...(isChanged(passed.state, before) ? [runner.name] : []));
      }
    }
    if (passed.refusal !== undefined || changed.length === 0) {
      return;
    }
    const isAgreed = policies.every((one) => one.audit || agrees(one));
    if (round === MAX_PASSES && !isAgreed) {
      disagree(asking, changed, passed, call);
    }
  }
}

async function ask(asking: PolicyAsking, runner: PolicyRunner, passed: Passed, call: Call): Promise<void> {
  const { name } = runner;
  const outcome = await asking.enforce(runner, passed.state, call);
  const earlier = passed.outcomes.get(name);
  passed.outcomes.set(name, combined(await earlier, outcome.report));
  if (outcome.invalid !== undefined && !passed.mismatches.includes(name)) {
    passed.mismatches.push(name);
    passed.notes.push(...(outcome.invalid.isEnforced ? [] : [outcome.invalid.message]));
  }
  passed.refusal = outcome.refusal && { ...outcome.refusal, policy: name };
  passed.state = outcome.state;
}

/** What one makes sure of, another one takes away: nobody knows what would hold. */
function disagree(asking: PolicyAsking, names: readonly string[], passed: Passed, call: Call): void {
  for (const [name, outcome] of passed.outcomes) {
    if (names.includes(name) && !(outcome instanceof Promise)) {
      passed.outcomes.set(name, { ...outcome, ...FAILED, allowed: false, changed: false });
    }
  }
  const [policy = ''] = names;
  passed.refusal = { ...FAILED, policy };
  asking.logFailure(policy, disagreement(names), passed.state, call);
}

/** For the log: `names` are those that still changed the request in the last round. */
function disagreement(names: readonly string[]): Error {
  return new Error(
    `the policies do not agree: asked ${MAX_PASSES} times, ${names.join(' and ')} still changed what another policy, or the policy itself, had set`,
  );
}

/** The outcome of a policy that was asked again. */
function combined(earlier: PolicyOutcome | undefined, latest: PolicyOutcome): PolicyOutcome {
  return earlier === undefined
    ? latest
    : {
        ...latest,
        changed: latest.allowed && (earlier.changed || latest.changed),
        milliseconds: earlier.milliseconds + latest.milliseconds,
      };
}
