/** The answers of the policy service: status, headers and body, by their names in /openapi.json. */
import { z } from 'zod';
import { EXPECTED_CERTIFICATE, PROTOCOLS } from '../authentication/protocols.ts';
import { REQUEST_ID_HEADER } from '../request-state.ts';
import { EXPECTED_TOKEN } from '../users/user-authenticator.ts';
import { TOO_MANY } from '../users/wrong-tokens.ts';
import type { AnswerSchemaName } from './bodies.ts';

const requestId = z.string().regex(/^[Rr][Ee][Qq]-[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/);

/** The id that a client may send with a request. Any other text is ignored. */
export const REQUEST_ID = { name: REQUEST_ID_HEADER, schema: requestId } as const;

/** The headers of answers that clients may read. */
export const headerSchemas = {
  [REQUEST_ID_HEADER]: requestId.meta({ description: "The id that the client sent, or else the service's." }),
  'X-Enforcement-Generation': z.int().min(1).meta({
    description:
      'The number of the configuration that decided: 1 since the start, one more with each reload.',
  }),
  'Retry-After': z.int().min(0).meta({ description: 'Seconds.' }),
  'WWW-Authenticate': z
    .string()
    .optional()
    .meta({
      description: 'With `keystone_auth`: where to get a token.',
      examples: ['Keystone uri="https://keystone.example.org:5000/v3"'],
    }),
  Allow: z.string().meta({ description: 'The allowed methods.', examples: ['POST'] }),
} as const;

export interface ResponseEntry {
  readonly status: number;
  readonly description: string;
  readonly headers: readonly (keyof typeof headerSchemas)[];
  /** Default: none. */
  readonly body?: AnswerSchemaName;
  /** Default `application/json`. */
  readonly type?: string;
  /** Example bodies, by name. */
  readonly examples?: Readonly<Record<string, unknown>>;
}

/** Every request that reaches the service gets these headers. */
const ANSWERED = [REQUEST_ID_HEADER] as const;
const DECIDED = [REQUEST_ID_HEADER, 'X-Enforcement-Generation'] as const;

export const RESPONSES = {
  Allowed: { status: 204, description: 'The lease is allowed.', headers: DECIDED },
  Committed: { status: 204, description: 'The lease is recorded.', headers: DECIDED },
  Heard: { status: 204, description: 'The filters were notified.', headers: DECIDED },
  Healthy: {
    status: 200,
    description: 'The process answers.',
    headers: ANSWERED,
    body: 'Health',
    examples: { healthy: { status: 'ok' } },
  },
  Ready: {
    status: 200,
    description:
      'The configuration is valid, the scheduling policies of the cluster are known, and the service is not about to stop.',
    headers: ANSWERED,
    body: 'Readiness',
    examples: {
      ready: { status: 'ready', generation: 1, problems: [] },
    },
  },
  Measured: {
    status: 200,
    description: 'The metrics.',
    headers: ANSWERED,
    body: 'Metrics',
    type: 'text/plain',
  },
  NoMetricsToken: {
    status: 401,
    description: 'The token shows no single budgets. Without any token, everything else is shown.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: { noMetricsToken: { message: EXPECTED_TOKEN } },
  },
  TooManyTokens: {
    status: 429,
    description: 'There were ten wrong tokens from this address within a minute.',
    headers: [REQUEST_ID_HEADER, 'Retry-After'],
    body: 'Refusal',
    examples: {
      tooManyTokens: { message: TOO_MANY },
    },
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
      'The service has tokens, and neither `X-Auth-Token` nor a session holds one of them: a login form.',
    headers: ANSWERED,
    body: 'Page',
    type: 'text/html',
  },
  Described: { status: 200, description: 'This document.', headers: ANSWERED, body: 'ApiDescription' },
  NoRequest: {
    status: 400,
    description: 'The body is not JSON, or not a request.',
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
    description:
      'The service has tokens, and `X-Auth-Token` is not one of them; nor, with `keystone_auth`, a token that Keystone knows.',
    headers: [REQUEST_ID_HEADER, 'WWW-Authenticate'],
    body: 'Refusal',
    examples: { noToken: { message: PROTOCOLS.blazar.expected } },
  },
  Rejected: {
    status: 403,
    description:
      'A filter rejected the lease, or failed; or the token of Keystone has none of `service_roles`.',
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
  Forbidden: {
    status: 403,
    description: 'The token of Keystone has none of `service_roles`.',
    headers: DECIDED,
    body: 'Refusal',
    examples: {
      forbidden: {
        message:
          'expected a token of a user with one of the roles service, admin in the project of the token',
      },
    },
  },
  NotCommitted: {
    status: 403,
    description:
      'A shared limit has been used up since the check, or the lease could not be recorded; or the token of Keystone has none of `service_roles`.',
    headers: DECIDED,
    body: 'Refusal',
    examples: {
      refused: {
        message: 'Project climate has 20 pending or active leases; the most allowed is 20.',
      },
      failed: {
        message:
          'The ledger of leases cannot be read or written at the moment. Please try again later, or ask the operator.',
      },
    },
  },
  WrongMethod: {
    status: 405,
    description: 'The answer to other methods at this path.',
    headers: [REQUEST_ID_HEADER, 'Allow'],
    body: 'Refusal',
    examples: { wrongMethod: { message: 'PUT is not possible here' } },
  },
  ArrivedTooSlowly: {
    status: 408,
    description: 'The request did not arrive within `deadline`. The connection is closed.',
    headers: [],
  },
  TooLarge: {
    status: 413,
    description: 'The body is longer than `body_limit`, as sent or decompressed.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: { tooLarge: { message: 'expected a body of at most 8388608 bytes' } },
  },
  WrongType: {
    status: 415,
    description: 'The content type is not JSON in UTF-8, or the encoding is not gzip, deflate or br.',
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
    description: 'A fault of the service. Nothing was decided, and nothing is allowed.',
    headers: ANSWERED,
    body: 'Fault',
    examples: { faulty: { request_id: 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60' } },
  },
  NotAnswered: {
    status: 500,
    description: 'A fault of the service. Whether something was changed is not known: read it again.',
    headers: ANSWERED,
    body: 'Problem',
    examples: {
      notAnswered: {
        message: 'this is a fault of the service; its log has the cause under the request_id',
        request_id: 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60',
      },
    },
  },
  NotAsked: {
    status: 400,
    description: 'A parameter, the body or a header is not as described. `field` says which.',
    headers: ANSWERED,
    body: 'Problem',
    examples: { notAsked: { message: 'expected the cursor of the page before', field: 'after' } },
  },
  NoPerson: {
    status: 401,
    description:
      'Something must be shown: a token, or the cookie of the console, and it is missing or not valid.',
    headers: [REQUEST_ID_HEADER, 'WWW-Authenticate'],
    body: 'Problem',
    examples: { noPerson: { message: 'expected a valid token in the header X-Auth-Token' } },
  },
  NotAllowed: {
    status: 403,
    description: 'The caller may not do this, or belongs to no such project.',
    headers: ANSWERED,
    body: 'Problem',
    examples: {
      notAllowed: {
        message: 'expected a caller with more rights: see "Who may do what" in the documentation',
      },
    },
  },
  NotNow: {
    status: 503,
    description: 'The ledger or Keystone does not answer, or too much is under way.',
    headers: [REQUEST_ID_HEADER, 'Retry-After'],
    body: 'Problem',
    examples: { notNow: { message: 'the ledger does not answer; please try again' } },
  },
  NotReady: {
    status: 503,
    description:
      'The configuration is not valid, the scheduling policies of the cluster are not known, or the service is about to stop.',
    headers: ANSWERED,
    body: 'Readiness',
    examples: {
      draining: { status: 'draining', generation: 1, problems: [] },
      notValid: {
        status: 'configuration not valid',
        generation: 1,
        problems: ['/etc/blazar/blazar.conf:3: [enforcement] max_lease_duration: not valid'],
      },
    },
  },
  Overloaded: {
    status: 503,
    description: 'Too many decisions are under way and waiting, or the request waited too long.',
    headers: [REQUEST_ID_HEADER, 'Retry-After'],
    body: 'Refusal',
    examples: {
      overloaded: { message: 'Too many decisions are under way and waiting. Please try again.' },
    },
  },
  OverloadedOrUnproven: {
    status: 503,
    description:
      'Too many decisions are under way and waiting, or the request waited too long; or Keystone does not answer, and the token is not known.',
    headers: [REQUEST_ID_HEADER, 'Retry-After'],
    body: 'Refusal',
    examples: {
      overloaded: { message: 'Too many decisions are under way and waiting. Please try again.' },
      unproven: {
        message: 'the token cannot be validated now, because Keystone does not answer; please try again',
      },
    },
  },
  Reviewed: {
    status: 200,
    description: 'The request to carry out, as the policies leave it.',
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
    description: 'The body is not JSON, or not a review, or `timeout` is not a duration.',
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
    description:
      'API servers must show a token, or a client certificate, and the request has none that is accepted.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: {
      noToken: { message: PROTOCOLS.kubernetes.expected },
      noCertificate: { message: EXPECTED_CERTIFICATE },
    },
  },
  RequestRejected: {
    status: 400,
    description: 'A policy rejected the request.',
    headers: DECIDED,
    body: 'Rejection',
    type: 'text/plain',
  },
  NoSkypilotToken: {
    status: 401,
    description:
      'There are tokens for SkyPilot, and neither the password nor `token` in the query, given once, is one of them.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: { noToken: { message: PROTOCOLS.skypilot.expected } },
  },
  NoSkypilotRequest: {
    status: 422,
    description:
      'The body is not JSON, not a request, or has a member that is not YAML. The message names the member.',
    headers: ANSWERED,
    body: 'Refusal',
    examples: {
      noRequest: { message: 'task: expected a string' },
      noJson: { message: 'expected a body in JSON' },
    },
  },
  ReviewFailed: {
    status: 500,
    description: 'A policy failed, or was too slow. The request is refused.',
    headers: ANSWERED,
    body: 'ReviewFailure',
    examples: {
      failed: {
        message: 'The request could not be checked. Please try again later, or ask the operator.',
        request_id: 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60',
      },
    },
  },
} as const satisfies Readonly<Record<string, ResponseEntry>>;

export type ResponseName = keyof typeof RESPONSES;
