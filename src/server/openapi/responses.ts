/** What the policy service answers: the schema of every body, and where which is sent. /openapi.json is made of it. */
import { z } from 'zod';
import { DOORS, EXPECTED_CERTIFICATE } from '../doors.ts';
import { REQUEST_ID_HEADER } from '../request-state.ts';
import type { schemasOfKubernetes } from './kubernetes-bodies.ts';
import type { schemasOfSkypilot } from './skypilot-bodies.ts';

const health = z.object({ status: z.literal('ok') }).meta({ description: 'The process answers.' });

const readiness = z
  .object({
    status: z.enum(['ready', 'draining', 'configuration not valid']).meta({
      description:
        '`draining`: it has been told to stop. `configuration not valid`: what was read last has mistakes, and the configuration before it decides.',
    }),
    generation: z.int().min(1).meta({ description: 'Which configuration decides: 1 since the start.' }),
    problems: z.array(z.string()).meta({ description: 'The mistakes, each with its file and line.' }),
  })
  .meta({ description: 'Whether the service should be asked.' });

export type Health = z.infer<typeof health>;
export type Readiness = z.infer<typeof readiness>;

/** The bodies, by the names that they have in the description. */
export const bodySchemas = {
  Refusal: z
    .object({
      message: z.string().meta({ description: 'Of a `403` it is for the user who wants the lease.' }),
    })
    .meta({ description: 'Why not.' }),
  InvalidRequest: z
    .object({
      message: z.string(),
      field: z
        .string()
        .optional()
        .meta({
          description: 'The first that is wrong; empty = the whole. Not there when the body is no JSON.',
          examples: ['lease.start_date'],
        }),
    })
    .meta({ description: 'What was expected, and what came.' }),
  Fault: z
    .object({ request_id: z.string().meta({ description: 'Under which the log has the rest.' }) })
    .meta({ description: 'Of a fault of the service nothing else is told.' }),
  Health: health,
  Readiness: readiness,
  Metrics: z.string().meta({ description: 'The text format of Prometheus.' }),
  Page: z.string().meta({ description: 'HTML, without scripts.' }),
  ApiDescription: z
    .looseObject({
      openapi: z.string().regex(/^3[.]1[.]/),
      info: z.looseObject({}),
      paths: z.looseObject({}),
    })
    .meta({ description: 'A document of OpenAPI 3.1.' }),
} as const;

