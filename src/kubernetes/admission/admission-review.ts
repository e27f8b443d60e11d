/**
 * Requests of the Kubernetes API server to an admission webhook, and the responses. Source: Kubernetes API,
 * admission.k8s.io/v1.
 */
import { z } from 'zod';
import { InvalidRequestError } from '../../base/errors.ts';
import { isMapping } from '../../base/yaml/tree.ts';
import { firstMistake } from '../../lease/request-schemas.ts';
import { invalidRequest, type Pod, parsePod } from '../policies/pod.ts';
import {
  API_VERSION,
  isForRulesAlone,
  KIND,
  type ReviewedKind,
  reviewedKind,
  workloadKindOf,
} from './pod-kinds.ts';

export const admissionReviewSchema = z
  .looseObject({
    apiVersion: z.literal(API_VERSION, `expected ${API_VERSION}`),
    kind: z.literal(KIND, `expected ${KIND}`),
    request: z
      .looseObject({
        uid: z.string().min(1, 'expected a non-empty string'),
        resource: z.looseObject({
          group: z.string(),
          version: z.string(),
          resource: z.string(),
        }),
        subResource: z.string().nullish(),
        operation: z.string().meta({ examples: ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] }),
        name: z.string().nullish(),
        namespace: z.string().nullish(),
        userInfo: z
          .looseObject({ username: z.string().nullish(), groups: z.array(z.string()).nullish() })
          .nullish()
          .meta({ description: 'The user who sent the request to the API server.' }),
        dryRun: z.boolean().nullish(),
      })
      .meta({
        description: 'The request to the API server. `object` is the new state, `oldObject` the current one.',
      }),
  })
  .meta({ description: 'The request to an admission webhook.' });

type WireReview = z.infer<typeof admissionReviewSchema>;

export const admissionAnswerSchema = z
  .object({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(KIND),
    response: z.object({
      uid: z.string().meta({ description: 'The `uid` of the request.' }),
      allowed: z.boolean(),
      patchType: z.literal('JSONPatch').optional(),
      patch: z
        .string()
        .optional()
        .meta({ contentEncoding: 'base64', description: 'JSON Patch operations (RFC 6902) as JSON.' }),
      status: z
        .object({
          code: z.union([z.literal(403), z.literal(500), z.literal(503)]).meta({
            description:
              '403: the policies reject the pod. 503: which policies apply cannot be determined now, or too many pods are being reviewed. 500: a fault of the service.',
          }),
          reason: z.enum(['Forbidden', 'InternalError', 'ServiceUnavailable']),
          message: z.string(),
        })
        .optional()
        .meta({ description: 'The reason for a rejection, shown to the user.' }),
      warnings: z
        .array(z.string())
        .optional()
        .meta({ description: 'Shown to the user, who can still proceed.' }),
    }),
  })
  .meta({ description: 'The response of an admission webhook.' });

export type AdmissionAnswer = z.infer<typeof admissionAnswerSchema>;

interface Request {
  readonly uid: string;
  /** The user who sent the request to the API server. */
  readonly username: string | undefined;
  readonly groups: readonly string[];
  /** The API server will not persist the result. */
  readonly dryRun: boolean;
  readonly name: string | undefined;
}

/** A pod, or the pod template of a DaemonSet, to create or update. */
export interface PodRequest extends Request {
  readonly kind: 'pod' | 'template';
  readonly namespace: string;
  readonly pod: Pod;
  /** The current state; `undefined` for a new object. */
  readonly current: Pod | undefined;
  readonly isUpdate: boolean;
}

export interface BindingRequest extends Request {
  readonly kind: 'binding';
  readonly namespace: string;
  readonly pod: undefined;
  readonly node: string;
}

/** A Deployment, Job or the like to create or update. Its template is parsed later, because a warning must not fail. */
export interface WorkloadRequest extends Request {
  readonly kind: 'workload';
  /** `Deployment`, … */
  readonly workload: string;
  /** Empty if the API server does not send it. */
  readonly namespace: string;
  readonly pod: undefined;
  readonly object: unknown;
  /** The current state; `undefined` for a new object. */
  readonly current: unknown;
}

export interface PolicyRequest extends Request {
  readonly kind: 'policy';
  readonly pod: undefined;
  readonly document: unknown;
  /** The stored one; `undefined` for a new policy. */
  readonly current: unknown;
}

interface OtherRequest {
  readonly kind: 'other';
  readonly uid: string;
  readonly pod: undefined;
}

const compiled = z.compile(admissionReviewSchema);

/**
 * Parses the body of a webhook request for pods, pod templates, bindings or scheduling policies. For other
 * objects, and for operations other than CREATE and UPDATE, it reads only `uid`.
 *
 * @throws InvalidRequestError naming the first invalid field
 */
