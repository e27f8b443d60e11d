/**
 * Reviews whose content cannot be checked: too large, or malformed. Users of a cluster can cause them with
 * their objects, so they need an answer: an HTTP error would let the object pass if `failurePolicy` is
 * Ignore.
 */
import { z } from 'zod';
import {
  isForRulesAlone,
  KIND,
  type ReviewedKind,
  reviewedKind,
  API_VERSION as VERSION,
} from './pod-kinds.ts';

export interface UnreadReview {
  readonly uid: string;
  /** `undefined` = needs no review. */
  readonly kind: ReviewedKind | undefined;
  /** No policy would apply. */
  readonly isForRulesAlone: boolean;
  /** Of the object: `deployments`. */
  readonly resource: { readonly group: string; readonly resource: string };
}

/** How much of a body `unreadReviewAt` needs, in bytes. */
export const START_BYTES = 4096;

const NOWHERE = { group: '', resource: '' };

const envelope = z.object({
  apiVersion: z.literal(VERSION),
  kind: z.literal(KIND),
  request: z.object({
    uid: z.string().min(1),
    resource: z.object({ group: z.string(), resource: z.string() }).catch(NOWHERE),
    subResource: z.string().nullish().catch(undefined),
    operation: z.string().optional().catch(undefined),
  }),
});

/** From a body that is JSON. `undefined` = not a review that can be answered. */
export function unreadReview(body: unknown): UnreadReview | undefined {
  const { request } = envelope.safeParse(body).data ?? {};
  return request === undefined ? undefined : unread(request);
}

const TEXT = '"((?:[^"\\\\]|\\\\.)*)"';
const MEMBERS = '\\{[^{}]*\\}';
/** As all API servers write it. The object comes after all of this. */
const START = new RegExp(
  [
    `^\\{"kind":"${KIND}","apiVersion":"${VERSION.replace('.', '\\.')}","request":\\{"uid":"([^"\\\\]{1,253})","kind":${MEMBERS}`,
    `,"resource":\\{"group":"([^"\\\\]*)","version":"[^"\\\\]*","resource":"([^"\\\\]*)"\\}(?:,"subResource":"([^"\\\\]*)")?`,
    `(?:(?:,"requestKind":${MEMBERS})?(?:,"requestResource":${MEMBERS})?(?:,"requestSubResource":${TEXT})?(?:,"name":${TEXT})?`,
    `(?:,"namespace":${TEXT})?,"operation":"([^"\\\\]*)")?`,
  ].join(''),
);

/** From the start of a body that is too large to be parsed. `undefined` = not a review of an API server. */
export function unreadReviewAt(start: Uint8Array): UnreadReview | undefined {
  const [, uid, group = '', resource = '', subResource, , , , operation] =
    START.exec(Buffer.from(start.subarray(0, START_BYTES)).toString('latin1')) ?? [];
  return uid === undefined
    ? undefined
    : unread({ uid, resource: { group, resource }, subResource, operation });
}

function unread({
  uid,
  resource,
  subResource,
  operation,
}: z.infer<typeof envelope>['request']): UnreadReview {
  const isReviewed = operation === undefined || operation === 'CREATE' || operation === 'UPDATE';
  // Unknown kinds count as pods.
  const kind = resource.resource === '' ? 'pod' : reviewedKind(resource, subResource);
  return {
    uid,
    resource,
    kind: isReviewed ? kind : undefined,
    isForRulesAlone: isForRulesAlone(resource, subResource),
  };
}