const requestId = z.string().regex(/^[Rr][Ee][Qq]-[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/);

/** What a caller may send as the id of a request; anything else is as if nothing was sent. */
export const REQUEST_ID = { name: REQUEST_ID_HEADER, schema: requestId } as const;

/** The headers of answers that clients are meant to read. */
export const headerSchemas = {
  [REQUEST_ID_HEADER]: requestId.meta({ description: "The request's own id, or one that it was given." }),
  'X-Enforcement-Generation': z.int().min(1).meta({
    description: 'Which configuration has decided: 1 since the start, one more with each reload.',
  }),
  'Retry-After': z.int().min(0).meta({ description: 'Seconds.' }),
  Allow: z.string().meta({ description: 'The methods that are possible.', examples: ['POST'] }),
} as const;

/** One answer. */
export interface Answer {
  readonly status: number;
  readonly description: string;
  readonly headers: readonly (keyof typeof headerSchemas)[];
  /** Default: none. */
  readonly body?:
    | keyof typeof bodySchemas
    | keyof typeof schemasOfSkypilot
    | keyof typeof schemasOfKubernetes;
  /** Default `application/json`. */
  readonly type?: string;
  /** Bodies, by a word. */
  readonly examples?: Readonly<Record<string, unknown>>;
}

/** Of every request that has reached the service. */
const ANSWERED = [REQUEST_ID_HEADER] as const;
const DECIDED = [REQUEST_ID_HEADER, 'X-Enforcement-Generation'] as const;

/** The answers, by the names that they have in the description. */
export const answers = {
  Allowed: { status: 204, description: 'The lease is allowed.', headers: DECIDED },
  Committed: { status: 204, description: 'The lease is recorded.', headers: DECIDED },
  Heard: { status: 204, description: 'The filters have been told.', headers: DECIDED },
  Healthy: {
    status: 200,
    description: 'The process answers.',
    headers: ANSWERED,
    body: 'Health',
    examples: { healthy: { status: 'ok' } },
  },
  Ready: {
    status: 200,
    description: 'Its configuration is valid, and it goes on.',
    headers: ANSWERED,
    body: 'Readiness',
    examples: { ready: { status: 'ready', generation: 1, problems: [] } },
  },
  Measured: {
    status: 200,
    description: 'The metrics.',
    headers: ANSWERED,
    body: 'Metrics',
    type: 'text/plain',
  },
  Page: {
    status: 200,
    description: 'The page.',
    headers: ANSWERED,
    body: 'Page',
    type: 'text/html',
  },
  Login: {
    status: 401,
    description:
      'The service has tokens, and neither `X-Auth-Token` nor a session holds one: a form to log in.',
    headers: ANSWERED,
    body: 'Page',
    type: 'text/html',
  },
  Described: { status: 200, description: 'This document.', headers: ANSWERED, body: 'ApiDescription' },
  NoRequest: {
    status: 400,
    description: 'The body is no request, or no JSON.',
    headers: ANSWERED,
    body: 'InvalidRequest',
    examples: {
      noRequest: {
        message: 'lease.start_date: expected an ISO 8601 date, got nothing',
        field: 'lease.start_date',
      },
      noJson: { message: 'expected a body in JSON' },
    },
  },
  NoToken: {
    status: 401,
    description: 'The service has tokens, and `X-Auth-Token` holds none of them.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: { noToken: { message: DOORS.blazar.expected } },
  },
  Rejected: {
    status: 403,
    description: 'A filter has rejected the lease, or has failed.',
    headers: DECIDED,
    body: 'Refusal',
    examples: {
      rejected: {
        message:
          'The lease is 864000 seconds (10 days) long; the longest allowed for any lease is 172800 seconds (2 days).',
      },
      failed: {
        message: 'The lease could not be checked. Please try again later, or ask the operator.',
      },
    },
  },
  NotCommitted: {
    status: 403,
    description: 'A limit that leases share does not hold any more, or the lease could not be recorded.',
    headers: DECIDED,
    body: 'Refusal',
    examples: {
      refused: {
        message: 'Project climate has 20 pending or active leases; the most allowed is 20.',
      },
      failed: {
        message:
          'The ledger of leases can not be read or written at the moment. Please try again later, or ask the operator.',
      },
    },
  },
  WrongMethod: {
    status: 405,
    description: 'Sent to this path with another method, this is the answer.',
    headers: [REQUEST_ID_HEADER, 'Allow'],
    body: 'Refusal',
    examples: { wrongMethod: { message: 'PUT is not possible here' } },
  },
  ArrivedTooSlowly: {
    status: 408,
    description: 'The request has not arrived within `deadline`. The connection is closed.',
    headers: [],
  },
  TooLarge: {
    status: 413,
    description: 'The body is longer than `body_limit`, as it came or unpacked.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: { tooLarge: { message: 'expected a body of at most 8388608 bytes' } },
  },
  WrongType: {
    status: 415,
    description: 'The body is not called JSON, or called something else than UTF-8, gzip, deflate or br.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: {
      wrongType: { message: 'expected a body of type application/json' },
      wrongCharset: { message: 'expected a body in UTF-8' },
      wrongEncoding: {
        message: 'expected a body in UTF-8, as it is or compressed by gzip, deflate or br',
      },
    },
  },
  HeadersTooLarge: {
    status: 431,
    description: 'The headers are longer than 16 KiB. The connection is closed.',
    headers: [],
  },
  Faulty: {
    status: 500,
    description: 'A fault of the service. Nothing was decided, so nothing is allowed.',
    headers: ANSWERED,
    body: 'Fault',
    examples: { faulty: { request_id: 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60' } },
  },
  NotReady: {
    status: 503,
    description: 'The configuration is not valid, or the service is about to stop.',
    headers: ANSWERED,
    body: 'Readiness',
    examples: {
      draining: { status: 'draining', generation: 1, problems: [] },
      notValid: {
        status: 'configuration not valid',
        generation: 1,
        problems: [
          '/etc/blazar/blazar.conf:3: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "one day"',
        ],
      },
    },
  },
  Overloaded: {
    status: 503,
    description: 'Too many decisions are under way and waiting, or there was no room in time.',
    headers: [REQUEST_ID_HEADER, 'Retry-After'],
    body: 'Refusal',
    examples: {
      overloaded: { message: 'Too many decisions are under way and waiting. Please try again.' },
    },
  },
  Reviewed: {
    status: 200,
    description: 'The request is to be carried out as it stands here.',
    headers: DECIDED,
    body: 'ReviewedRequest',
    examples: {
      reviewed: JSON.stringify({ task: 'name: train\nrun: python train.py\n', skypilot_config: '{}\n' }),
    },
  },
  ReviewedPod: {
    status: 200,
    description: 'Whether the pod is admitted.',
    headers: DECIDED,
    body: 'ReviewedAdmission',
    examples: {
      refused: {
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: {
          uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
          allowed: false,
          status: {
            code: 403,
            reason: 'Forbidden',
            message:
              'the pod does not fit the scheduling policies of system:serviceaccount:research:default: nodeSelector disk: expected ssd or hdd, got "tape" (scheduling policy disks)',
          },
        },
      },
    },
  },
  NoReview: {
    status: 400,
    description: 'The body is no review, or no JSON, or `timeout` is no duration.',
    headers: ANSWERED,
    body: 'InvalidRequest',
    examples: {
      noReview: { message: 'request.uid: expected a non-empty string', field: 'request.uid' },
      noJson: { message: 'expected a body in JSON' },
      noDuration: { message: 'expected a duration such as 10s as the query parameter timeout' },
    },
  },
  NoWebhookProof: {
    status: 401,
    description: 'There are tokens, or authorities, for API servers, and the request has no such proof.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: {
      noToken: { message: DOORS.kubernetes.expected },
      noCertificate: { message: EXPECTED_CERTIFICATE },
    },
  },
  RequestRejected: {
    status: 400,
    description: 'A policy has rejected the request.',
    headers: DECIDED,
    body: 'Rejection',
    type: 'text/plain',
  },
  NoSkypilotToken: {
    status: 401,
    description:
      'There are tokens for SkyPilot, and neither the password is one of them nor, once, `token` in the query.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: { noToken: { message: DOORS.skypilot.expected } },
  },
  NoSkypilotRequest: {
    status: 422,
    description: 'The body is no request, no JSON, or holds what is no YAML. The member is named.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: {
      noRequest: { message: 'task: expected a string' },
      noJson: { message: 'expected a body in JSON' },
    },
  },
  ReviewFailed: {
    status: 500,
    description: 'A policy has failed, or was too slow. The request is refused.',
    headers: ANSWERED,
    body: 'ReviewFailure',
    examples: {
      failed: {
        message: 'The request could not be checked. Please try again later, or ask the operator.',
        request_id: 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60',
      },
    },
  },
} as const satisfies Readonly<Record<string, Answer>>;

export type AnswerName = keyof typeof answers;
