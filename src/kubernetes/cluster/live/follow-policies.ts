/** For programs that judge pods themselves, by the policies of a cluster. */
import { createLogger, type Logger } from '../../../base/logger.ts';
import type { Account } from '../../policies/access.ts';
import type { EffectivePolicy } from '../../policies/effective-policy.ts';
import type { PolicySetOptions } from '../../policies/scheduling-policies.ts';
import type { SourceHealth } from './contract.ts';

/** The options of `followSchedulingPolicies`, besides those that say how policies are merged. */
export interface FollowPoliciesOptions extends PolicySetOptions {
  /**
   * A file. Default: the service account of this pod. The account needs the rights to list and watch scheduling policies and to create
   * SubjectAccessReviews, and should be able to list and watch roles and bindings. It is read again when it changes.
   */
  readonly kubeconfig?: string;
  /** See the option `rights` of `[kubernetes]`. Default: `auto`. */
  readonly rights?: 'auto' | 'every';
  /** How long policies stay in force that can no longer be followed, in seconds. Default: 300. */
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
   * The policies that the account may use now, merged. Ask again for each pod: it is kept until something changes.
   * Rejects with `SourceUnavailableError` if it cannot be known which apply: before the first list, when what is known is older than
   * `staleAfter`, or if the API server gives no answer. Then admit nothing.
   */
  effectiveFor(account: Account): Promise<EffectivePolicy>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/**
 * Follows the scheduling policies of a cluster and asks it who may use which, until `close`. Waits for no answer: an API server that is
 * away is tried again, and `health` says why.
 * @throws ConfigurationError for mistakes in the kubeconfig, or if this is not a pod @throws RangeError for `staleAfter`
 */
export async function followSchedulingPolicies({
  kubeconfig,
  rights = 'auto',
  staleAfter = 300,
  logger = createLogger(),
  ...options
}: FollowPoliciesOptions = {}): Promise<FollowedPolicies> {
  // Nothing would ever be too old with NaN.
  if (!(Number.isFinite(staleAfter) && staleAfter >= 0)) {
    throw new RangeError(`staleAfter: expected a number of seconds from 0 on, got ${staleAfter}`);
  }
  const closing = new AbortController();
  // Loading it takes time that those do not need who read files.
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
