/** The paths of the service with their requests and responses, for /openapi.json. */

import type { ProtocolName } from '../authentication/protocols.ts';
import { type BlazarEndpoint, KUBERNETES_PATHS } from '../own-paths.ts';
import type { RequestSchemaName } from './bodies.ts';
import type { ResponseName } from './responses.ts';

export const OPENAPI_PATH = '/openapi.json';

const USER = 'c631173edec04bb7a0c3f7711153c06c';
const PROJECT = 'a0b86a98b0d343cb948e00689182efd4';
const CONTEXT = {
  user_id: USER,
  project_id: PROJECT,
  auth_url: 'https://keystone.example.org:5000/v3',
  region_name: 'RegionOne',
};

// The requests of docs/reference/protocol.md.
export const createExample = {
  context: CONTEXT,
  lease: {
    name: 'climate-run-7',
    start_date: '2026-12-01T09:00:00',
    end_date: '2026-12-03T09:00:00',
    status: 'CREATING',
    user_id: USER,
    project_id: PROJECT,
    before_end_date: '',
    reservations: [
      {
        resource_type: 'physical:host',
        min: 1,
        max: 2,
        hypervisor_properties: '',
        resource_properties: '["==", "$node_type", "compute_cascadelake_r"]',
        allocations: [
          {
            created_at: '2026-11-21 01:52:26.671983',
            id: '1',
            vcpus: 48,
            hypervisor_hostname: '32af5a7a-e7a3-4883-a643-828e3f63bf51',
            availability_zone: 'az1',
            node_type: 'compute_cascadelake_r',
            gpu: 'False',
          },
        ],
      },
    ],
  },
};

export const updateExample = {
  context: CONTEXT,
  current_lease: {
    id: '5b8f6a1e-6d3a-4e0b-8d35-0e9f4a0b2c11',
    name: 'climate-run-7',
    user_id: USER,
    project_id: PROJECT,
    start_date: '2026-12-01T09:00:00',
    end_date: '2026-12-03T09:00:00',
    status: 'ACTIVE',
    reservations: [],
    events: [],
  },
  lease: {
    start_date: '2026-12-01T09:00:00',
    end_date: '2026-12-05T09:00:00',
    reservations: [],
  },
};

/** The lease as Blazar sends it after its end. */
export const endExample = { context: updateExample.context, lease: updateExample.current_lease };

/** The body of SkyPilot 0.13 for `sky launch`: a JSON text that contains JSON. */
const skypilotExample = JSON.stringify({
  task: 'name: train\nresources:\n  accelerators:\n    L4: 1\nrun: python train.py\n',
  skypilot_config: '{}\n',
  request_name: 'launch',
  request_options: { cluster_name: 'train', idle_minutes_to_autostop: null, down: false, dryrun: false },
  at_client_side: false,
  user: 'id: 0a1b2c3d\nname: lin\n',
  client_api_version: 57,
  client_version: '0.13.0',
});

/** The body of an API server for a pod. */
const admissionExample = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    name: 'train',
    namespace: 'research',
    operation: 'CREATE',
    userInfo: { username: 'lin', groups: ['system:authenticated'] },
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'train', namespace: 'research' },
      spec: {
        serviceAccountName: 'default',
        schedulerName: 'default-scheduler',
        containers: [{ name: 'train', image: 'registry.example.org/train:1' }],
      },
    },
    oldObject: null,
    dryRun: false,
  },
};

export interface Operation {
  readonly path: string;
  readonly method: 'get' | 'post';
  readonly id: string;
  readonly tag: 'leases' | 'skypilot' | 'kubernetes' | 'service';
  readonly summary: string;
  readonly description: string;
  /** Query parameters besides tokens. Default: none. */
  readonly parameters?: readonly object[];
  /** Default: none. */
  readonly body?: { readonly schema: RequestSchemaName; readonly example: object | string };
  /** Besides those of every path, and of every path with a body. */
  readonly responses: readonly ResponseName[];
  /** The authenticator that clients may have to pass. Default: none. */
  readonly authenticator?: ProtocolName;
}

/** Responses of every path, independent of the protocol. */
export const ALWAYS: readonly ResponseName[] = ['WrongMethod', 'ArrivedTooSlowly', 'HeadersTooLarge'];

type LeaseOperation = Required<Pick<Operation, 'id' | 'summary' | 'description' | 'body'>> & {
  readonly answers: readonly [ResponseName, ResponseName];
};

/** Under `/` and under `/v1`. */
function leaseOperations(name: BlazarEndpoint, { answers, ...operation }: LeaseOperation): Operation[] {
  const common = {
    method: 'post',
    tag: 'leases',
    responses: [...answers, 'NoRequest', 'NoToken', 'Faulty', 'OverloadedOrUnproven'],
    authenticator: 'blazar',
  } as const;
  return [
    { ...common, ...operation, path: `/${name}` },
    { ...common, ...operation, path: `/v1/${name}`, id: `${operation.id}V1` },
  ];
}

