/** Policies and rights of a cluster without latency: only the cost of the service is measured. */
import type { ApiClient } from '../src/kubernetes/cluster/api/contract.ts';
import type { LivePolicies } from '../src/kubernetes/cluster/live/contract.ts';
import { ClusterSource } from '../src/kubernetes/cluster/live/live-source.ts';
import { ReviewedPermissions } from '../src/kubernetes/cluster/live/reviewed-permissions.ts';
import { type ClusterDocuments, policyDocuments } from './admission-reviews.ts';
import { reviewer } from './api-server.ts';

export function reviewedSource(documents: ClusterDocuments): ClusterSource {
  const review = reviewer(documents);
  const client: ApiClient = {
    server: 'https://api-server',
    namespace: undefined,
    serverTime: undefined,
    request: async ({ body }) => review(body as Parameters<typeof review>[0]),
    async *watch() {},
    close: async () => {},
  };
  const { policies } = policyDocuments(documents);
  const known = { names: policies.map(({ name }) => name).sort(), policies, invalid: [] };
  const live: LivePolicies = {
    known,
    policies: new Map(),
    get following() {
      return { hasList: true, currentAt: performance.now(), problem: undefined };
    },
    onChange: () => () => {},
  };
  const permissions = new ReviewedPermissions({ client, rights: 'auto' });
  return new ClusterSource({ policies: live, permissions, staleAfter: 300 });
}
