/** A small API server with constant policies, roles and bindings, and with reviews. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { PolicyAccess } from '../src/kubernetes/policies/access.ts';
import { type ClusterDocuments, policyDocuments, rbacObjects } from './admission-reviews.ts';

const GROUP = 'scheduling.blazar-enforcement';
const VERSION = '100';

interface AskedReview {
  readonly spec: {
    readonly user: string;
    readonly groups: readonly string[];
    readonly resourceAttributes: { readonly name: string; readonly namespace?: string };
  };
}

/** Answers a SubjectAccessReview like RBAC. */
export function reviewer(documents: ClusterDocuments): (review: AskedReview) => object {
  const { policies, roles, bindings } = policyDocuments(documents);
  const access = new PolicyAccess(policies, roles, bindings);
  return (review) => {
    const { user, groups, resourceAttributes } = review.spec;
    const { name, namespace } = resourceAttributes;
    const allowed = access.usableBy({ user, groups, namespace }).includes(name);
    return { ...review, kind: 'SubjectAccessReview', status: { allowed } };
  };
}

export function answerAsApiServer(documents: ClusterDocuments): RequestListener {
  const review = reviewer(documents);
  const { roles, bindings } = rbacObjects(documents, GROUP);
  const lists: Readonly<Record<string, readonly object[]>> = {
    schedulingpolicies: documents.policies.map(({ name, spec }) => ({
      apiVersion: `${GROUP}/v1alpha1`,
      kind: 'SchedulingPolicy',
      metadata: { name, uid: name, generation: 1, resourceVersion: VERSION },
      spec,
    })),
    clusterroles: roles,
    clusterrolebindings: bindings,
  };
  const answerWith = (response: ServerResponse, status: number, body: object) => {
    const content = JSON.stringify(body);
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(content) };
    response.writeHead(status, headers).end(content);
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://api-server');
    if (request.method === 'POST') {
      answerWith(response, 201, review(JSON.parse(await text(request)) as AskedReview));
    } else if (query.get('watch') === 'true') {
      response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
      setTimeout(() => response.end(), Number(query.get('timeoutSeconds')) * 1000).unref();
    } else {
      const items = lists[pathname.split('/').at(-1) ?? ''] ?? [];
      answerWith(response, 200, { kind: 'List', metadata: { resourceVersion: VERSION }, items });
    }
  };
  return (request, response) => {
    answer(request, response).catch(() => response.destroy());
  };
}