export function parseAdmissionReview(
  body: unknown,
): PodRequest | BindingRequest | WorkloadRequest | PolicyRequest | OtherRequest {
  const mistake = firstMistake(compiled, body);
  if (mistake !== undefined) {
    throw invalidRequest(mistake);
  }
  // The original, because zod would copy it.
  const { request } = body as WireReview;
  const { uid, operation, object } = request;
  const kind = reviewedKind(request.resource, request.subResource);
  if (kind === undefined || !(operation === 'CREATE' || operation === 'UPDATE')) {
    return { kind: 'other', uid, pod: undefined };
  }
  const common = {
    uid,
    username: request.userInfo?.username ?? undefined,
    groups: request.userInfo?.groups ?? [],
    dryRun: request.dryRun === true,
    name: nameOf(object) ?? request.name ?? undefined,
  };
  const { namespace, oldObject } = request;
  const hasCurrent = operation === 'UPDATE' && oldObject !== undefined && oldObject !== null;
  const current: unknown = hasCurrent ? oldObject : undefined;
  if (kind === 'policy') {
    return { kind, ...common, pod: undefined, document: object, current };
  }
  if (kind === 'workload') {
    const workload = workloadKindOf(request.resource.group, request.resource.resource) ?? '';
    return { kind, ...common, workload, namespace: namespace ?? '', pod: undefined, object, current };
  }
  if (!namespace) {
    throw new InvalidRequestError('request.namespace', 'expected the namespace of the pod');
  }
  if (kind === 'binding') {
    return { kind, ...common, namespace, pod: undefined, node: targetOf(object) };
  }
  if (isWithoutPod(object)) {
    const message = 'expected the pod: Kubernetes 1.22 or newer sends it with its ephemeral containers';
    throw new InvalidRequestError('request.object', message);
  }
  const parse = kind === 'pod' ? parsePod : parseTemplate;
  return {
    // Not after the spread: if a literal begins with one, V8 makes a hidden class for each member that
    // follows, which costs as much as checking the pod.
    kind,
    ...common,
    namespace,
    pod: parse(object, 'request.object'),
    current: hasCurrent ? parse(current, 'request.oldObject') : undefined,
    isUpdate: operation === 'UPDATE',
  };
}

const daemonSet = z.looseObject({ spec: z.looseObject({ template: z.looseObject({}) }) });
const binding = z.looseObject({ target: z.looseObject({ name: z.string() }) });

function parseTemplate(input: unknown, at: string): Pod {
  const mistake = firstMistake(daemonSet, input);
  if (mistake !== undefined) {
    throw invalidRequest(mistake, at);
  }
  return parsePod((input as z.infer<typeof daemonSet>).spec.template, `${at}.spec.template`);
}

function targetOf(object: unknown): string {
  const mistake = firstMistake(binding, object);
  if (mistake !== undefined) {
    throw invalidRequest(mistake, 'request.object');
  }
  return (object as z.infer<typeof binding>).target.name;
}

/**
 * Until 1.21, the ephemeral containers of a pod were sent alone. Source: Kubernetes API,
 * `EphemeralContainers` of core/v1.
 */
function isWithoutPod(object: unknown): boolean {
  return isMapping(object) && object.kind === 'EphemeralContainers';
}

/** Never fails: the object is validated elsewhere. */
function nameOf(object: unknown): string | undefined {
  const metadata = isMapping(object) && isMapping(object.metadata) ? object.metadata : {};
  const { name, generateName } = metadata;
  return isTextOrMissing(name) && isTextOrMissing(generateName)
    ? name || generateName || undefined
    : undefined;
}

function isTextOrMissing(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || typeof value === 'string';
}

export interface Admission {
  readonly allowed: boolean;
  /** The reason for a rejection; `null` when allowed. */
  readonly message: string | null;
  readonly patch: readonly object[];
  readonly warnings: readonly string[];
  /** It could not be checked: the status with the reason. */
  readonly failed?: 500 | 503;
}

const REASONS = { 403: 'Forbidden', 500: 'InternalError', 503: 'ServiceUnavailable' } as const;

export function admissionAnswer(
  uid: string,
  { allowed, message, patch, warnings, failed }: Admission,
): AdmissionAnswer {
  const code = failed ?? 403;
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    response: {
      uid,
      allowed,
      ...(patch.length > 0 && {
        patchType: 'JSONPatch',
        patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
      }),
      ...(message !== null && { status: { code, reason: REASONS[code], message } }),
      ...(warnings.length > 0 && { warnings: [...warnings] }),
    },
  };
}

/**
 * A review whose content cannot be checked: too large, or malformed. Users of a cluster can cause them with
 * their objects, so they need an answer: an HTTP error would let the object pass if `failurePolicy` is
 * Ignore.
 */
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
  apiVersion: z.literal(API_VERSION),
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
    `^\\{"kind":"${KIND}","apiVersion":"${API_VERSION.replace('.', '\\.')}","request":\\{"uid":"([^"\\\\]{1,253})","kind":${MEMBERS}`,
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