export const LEASE_OPERATIONS: readonly Operation[] = [
  ...leaseOperations('check-create', {
    id: 'checkCreate',
    summary: 'Check whether a lease may be created',
    description: 'Blazar calls it before it creates a lease.',
    body: { schema: 'CreateRequest', example: createExample },
    answers: ['Allowed', 'Rejected'],
  }),
  ...leaseOperations('check-update', {
    id: 'checkUpdate',
    summary: 'Check whether a lease may be changed',
    description: 'Blazar calls it before it changes a lease.',
    body: { schema: 'UpdateRequest', example: updateExample },
    answers: ['Allowed', 'Rejected'],
  }),
  ...leaseOperations('commit-create', {
    id: 'commitCreate',
    summary: 'Record a lease that is about to be created',
    description:
      'For a Blazar that checks first and commits later. Verifies shared limits again and records the lease; other filters do not run again. A repeated request is recorded once. With `[ledger] commit = check`, the check has already recorded the lease.',
    body: { schema: 'CreateRequest', example: createExample },
    answers: ['Committed', 'NotCommitted'],
  }),
  ...leaseOperations('commit-update', {
    id: 'commitUpdate',
    summary: 'Record a change of a lease that is about to be made',
    description: 'Like `/commit-create`, for a change of a lease.',
    body: { schema: 'UpdateRequest', example: updateExample },
    answers: ['Committed', 'NotCommitted'],
  }),
  ...leaseOperations('on-end', {
    id: 'onEnd',
    summary: 'Report that a lease has ended',
    description: 'Blazar calls it after a lease has ended or was deleted, perhaps late, twice or never.',
    body: { schema: 'EndRequest', example: endExample },
    answers: ['Heard', 'Forbidden'],
  }),
];

const FOR_OPERATORS = { method: 'get', tag: 'service' } as const;

export const SERVICE_OPERATIONS: readonly Operation[] = [
  {
    ...FOR_OPERATORS,
    path: '/healthz',
    id: 'getHealth',
    summary: 'Check whether the process responds',
    description: 'A liveness probe.',
    responses: ['Healthy'],
  },
  {
    ...FOR_OPERATORS,
    path: '/readyz',
    id: 'getReadiness',
    summary: 'Check whether the service is ready',
    description:
      'A readiness probe, for load balancers: the configuration is valid, the scheduling policies of the cluster are known, and the service is not about to stop.',
    responses: ['Ready', 'NotReady'],
  },
  {
    ...FOR_OPERATORS,
    path: '/metrics',
    id: 'getMetrics',
    summary: 'Read the metrics, for Prometheus',
    description:
      'Decisions, durations, the queue, reloads, and figures of the process. With a token of a reader or operator, or one of `metrics_tokens`, single budgets are included if `metrics_budgets` is above 0.',
    responses: ['Measured', 'NoMetricsToken', 'TooManyTokens'],
    authenticator: 'blazar',
  },
  {
    ...FOR_OPERATORS,
    path: OPENAPI_PATH,
    id: 'getApiDescription',
    summary: 'Read this document',
    description: 'It changes when a reload changes the paths.',
    responses: ['Described'],
  },
  {
    ...FOR_OPERATORS,
    path: '/',
    id: 'getPage',
    summary: 'Show the console',
    description: 'The overview of the console: enabled filters and latest refusals.',
    responses: ['Page', 'Login'],
    authenticator: 'blazar',
  },
];

/** At the configured path, and only if there is a policy. */
export const SKYPILOT_OPERATION: Omit<Operation, 'path'> = {
  method: 'post',
  id: 'reviewSkypilotRequest',
  tag: 'skypilot',
  summary: 'Check and change a request of SkyPilot',
  description:
    "SkyPilot's RESTful admin policy: returns the task and the configuration as changed by the policies. SkyPilot refuses the request unless the status is `200`.",
  body: { schema: 'SkypilotRequest', example: skypilotExample },
  responses: [
    'Reviewed',
    'RequestRejected',
    'NoSkypilotToken',
    'NoSkypilotRequest',
    'ReviewFailed',
    'Overloaded',
  ],
  authenticator: 'skypilot',
};

const TOKEN_IN_PATH = 'If there are tokens for Kubernetes, one may be appended to the path, after a slash.';

const POD_REVIEW = {
  method: 'post',
  tag: 'kubernetes',
  authenticator: 'kubernetes',
  parameters: [
    {
      name: 'timeout',
      in: 'query',
      description:
        'The timeout of the API server, in the duration format of Go. Default: the deadline of the service.',
      schema: { type: 'string', examples: ['10s'] },
    },
  ],
  body: { schema: 'AdmissionReview', example: admissionExample },
  responses: ['ReviewedPod', 'NoReview', 'NoWebhookProof', 'Faulty'],
} as const;

/** Only if there are scheduling policies. */
export const KUBERNETES_OPERATIONS: readonly Operation[] = [
  {
    ...POD_REVIEW,
    path: KUBERNETES_PATHS.admission,
    id: 'admitPod',
    summary: 'Check a new pod, and set defaults',
    description: `A mutating admission webhook for new pods and for DaemonSets. Other objects are checked as at ${KUBERNETES_PATHS.validation}. ${TOKEN_IN_PATH}`,
  },
  {
    ...POD_REVIEW,
    path: KUBERNETES_PATHS.validation,
    id: 'validatePod',
    summary: 'Check a new pod',
    description: `A validating admission webhook: it sees the pod after the changes of other webhooks. It also checks templates of DaemonSets, bindings and scheduling policies. For Deployments, StatefulSets, ReplicaSets, ReplicationControllers, Jobs and CronJobs whose pods would be refused, the response has warnings, or is a refusal with \`workloads = refuse\`. Other objects, and operations other than CREATE and UPDATE, pass unchanged. ${TOKEN_IN_PATH}`,
  },
];
