/** What the API server of Kubernetes asks a webhook, and is answered. Source: Kubernetes API, admission.k8s.io/v1. */
import { z } from 'zod';
import { InvalidRequestError } from '../errors.ts';
import { firstMistake } from '../first-mistake.ts';
import { invalidRequest, type Pod, parsePod } from './pod.ts';

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';

export const admissionReviewSchema = z
  .looseObject({
    apiVersion: z.literal(API_VERSION, `expected ${API_VERSION}`),
    kind: z.literal(KIND, `expected ${KIND}`),
    request: z
      .looseObject({
        uid: z.string().min(1, 'expected a text that is not empty'),
        resource: z.looseObject({
          group: z.string(),
          version: z.string(),
          resource: z.string(),
        }),
        subResource: z.string().nullish(),
        operation: z.string().meta({ examples: ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] }),
        namespace: z.string().nullish(),
        userInfo: z
          .looseObject({ username: z.string().nullish() })
          .nullish()
          .meta({ description: 'Who asks the API server.' }),
        dryRun: z.boolean().nullish(),
      })
      .meta({ description: 'What is asked of the API server. Of pods there are `object` and `oldObject`.' }),
  })
  .meta({ description: 'The request of an admission webhook.' });

type WireReview = z.infer<typeof admissionReviewSchema>;

export const admissionAnswerSchema = z
  .object({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(KIND),
    response: z.object({
      uid: z.string().meta({ description: 'That of the request.' }),
      allowed: z.boolean(),
      patchType: z.literal('JSONPatch').optional(),
      patch: z
        .string()
        .optional()
        .meta({ contentEncoding: 'base64', description: 'Operations of JSON Patch (RFC 6902), in JSON.' }),
      status: z
        .object({ code: z.literal(403), reason: z.literal('Forbidden'), message: z.string() })
        .optional()
        .meta({ description: 'Why not, for the user.' }),
      warnings: z.array(z.string()).optional().meta({ description: 'For the user, who may go on.' }),
    }),
  })
  .meta({ description: 'The answer of an admission webhook.' });

export type AdmissionAnswer = z.infer<typeof admissionAnswerSchema>;

/** A pod that is to be created, or changed. */
export interface PodRequest {
  readonly uid: string;
  readonly namespace: string;
  readonly pod: Pod;
  /** The pod as it is; `undefined` when it is to be created. */
  readonly current: Pod | undefined;
  readonly isUpdate: boolean;
  /** Who asks the API server. */
  readonly username: string | undefined;
  /** Nothing will come of it. */
  readonly dryRun: boolean;
}

const compiled = z.compile(admissionReviewSchema);

/**
 * Reads the body of a webhook's request. Of what is not about pods, and of operations other than CREATE and UPDATE, only
 * `uid` is read.
 *
 * @throws InvalidRequestError that names the first field that is wrong.
 */
export function parseAdmissionReview(
  body: unknown,
): { readonly uid: string; readonly pod: undefined } | PodRequest {
  const mistake = firstMistake(compiled, body);
  if (mistake !== undefined) {
    throw invalidRequest(mistake);
  }
  // As it came: zod would copy it.
  const { request } = body as WireReview;
  const { uid, operation, namespace, resource, subResource } = request;
  const isPod = resource.group === '' && resource.resource === 'pods' && !subResource;
  if (!isPod || !(operation === 'CREATE' || operation === 'UPDATE')) {
    return { uid, pod: undefined };
  }
  if (!namespace) {
    throw new InvalidRequestError('request.namespace', 'expected the namespace of the pod');
  }
  const { object, oldObject } = request;
  const hasCurrent = operation === 'UPDATE' && oldObject !== undefined && oldObject !== null;
  return {
    uid,
    namespace,
    pod: parsePod(object, 'request.object'),
    current: hasCurrent ? parsePod(oldObject, 'request.oldObject') : undefined,
    isUpdate: operation === 'UPDATE',
    username: request.userInfo?.username ?? undefined,
    dryRun: request.dryRun === true,
  };
}

/** What a review came to, as it is answered. */
export interface Admission {
  readonly allowed: boolean;
  /** Why not; `null` when allowed. */
  readonly message: string | null;
  readonly patch: readonly object[];
  readonly warnings: readonly string[];
}

export function admissionAnswer(
  uid: string,
  { allowed, message, patch, warnings }: Admission,
): AdmissionAnswer {
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
      ...(message !== null && { status: { code: 403, reason: 'Forbidden', message } }),
      ...(warnings.length > 0 && { warnings: [...warnings] }),
    },
  };
}
