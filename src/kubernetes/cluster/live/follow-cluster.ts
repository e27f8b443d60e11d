/** All watches of a cluster, and the reviews of permissions. */
import type { Logger } from '../../../base/logger.ts';
import type { KubernetesOptions } from '../../options.ts';
import { createApiClient } from '../api/api-client.ts';
import type { ApiClient } from '../api/contract.ts';
import { ListWatch, type WatchObserver } from '../api/list-watch.ts';
import type { ReviewObserver } from './access-review.ts';
import type { LivePolicies, ObjectListener, UsePermissions } from './contract.ts';
import { WatchedPolicies } from './live-policies.ts';
import { RBAC_KINDS, RBAC_PATH, RbacHint } from './rbac-hint.ts';
import { ReviewedPermissions } from './reviewed-permissions.ts';

export interface FollowedCluster {
  readonly client: ApiClient;
  readonly policies: LivePolicies;
  readonly permissions: UsePermissions;
  /** A second call has no effect. */
  start(): void;
  /** Ends all watches at once. */
  close(): Promise<void>;
}

interface FollowClusterOptions extends Pick<KubernetesOptions, 'kubeconfig' | 'rights'> {
  readonly logger: Logger;
  /** Counts watches and reviews. Must not wait or throw. */
  readonly observer?: ReviewObserver & { watching(resource: string): WatchObserver };
}

/**
 * In seconds. Only the end of a watch proves that nothing is missing, so it must come before
 * `cluster_stale_after`, which may be 10.
 */
const WATCH_SECONDS = [4, 6] as const;
/** In milliseconds. With it, a silent API server is noticed within 10 s. */
const GRACE_MS = 3000;
/**
 * The longest pause after a failure, in milliseconds: a CustomResourceDefinition applied later is noticed
 * within it.
 */
const MAX_PAUSE_MS = 5000;

const HINTS = {
  notFound: 'apply the CustomResourceDefinition of etc/kubernetes',
  forbidden: 'apply the role of etc/kubernetes',
};

/**
 * Sends nothing before `start`. @throws ConfigurationError for mistakes in the kubeconfig, or if this is not
 * a pod
 */
export function followCluster({
  kubeconfig,
  rights,
  logger,
  observer,
}: FollowClusterOptions): FollowedCluster {
  const client = createApiClient({ kubeconfig, logger });
  const follow = (path: string, listener: ObjectListener) =>
    new ListWatch({
      client,
      path,
      listener,
      logger,
      hints: HINTS,
      ...(observer && { observer: observer.watching(path.split('/').at(-1) ?? path) }),
      times: { watchSeconds: WATCH_SECONDS, graceMs: GRACE_MS, backoffMs: [100, MAX_PAUSE_MS] },
    });
  const policies = new WatchedPolicies(follow, logger);
  const hint = rights === 'every' ? undefined : new RbacHint();
  const roles = hint === undefined ? [] : followRoles(hint, follow);
  const permissions = new ReviewedPermissions({ client, rights, hint, observer });
  const followed = [policies, ...roles];
  return {
    client,
    policies,
    permissions,
    start: () => {
      for (const one of followed) {
        one.start();
      }
    },
    close: async () => {
      permissions.close();
      await Promise.all(followed.map((one) => one.close()));
      await client.close();
    },
  };
}

function followRoles(
  hint: RbacHint,
  follow: (path: string, listener: ObjectListener) => ListWatch,
): ListWatch[] {
  return RBAC_KINDS.map((kind) => {
    const followed = follow(`${RBAC_PATH}/${kind}`, hint.listeners[kind]);
    hint.follow(kind, followed);
    return followed;
  });
}
