/** Answers SubjectAccessReviews in this process, by a function, so that faults and times can be chosen. */

import type { ApiClient, ApiRequest } from '../../../../src/kubernetes/cluster/api/contract.ts';
import type { Account } from '../../../../src/kubernetes/policies/access.ts';

interface AskedReview {
  readonly user: string;
  readonly groups: readonly string[];
  readonly namespace: string | undefined;
  readonly name: string;
}

export interface ReviewServer {
  readonly client: ApiClient;
  readonly asked: AskedReview[];
  /** Who may use what now. */
  mayUse: (review: AskedReview) => boolean;
  /** What is answered: by default, after a turn of the event loop, what `mayUse` says. */
  respond: (review: AskedReview, request: ApiRequest) => Promise<unknown>;
  /** The review with this status. */
  answer(review: AskedReview, status: object): object;
}

export function reviewServer(): ReviewServer {
  const asked: AskedReview[] = [];
  const server: ReviewServer = {
    asked,
    mayUse: () => false,
    respond: async (review) => {
      const allowed = server.mayUse(review);
      await new Promise((resolve) => setImmediate(resolve));
      return server.answer(review, { allowed });
    },
    answer: ({ user, groups, namespace, name }, status) => ({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      // The API server leaves out what is empty.
      spec: { user, groups, resourceAttributes: { ...(name !== '' && { name }), namespace } },
      status,
    }),
    client: {
      server: 'https://10.0.0.1:6443',
      serverTime: undefined,
      namespace: undefined,
      request: (request) => {
        const { spec } = request.body as {
          spec: Account & { resourceAttributes: { name: string; namespace?: string } };
        };
        const { name, namespace } = spec.resourceAttributes;
        const review = { user: spec.user, groups: spec.groups, namespace, name };
        asked.push(review);
        return server.respond(review, request);
      },
      watch: () => {
        throw new Error('nobody watches reviews');
      },
      close: async () => undefined,
    },
  };
  return server;
}
