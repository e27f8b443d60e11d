/** What the API server of Kubernetes asks a webhook, and is answered. Source: Kubernetes API, admission.k8s.io/v1. */
import { z } from 'zod';
import { InvalidRequestError } from '../errors.ts';
import { firstMistake } from '../lease/first-mistake.ts';
import { invalidRequest, type Pod, parsePod } from './pod.ts';
import { API_GROUPS } from './policy.ts';

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
        name: z.string().nullish(),
        namespace: z.string().nullish(),
        userInfo: z
          .looseObject({ username: z.string().nullish(), groups: z.array(z.string()).nullish() })
          .nullish()
          .meta({ description: 'Who asks the API server.' }),
        dryRun: z.boolean().nullish(),
      })
      .meta({
        description:
          'What is asked of the API server. `object` and `oldObject` are what is asked about, as it would be and as it is.',
      }),
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

interface Request {
  readonly uid: string;
  /** Who asks the API server. */
  readonly username: string | undefined;
  readonly groups: readonly string[];
  /** Nothing will come of it. */
  readonly dryRun: boolean;
  /** What is asked about. */
  readonly name: string | undefined;
}

/** A pod, or the template of a DaemonSet, that is to be created or changed. */
export interface PodRequest extends Request {
  readonly kind: 'pod' | 'template';
  readonly namespace: string;
  readonly pod: Pod;
  /** As it is; `undefined` when it is to be created. */
  readonly current: Pod | undefined;
  readonly isUpdate: boolean;
}

/** A pod that is to be put on a node. */
export interface BindingRequest extends Request {
  readonly kind: 'binding';
  readonly namespace: string;
  readonly pod: undefined;
  readonly node: string;
}

/** A scheduling policy that is to be stored. */
export interface PolicyRequest extends Request {
  readonly kind: 'policy';
  readonly pod: undefined;
  readonly document: unknown;
}

/** What nobody here judges. */
export interface OtherRequest {
  readonly kind: 'other';
  readonly uid: string;
  readonly pod: undefined;
}

const compiled = z.compile(admissionReviewSchema);

/**
 * Reads the body of a webhook's request: of pods, templates of DaemonSets, bindings and scheduling policies. Of everything else,
 * and of operations other than CREATE and UPDATE, only `uid` is read.
 *
 * @throws InvalidRequestError that names the first field that is wrong.
 */
export function parseAdmissionReview(
  body: unknown,
): PodRequest | BindingRequest | PolicyRequest | OtherRequest {
  const mistake = firstMistake(compiled, body);
  if (mistake !== undefined) {
    throw invalidRequest(mistake);
  }
  // As it came: zod would copy it.
  const { request } = body as WireReview;
  const { uid, operation, object } = request;
  const kind = kindOf(request);
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
  if (kind === 'policy') {
    return { ...common, kind, pod: undefined, document: object };
  }
  const { namespace } = request;
  if (!namespace) {
    throw new InvalidRequestError('request.namespace', 'expected the namespace of the pod');
  }
  if (kind === 'binding') {
    return { ...common, kind, namespace, pod: undefined, node: targetOf(object) };
  }
  const parse = kind === 'pod' ? parsePod : parseTemplate;
  const { oldObject } = request;
  const hasCurrent = operation === 'UPDATE' && oldObject !== undefined && oldObject !== null;
  return {
    ...common,
    kind,
    namespace,
    pod: parse(object, 'request.object'),
    current: hasCurrent ? parse(oldObject, 'request.oldObject') : undefined,
    isUpdate: operation === 'UPDATE',
  };
}

function kindOf({ resource, subResource }: WireReview['request']) {
  const { group, resource: name } = resource;
  if (group === '' && name === 'pods') {
    return !subResource ? 'pod' : subResource === 'binding' ? 'binding' : undefined;
  }
  if (subResource) {
    return undefined;
  }
  if (group === '' && name === 'bindings') {
    return 'binding';
  }
  if (name === 'daemonsets' && (group === 'apps' || group === 'extensions')) {
    return 'template';
  }
  return name === 'schedulingpolicies' && API_GROUPS.some((one) => one === group) ? 'policy' : undefined;
}

const daemonSet = z.looseObject({ spec: z.looseObject({ template: z.looseObject({}) }) });
const binding = z.looseObject({ target: z.looseObject({ name: z.string() }) });
const named = z.looseObject({
  metadata: z.looseObject({ name: z.string().nullish(), generateName: z.string().nullish() }),
});

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

/** Whatever is wrong with it, somebody else says. */
function nameOf(object: unknown): string | undefined {
  const { metadata } = named.safeParse(object).data ?? {};
  return metadata?.name || metadata?.generateName || undefined;
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
