/** The responses of the policy service: status, headers and body, by their names in /openapi.json. */
import { z } from 'zod';
import { EXPECTED_CERTIFICATE, PROTOCOLS } from '../authentication/protocols.ts';
import { REQUEST_ID_HEADER } from '../request-state.ts';
import { EXPECTED_TOKEN } from '../users/user-authenticator.ts';
import { TOO_MANY } from '../users/wrong-tokens.ts';
import type { AnswerSchemaName } from './bodies.ts';

const requestId = z.string().regex(/^[Rr][Ee][Qq]-[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/);

/** The id that a client may send with a request. Any other text is ignored. */
export const REQUEST_ID = { name: REQUEST_ID_HEADER, schema: requestId } as const;

export const headerSchemas = {
  [REQUEST_ID_HEADER]: requestId.meta({
    description: 'The id that the client sent, otherwise one of the service.',
  }),
  'X-Enforcement-Generation': z.int().min(1).meta({
    description: 'The number of the configuration that decided: 1 at the start, one more with each reload.',
  }),
  'Retry-After': z.int().min(0).meta({ description: 'Seconds.' }),
  'WWW-Authenticate': z
    .string()
    .optional()
    .meta({
      description: 'With `keystone_auth`: the URL of Keystone.',
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
  readonly examples?: Readonly<Record<string, unknown>>;
}

type Headers = ResponseEntry['headers'];

/** The headers of all responses, except those of the socket. */
const ANSWERED: Headers = [REQUEST_ID_HEADER];
const DECIDED: Headers = [REQUEST_ID_HEADER, 'X-Enforcement-Generation'];
const LATER: Headers = [REQUEST_ID_HEADER, 'Retry-After'];
const CHALLENGED: Headers = [REQUEST_ID_HEADER, 'WWW-Authenticate'];

function answer(
  status: number,
  description: string,
  body: AnswerSchemaName,
  more: Partial<ResponseEntry> = {},
): ResponseEntry {
  return { status, description, headers: ANSWERED, body, ...more };
}

/** `messages`: example messages, by name. */
function refusal(
  status: number,
  description: string,
  messages: Readonly<Record<string, string>>,
  headers = ANSWERED,
): ResponseEntry {
  const examples = Object.entries(messages).map(([name, message]) => [name, { message }]);
  return answer(status, description, 'Refusal', { headers, examples: Object.fromEntries(examples) });
}

/** An error that only the API has. `example`: its body without the members of all problems. */
function problem(
  status: number,
  description: string,
  name: string,
  example: { readonly message: string; readonly field?: string; readonly request_id?: string },
  headers = ANSWERED,
): ResponseEntry {
  return answer(status, description, 'Problem', { headers, examples: { [name]: example } });
}

const FAULT_ID = 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60';
const OVERLOADED = 'Too many decisions are under way and waiting. Please try again.';

export const RESPONSES = {
  Allowed: { status: 204, description: 'The lease is allowed.', headers: DECIDED },
  Committed: { status: 204, description: 'The lease is recorded.', headers: DECIDED },
  Heard: { status: 204, description: 'The filters were notified.', headers: DECIDED },
  Healthy: answer(200, 'The process responds.', 'Health', { examples: { healthy: { status: 'ok' } } }),
  Ready: answer(
    200,
    'The configuration is valid, the scheduling policies of the cluster are known, and the service is not about to stop.',
    'Readiness',
    { examples: { ready: { status: 'ready', generation: 1, problems: [] } } },
  ),
  Measured: answer(200, 'The metrics.', 'Metrics', { type: 'text/plain' }),
  NoMetricsToken: refusal(
    401,
    'The token does not give access to single budgets. Without a token, everything else is shown.',
    { noMetricsToken: EXPECTED_TOKEN },
  ),
  TooManyTokens: refusal(
    429,
    'There were ten wrong tokens from this address within a minute.',
    { tooManyTokens: TOO_MANY },
    LATER,
  ),
  Page: answer(200, 'The page.', 'Page', { type: 'text/html' }),
  Login: answer(
    401,
    'Tokens are configured, and neither `X-Auth-Token` nor a session has a valid one: a login form.',
    'Page',
    { type: 'text/html' },
  ),
  Described: answer(200, 'This document.', 'ApiDescription'),
  NoRequest: answer(400, 'The body is not JSON, or not a request.', 'InvalidRequest', {
    examples: {
      noRequest: {
        message: 'lease.start_date: expected an ISO 8601 date, got nothing',
        field: 'lease.start_date',
      },
      noJson: { message: 'expected a body in JSON' },
    },
  }),
  NoToken: refusal(
    401,
    'Tokens are configured, and `X-Auth-Token` is not one of them; nor, with `keystone_auth`, a valid token of Keystone.',
    { noToken: PROTOCOLS.blazar.expected },
    CHALLENGED,
  ),
  Rejected: refusal(
    403,
    'A filter rejected the lease, or failed; or the token of Keystone has none of `service_roles`.',
    {
      rejected:
        'The lease is 864000 seconds (10 days) long; the longest allowed for any lease is 172800 seconds (2 days).',
      failed: 'The lease could not be checked. Please try again later, or ask the operator.',
    },
    DECIDED,
  ),
  Forbidden: refusal(
    403,
    'The token of Keystone has none of `service_roles`.',
    {
      forbidden:
        'expected a token of a user with one of the roles service, admin in the project of the token',
    },
    DECIDED,
  ),
  NotCommitted: refusal(
    403,
    'A shared limit was used up since the check, or the lease could not be recorded; or the token of Keystone has none of `service_roles`.',
    {
      refused: 'Project climate has 20 pending or active leases; the most allowed is 20.',
      failed:
        'The ledger of leases cannot be read or written at the moment. Please try again later, or ask the operator.',
    },
    DECIDED,
  ),
  WrongMethod: refusal(
    405,
    'The path does not support this method.',
    { wrongMethod: 'PUT is not allowed here' },
    [REQUEST_ID_HEADER, 'Allow'],
  ),
  ArrivedTooSlowly: {
    status: 408,
    description: 'The request did not arrive within `deadline`. The connection is closed.',
    headers: [],
  },
  TooLarge: refusal(413, 'The body is longer than `body_limit`, as sent or decompressed.', {
    tooLarge: 'expected a body of at most 8388608 bytes',
  }),
  WrongType: refusal(
    415,
    'The content type is not JSON in UTF-8, or the encoding is not gzip, deflate or br.',
    {
      wrongType: 'expected a body of type application/json',
      wrongCharset: 'expected a body in UTF-8',
      wrongEncoding: 'expected a body in UTF-8, as it is or compressed by gzip, deflate or br',
    },
  ),
  HeadersTooLarge: {
    status: 431,
    description: 'The headers are longer than 16 KiB. The connection is closed.',
    headers: [],
  },
  Faulty: answer(500, 'A fault of the service. Nothing was decided, and nothing is allowed.', 'Fault', {
    examples: { faulty: { request_id: FAULT_ID } },
  }),
  NotAnswered: problem(
    500,
    'A fault of the service. Whether something was changed is unknown: read it again.',
    'notAnswered',
    {
      message: 'this is a fault of the service; its log has the cause under the request_id',
      request_id: FAULT_ID,
    },
  ),
  NotAsked: problem(400, 'A parameter, the body or a header is not as described; see `field`.', 'notAsked', {
    message: 'this page of the list does not exist: start at its first page',
    field: 'after',
  }),
  NoPerson: problem(
    401,
    'The token, or the cookie of the console, is missing or not valid.',
    'noPerson',
    { message: 'expected a valid token in the header X-Auth-Token' },
    CHALLENGED,
  ),
  NotAllowed: problem(
    403,
    'The caller has no right to do this, or is not a member of the project.',
    'notAllowed',
    {
      message: 'expected a caller with more rights: see "Who may do what" in the documentation',
    },
  ),
  NotNow: problem(
    503,
    'The ledger or Keystone does not answer, or too many requests are under way.',
    'notNow',
    { message: 'the ledger does not answer; please try again' },
    LATER,
  ),
  NotReady: answer(
    503,
    'The configuration is not valid, the scheduling policies of the cluster are not known, or the service is about to stop.',
    'Readiness',
    {
      examples: {
        draining: { status: 'draining', generation: 1, problems: [] },
        notValid: {
          status: 'configuration not valid',
          generation: 1,
          problems: ['/etc/blazar/blazar.conf:3: [enforcement] max_lease_duration: not valid'],
        },
      },
    },
  ),
  Overloaded: refusal(
    503,
    'Too many decisions are under way and queued, or the request was queued too long.',
    { overloaded: OVERLOADED },
    LATER,
  ),
  OverloadedOrUnproven: refusal(
    503,
    'Too many decisions are under way and queued, or the request was queued too long; or Keystone does not answer, and the token is not cached.',
    {
      overloaded: OVERLOADED,
      unproven: 'the token cannot be validated now, because Keystone does not answer; please try again',
    },
    LATER,
  ),
  Reviewed: answer(200, 'The request to carry out, as changed by the policies.', 'ReviewedRequest', {
    headers: DECIDED,
    examples: {
      reviewed: JSON.stringify({ task: 'name: train\nrun: python train.py\n', skypilot_config: '{}\n' }),
    },
  }),
  ReviewedPod: answer(200, 'Whether the pod is admitted.', 'ReviewedAdmission', {
    headers: DECIDED,
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
  }),
  NoReview: answer(
    400,
    'The body is not JSON, or not a review, or `timeout` is not a duration.',
    'InvalidRequest',
    {
      examples: {
        noReview: { message: 'request.uid: expected a non-empty string', field: 'request.uid' },
        noJson: { message: 'expected a body in JSON' },
        noDuration: { message: 'expected a duration such as 10s as the query parameter timeout' },
      },
    },
  ),
  NoWebhookProof: refusal(
    401,
    'API servers must show a token or a client certificate, and the request has no valid one.',
    { noToken: PROTOCOLS.kubernetes.expected, noCertificate: EXPECTED_CERTIFICATE },
  ),
  RequestRejected: answer(400, 'A policy rejected the request.', 'Rejection', {
    headers: DECIDED,
    type: 'text/plain',
  }),
  NoSkypilotToken: refusal(
    401,
    'Tokens for SkyPilot are configured, and neither the password nor a single `token` in the query is one of them.',
    { noToken: PROTOCOLS.skypilot.expected },
  ),
  NoSkypilotRequest: refusal(
    422,
    'The body is not JSON, not a request, or has a member that is not YAML. The message names the member.',
    { noRequest: 'task: expected a string', noJson: 'expected a body in JSON' },
  ),
  ReviewFailed: answer(500, 'A policy failed or timed out. The request is refused.', 'ReviewFailure', {
    examples: {
      failed: {
        message: 'The request could not be checked. Please try again later, or ask the operator.',
        request_id: FAULT_ID,
      },
    },
  }),
} satisfies Readonly<Record<string, ResponseEntry>>;

export type ResponseName = keyof typeof RESPONSES;
