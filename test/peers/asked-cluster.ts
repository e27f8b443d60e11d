/** Permissions beside a real API server, and the truth that they are held against. */
import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { ListWatch } from '../../src/kubernetes/cluster/api/list-watch.ts';
import { AccessReviews } from '../../src/kubernetes/cluster/live/access-review.ts';
import { RBAC_KINDS, RbacHint } from '../../src/kubernetes/cluster/live/rbac-hint.ts';
import {
  ReviewedPermissions,
  type ReviewedPermissionsOptions,
} from '../../src/kubernetes/cluster/live/reviewed-permissions.ts';
import type { Account } from '../../src/kubernetes/policies/access.ts';
import { RBAC } from './cluster-objects.ts';
import type { Cluster } from './kubernetes.ts';

export const RBAC_PATH = `/apis/${RBAC}/v1`;

/** Follows roles and bindings of the cluster, as the administrator. */
export function askCluster({ folder }: Cluster) {
  const client = createApiClient({ kubeconfig: join(folder, 'admin.conf') });
  const reviews = new AccessReviews(client);
  const hint = new RbacHint();
  const opened: ReviewedPermissions[] = [];
  const watches = RBAC_KINDS.map((kind) => {
    const watch = new ListWatch({ client, path: `${RBAC_PATH}/${kind}`, listener: hint.listeners[kind] });
    hint.follow(kind, watch);
    watch.start();
    return watch;
  });
  const counted = { reviews: 0 };
  const observer = {
    reviewed: () => {
      counted.reviews += 1;
    },
    answered: () => undefined,
  };
  return {
    client,
    hint,
    /** Since it was set last. */
    counted,
    permissions(options: Partial<ReviewedPermissionsOptions> = {}): ReviewedPermissions {
      const one = new ReviewedPermissions({ client, rights: 'auto', observer, ...options });
      opened.push(one);
      return one;
    },
    /** One review for each name: the truth. */
    async truth(account: Account, names: readonly string[]): Promise<string[]> {
      const { signal } = new AbortController();
      setMaxListeners(0, signal);
      const answers = await Promise.all(names.map((name) => reviews.mayUse(account, name, signal)));
      return names.filter((_, index) => answers[index]);
    },
    async close(): Promise<void> {
      for (const one of opened) {
        one.close();
      }
      await Promise.all(watches.map((watch) => watch.close()));
      await client.close();
    },
  };
}

export type AskedCluster = ReturnType<typeof askCluster>;
