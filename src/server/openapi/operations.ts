/** What can be asked of the service, for /openapi.json: which answers belong to which path. */

import type { requestSchemas } from '../../lease/request-schemas.ts';
import type { DoorName } from '../doors.ts';
import { KUBERNETES_PATHS } from '../own-paths.ts';
import { admissionExample, createExample, endExample, skypilotExample, updateExample } from './examples.ts';
import type { schemasOfKubernetes } from './kubernetes-bodies.ts';
import type { AnswerName } from './responses.ts';
import type { schemasOfSkypilot } from './skypilot-bodies.ts';

export const OPENAPI_PATH = '/openapi.json';

/** One path with one method. */
export interface Operation {
  readonly id: string;
  readonly tag: 'leases' | 'skypilot' | 'kubernetes' | 'service';
  readonly summary: string;
  readonly description: string;
  /** Query parameters. Default: none. */
  readonly parameters?: readonly (keyof typeof PARAMETERS)[];
  /** Default: none is read. */
  readonly body?: { readonly schema: RequestSchema; readonly example: object | string };
  readonly answers: readonly AnswerName[];
  /** Where those who ask may have to prove who they are. Default: nowhere. */
  readonly door?: DoorName;
}

export type RequestSchema =
  | keyof typeof requestSchemas
  | keyof Pick<typeof schemasOfSkypilot, 'SkypilotRequest'>
  | keyof Pick<typeof schemasOfKubernetes, 'AdmissionReview'>;

/** What can stand in a query, besides tokens. */
export const PARAMETERS = {
  timeout: {
    name: 'timeout',
    in: 'query',
    description:
      'How long the API server waits, as Go prints a duration. Default: the deadline of the service.',
    schema: { type: 'string', examples: ['10s'] },
  },
} as const;

/** Below the protocol, and of every path. */
export const ALWAYS: readonly AnswerName[] = ['WrongMethod', 'ArrivedTooSlowly', 'HeadersTooLarge'];
const OF_A_BODY: readonly AnswerName[] = [
  'NoRequest',
  'NoToken',
  'TooLarge',
  'WrongType',
  'Faulty',
  'Overloaded',
];

export const LEASE_OPERATIONS: Readonly<Record<string, Operation>> = {
  '/check-create': {
    id: 'checkCreate',
    tag: 'leases',
    summary: 'May this lease be created?',
    description: 'Asked before a lease is created.',
    body: { schema: 'CreateRequest', example: createExample },
    answers: ['Allowed', 'Rejected', ...OF_A_BODY],
    door: 'blazar',
  },
  '/check-update': {
    id: 'checkUpdate',
    tag: 'leases',
    summary: 'May this lease be changed?',
    description: 'Asked before a lease is changed.',
    body: { schema: 'UpdateRequest', example: updateExample },
    answers: ['Allowed', 'Rejected', ...OF_A_BODY],
    door: 'blazar',
  },
  '/commit-create': {
    id: 'commitCreate',
    tag: 'leases',
    summary: 'This lease is about to be created: record it.',
    description:
      'For a Blazar that checks first and then commits. Limits that leases share are verified once more, and what the lease takes of them is recorded; other filters are not asked again. Sent twice, it is recorded once. With `[ledger] commit = check` a check has recorded it already.',
    body: { schema: 'CreateRequest', example: createExample },
    answers: ['Committed', 'NotCommitted', ...OF_A_BODY],
    door: 'blazar',
  },
  '/commit-update': {
    id: 'commitUpdate',
    tag: 'leases',
    summary: 'This lease is about to be changed: record it.',
    description: 'As `/commit-create`, for a change of a lease.',
    body: { schema: 'UpdateRequest', example: updateExample },
    answers: ['Committed', 'NotCommitted', ...OF_A_BODY],
    door: 'blazar',
  },
  '/on-end': {
    id: 'onEnd',
    tag: 'leases',
    summary: 'This lease has ended.',
    description: 'Told after a lease has ended or was deleted; it may come late, twice or never.',
    body: { schema: 'EndRequest', example: endExample },
    answers: ['Heard', ...OF_A_BODY],
    door: 'blazar',
  },
};

export const SERVICE_OPERATIONS: Readonly<Record<string, Operation>> = {
  '/healthz': {
    id: 'getHealth',
    tag: 'service',
    summary: 'Does the process answer?',
    description: 'For who restarts it when it does not.',
    answers: ['Healthy'],
  },
  '/readyz': {
    id: 'getReadiness',
    tag: 'service',
    summary: 'Should the service be asked?',
    description:
      'For load balancers: whether the configuration is valid, and the service is not about to stop.',
    answers: ['Ready', 'NotReady'],
  },
  '/metrics': {
    id: 'getMetrics',
    tag: 'service',
    summary: 'The metrics, for Prometheus.',
    description: 'Decisions, durations, the queue, reloads, and figures of the process.',
    answers: ['Measured'],
  },
  [OPENAPI_PATH]: {
    id: 'getApiDescription',
    tag: 'service',
    summary: 'This document.',
    description: 'The same until a reload changes which paths there are.',
    answers: ['Described'],
  },
  '/': {
    id: 'getPage',
    tag: 'service',
    summary: 'The page for people.',
    description: 'What is configured, the latest decisions, and a form that judges a request.',
    answers: ['Page', 'Login'],
    door: 'blazar',
  },
};

/** At the path that the configuration says, and only where there is a policy. */
export const SKYPILOT_OPERATION: Operation = {
  id: 'reviewSkypilotRequest',
  tag: 'skypilot',
  summary: 'May this request of a user of SkyPilot be carried out, and how?',
  description:
    "SkyPilot's RESTful admin policy: what the policies make of a task and a configuration. SkyPilot refuses the request at any answer but `200`.",
  body: { schema: 'SkypilotRequest', example: skypilotExample },
  answers: [
    'Reviewed',
    'RequestRejected',
    'NoSkypilotToken',
    'TooLarge',
    'WrongType',
    'NoSkypilotRequest',
    'ReviewFailed',
    'Overloaded',
  ],
  door: 'skypilot',
};

const OF_A_POD: Pick<Operation, 'tag' | 'parameters' | 'body' | 'answers' | 'door'> = {
  tag: 'kubernetes',
  door: 'kubernetes',
  parameters: ['timeout'],
  body: { schema: 'AdmissionReview', example: admissionExample },
  answers: ['ReviewedPod', 'NoReview', 'NoWebhookProof', 'TooLarge', 'WrongType', 'Faulty', 'Overloaded'],
};

const TOKEN_IN_PATH = 'Where there are tokens for Kubernetes, one may stand behind the path, after a slash.';

/** Only where there are scheduling policies. */
export const KUBERNETES_OPERATIONS: Readonly<Record<string, Operation>> = {
  [KUBERNETES_PATHS.admission]: {
    id: 'admitPod',
    summary: 'May this pod be created, and with which defaults?',
    description: `A mutating admission webhook. What is not about pods, and operations other than CREATE and UPDATE, pass untouched. ${TOKEN_IN_PATH}`,
    ...OF_A_POD,
  },
  [KUBERNETES_PATHS.validation]: {
    id: 'validatePod',
    summary: 'May this pod be created as it stands?',
    description: `A validating admission webhook: it sees what later webhooks have made of the pod. ${TOKEN_IN_PATH}`,
    ...OF_A_POD,
  },
};
