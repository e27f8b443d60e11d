/** Policies and permissions of a cluster, for one configuration. */
import type { Wait } from '../../../base/deadline.ts';
import {
  type Account,
  type AccountPolicies,
  type PolicySource,
  SourceUnavailableError,
} from '../../policies/access.ts';
import { PolicySet, type PolicySetOptions } from '../../policies/scheduling-policies.ts';
import { CLOCK, elapsed } from '../api/timing.ts';
import type { Following, KnownPolicies, LivePolicies, SourceHealth, UsePermissions } from './contract.ts';

/** Policies may be added while permissions are requested, but not every time. */
const MAX_PASSES = 10;

export interface ClusterSourceOptions extends PolicySetOptions {
  readonly policies: LivePolicies;
  readonly permissions: UsePermissions;
  /** `cluster_stale_after`, in seconds. */
  readonly staleAfter: number;
  /** In milliseconds; must not go back. Default: `elapsed`. */
  readonly now?: () => number;
}

/**
 * Policies and rights as the cluster has them. Refuses (`SourceUnavailableError`) before the first list, and when it is stale.
 * Configurations share policies and permissions; what they make of them is their own.
 */
export class ClusterSource implements PolicySource {
  readonly policies: LivePolicies;
  readonly #permissions: UsePermissions;
  readonly #staleAfter: number;
  readonly #options: PolicySetOptions;
  readonly #now: () => number;
  #known: KnownPolicies | undefined;
  #set = new PolicySet([]);
  /** By the answer of the permissions, the same array until it changes. */
  #chosen = new WeakMap<readonly string[], AccountPolicies>();

  constructor({ policies, permissions, staleAfter, now, ...options }: ClusterSourceOptions) {
    this.policies = policies;
    this.#permissions = permissions;
    this.#staleAfter = staleAfter;
    this.#now = now ?? elapsed;
    this.#options = options;
  }

  policiesOf(account: Account, wait?: Wait): AccountPolicies | Promise<AccountPolicies> {
    const unavailable = this.#unavailable();
    if (unavailable !== undefined) {
      return Promise.reject(unavailable);
    }
    const { names } = this.policies.known;
    const usable = this.#permissions.usable(account, names, wait);
    return usable instanceof Promise ? this.#answered(usable, names, account, wait) : this.#chosenOf(usable);
  }

  get health(): SourceHealth {
    const { following } = this.policies;
    const age = ageOf(following, this.#now());
    if (age === undefined) {
      return { state: 'starting', ageSeconds: undefined, problem: following.problem };
    }
    const { problem } = following;
    if (age > this.#staleAfter) {
      return { state: 'stale', ageSeconds: age, problem: problem ?? 'the API server says nothing' };
    }
    return problem === undefined
      ? { state: 'current', ageSeconds: 0, problem }
      : { state: 'behind', ageSeconds: age, problem };
  }

  #unavailable(): SourceUnavailableError | undefined {
    const { following } = this.policies;
    const age = ageOf(following, this.#now());
    const why = following.problem === undefined ? '' : `: ${following.problem}`;
    if (age === undefined) {
      return new SourceUnavailableError(`the policies of the cluster are not known yet${why}`);
    }
    return age > this.#staleAfter
      ? new SourceUnavailableError(`the policies of the cluster are ${Math.floor(age)} s old${why}`)
      : undefined;
  }

  /** The account may also need to satisfy a policy that was added while permissions were requested. */
  async #answered(
    asked: Promise<readonly string[]>,
    askedNames: readonly string[],
    account: Account,
    wait: Wait | undefined,
  ): Promise<AccountPolicies> {
    let [answer, names]: [readonly string[] | Promise<readonly string[]>, readonly string[]] = [
      asked,
      askedNames,
    ];
    for (let round = 0; round < MAX_PASSES; round += 1) {
      const usable = await answer;
      const unavailable = this.#unavailable();
      if (unavailable !== undefined) {
        throw unavailable;
      }
      const now = this.policies.known.names;
      if (now === names || isPartOf(now, names)) {
        return this.#chosenOf(usable);
      }
      names = now;
      answer = this.#permissions.usable(account, names, wait);
    }
    throw new SourceUnavailableError('policies are added faster than the API server says who may use them');
  }

  #chosenOf(usable: readonly string[]): AccountPolicies {
    const { known } = this.policies;
    if (known !== this.#known) {
      this.#known = known;
      this.#set = new PolicySet(known.policies, this.#options, known.invalid);
      this.#chosen = new WeakMap();
    }
    const before = this.#chosen.get(usable);
    if (before !== undefined) {
      return before;
    }
    const chosen = this.#set.chosen(usable);
    this.#chosen.set(usable, chosen);
    return chosen;
  }
}

/** In seconds; `undefined` = no data yet. */
function ageOf({ hasList, currentAt }: Following, now: number): number | undefined {
  return hasList && currentAt !== undefined ? Math.max(0, now - currentAt) / 1000 : undefined;
}

function isPartOf(names: readonly string[], all: readonly string[]): boolean {
  const known = new Set(all);
  return names.every((name) => known.has(name));
}

const LOOK_MS = 50;

/**
 * Waits for the first list of policies, until the time is over or `signal` fires. Resolves to whether it is
 * there. Keeps no process alive.
 */
export async function isListedWithin(
  policies: LivePolicies,
  milliseconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const until = performance.now() + milliseconds;
  while (!policies.following.hasList) {
    if (performance.now() >= until) {
      return false;
    }
    await CLOCK.sleep(LOOK_MS, signal);
    if (signal.aborted) {
      return false;
    }
  }
  return true;
}
