/** For programs that check pods themselves, with the policies of a cluster. */
import { createLogger, type Logger } from '../../../base/logger.ts';
import type { Account } from '../../policies/access.ts';
import type { EffectivePolicy } from '../../policies/effective-policy.ts';
import type { PolicySetOptions } from '../../policies/scheduling-policies.ts';
import type { SourceHealth } from './contract.ts';

/** The options of `followSchedulingPolicies`, besides those for merging policies. */
export interface FollowPoliciesOptions extends PolicySetOptions {
  /**
   * A file, reread when it changes. Default: the service account of this pod. The account needs the rights to
   * list and watch scheduling policies and to create SubjectAccessReviews, and should be able to list and
   * watch roles and bindings.
   */
  readonly kubeconfig?: string;
  /** See the option `rights` of `[kubernetes]`. Default: `auto`. */
  readonly rights?: 'auto' | 'every';
  /** How long policies stay in force while they cannot be followed, in seconds. Default: 300. */
  readonly staleAfter?: number;
  /** Default: warnings and errors, on standard error. */
  readonly logger?: Logger;
}

export interface FollowedPolicies {
  /** `starting` until the first list was read. */
  readonly health: SourceHealth;
  /**
   * Waits for the first list. Resolves to whether it was read in time.
   * @param seconds Default: 10.
   */
  listed(seconds?: number): Promise<boolean>;
  /**
   * The policies that the account may use now, merged. Call it for each pod: the result is cached until
   * something changes. Rejects with `SourceUnavailableError` if it is unknown which apply: before the first
   * list, when the data is older than `staleAfter`, or if the API server gives no answer. Then admit nothing.
   */
  effectiveFor(account: Account): Promise<EffectivePolicy>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/**
 * Follows the scheduling policies of a cluster and its permissions to use them, until `close`. Does not wait:
 * an unavailable API server is retried, and `health` has the reason.
 * @throws ConfigurationError for mistakes in the kubeconfig, or if this is not a pod @throws RangeError for
 * `staleAfter`
 */
export async function followSchedulingPolicies({
  kubeconfig,
  rights = 'auto',
  staleAfter = 300,
  logger = createLogger(),
  ...options
}: FollowPoliciesOptions = {}): Promise<FollowedPolicies> {
  // With NaN, nothing would ever be stale.
  if (!(Number.isFinite(staleAfter) && staleAfter >= 0)) {
    throw new RangeError(`staleAfter: expected a number of seconds from 0 on, got ${staleAfter}`);
  }
  const closing = new AbortController();
  // Loading it takes time, which programs that only read files save.
  const { followCluster } = await import('./follow-cluster.ts');
  const { ClusterSource, isListedWithin } = await import('./live-source.ts');
  const { policies, permissions, ...cluster } = followCluster({ kubeconfig, rights, logger });
  const source = new ClusterSource({ policies, permissions, staleAfter, ...options });
  cluster.start();
  return {
    get health() {
      return source.health;
    },
    effectiveFor: async (account) => (await source.policiesOf(account)).all,
    listed: (seconds = 10) => isListedWithin(policies, seconds * 1000, closing.signal),
    close: () => {
      closing.abort();
      return cluster.close();
    },
  };
}
