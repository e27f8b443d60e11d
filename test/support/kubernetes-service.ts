/** A policy service for the API server of Kubernetes, and its requests. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import jsonPatch, { type Operation } from 'fast-json-patch';
import type { AdmissionAnswer } from '../../src/kubernetes/admission/admission-review.ts';
import { heldFilter } from './busy-service.ts';
import { projectFile } from './files.ts';
import { filterFolder, temporaryFolder } from './filter-folder.ts';
import { type RunningPolicyService, runServiceOf, type ServiceAnswer } from './running-service.ts';

export const ADMISSION = '/kubernetes/admission';
export const VALIDATION = '/kubernetes/validation';

interface WirePod {
  metadata: Record<string, unknown>;
  spec: Record<string, unknown>;
}

interface WireRequest extends Record<string, unknown> {
  uid: string;
  operation: string;
  namespace: string;
  object: WirePod;
  oldObject: WirePod | null;
}

/** The body of a webhook request about pods. */
export interface WireReview {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request: WireRequest;
}

/** From an API server of 1.33. */
type CapturedReview = 'create-by-replica-set' | 'create-by-daemon-set' | 'update-adding-a-toleration';

/** From an API server of 1.20: all templates request disk tape, and the changed one disk ssd. */
export type CapturedWorkload =
  | 'create-deployment'
  | 'create-replica-set-by-deployment'
  | 'create-replication-controller'
  | 'create-stateful-set'
  | 'create-job'
  | 'create-cron-job'
  | 'update-changing-a-deployment'
  | 'update-scaling-a-replica-set';

/** A request of an API server, parsed anew for each caller. */
export function admissionReview(name: CapturedReview | CapturedWorkload): WireReview {
  const file = projectFile(`test/fixtures/kubernetes/admission/${name}.json`);
  return JSON.parse(readFileSync(file, 'utf8')) as WireReview;
}

/** Creates a minimal pod. `changes`: members of the request. */
export function creating(spec: object = {}, changes: Readonly<Record<string, unknown>> = {}): WireReview {
  const resource = { group: '', version: 'v1', resource: 'pods' };
  const object = { metadata: { name: 'web', namespace: 'shop' }, spec: { ...spec } };
  const request = { uid: 'u-1', resource, operation: 'CREATE', namespace: 'shop', oldObject: null, object };
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { ...request, ...changes } };
}

/** Changes a pod from one spec to another. */
export function updating(
  before: object,
  after: object,
  changes: Readonly<Record<string, unknown>> = {},
): WireReview {
  const { object: oldObject } = creating(before).request;
  return creating(after, { operation: 'UPDATE', oldObject, ...changes });
}

/** The subject of a binding. */
type Subject = readonly [kind: 'ServiceAccount' | 'User' | 'Group', name: string, namespace?: string];

export const EVERYBODY: Subject = ['Group', 'system:serviceaccounts'];

/** Policies by name that everybody may use, in YAML. */
export function policiesForAll(specs: Readonly<Record<string, object>>): string {
  return [policies(specs), grant(Object.keys(specs), EVERYBODY)].join('---\n');
}

/** Policies that nobody may use yet. */
export function policies(specs: Readonly<Record<string, object>>): string {
  return documents(
    Object.entries(specs).map(([name, spec]) => ({ kind: 'SchedulingPolicy', metadata: { name }, spec })),
  );
}

/** A role and a binding that let a subject use policies; with a namespace, only in that one. */
export function grant(names: readonly string[], [kind, name, at]: Subject, namespace?: string): string {
  const id = [...names, kind, name, at, namespace].filter((part) => part !== undefined).join('.');
  const where = namespace === undefined ? {} : { namespace };
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: id };
  const rule = {
    apiGroups: ['extensions'],
    resources: ['schedulingpolicies'],
    verbs: ['use'],
    resourceNames: names,
  };
  return documents([
    { apiVersion: RBAC, kind: 'ClusterRole', metadata: { name: id }, rules: [rule] },
    {
      apiVersion: RBAC,
      kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
      metadata: { name: id, ...where },
      roleRef,
      subjects: [{ kind, name, ...(at !== undefined && { namespace: at }) }],
    },
  ]);
}

const RBAC = 'rbac.authorization.k8s.io/v1';

/** JSON is valid YAML. */
function documents(objects: readonly object[]): string {
  return objects.map((object) => `${JSON.stringify(object)}\n`).join('---\n');
}

/** The response. If it is not an AdmissionReview, only the status and `answer`. */
interface Reviewed {
  readonly status: number;
  readonly uid: string | undefined;
  readonly allowed: boolean | undefined;
  readonly message: string | undefined;
  readonly warnings: readonly string[];
  readonly patch: readonly Operation[];
  readonly answer: ServiceAnswer;
}

export function reviewed(answer: ServiceAnswer): Reviewed {
  const { response } = (answer.status === 200 ? answer.json : {}) as Partial<AdmissionAnswer>;
  return {
    status: answer.status,
    uid: response?.uid,
    allowed: response?.allowed,
    message: response?.status?.message,
    warnings: response?.warnings ?? [],
    patch: operationsOf(response),
    answer,
  };
}

/** Decoded like by the API server: base64, with a required type. */
export function operationsOf(response: AdmissionAnswer['response'] | undefined): Operation[] {
  if ((response?.patch === undefined) !== (response?.patchType === undefined)) {
    throw new Error('expected patch and patchType, or neither');
  }
  if (response?.patch === undefined) {
    return [];
  }
  const bytes = Buffer.from(response.patch, 'base64');
  // Node's decoder would accept any spelling of it.
  if (bytes.toString('base64') !== response.patch) {
    throw new Error('expected base64 with +, / and =');
  }
  return JSON.parse(bytes.toString('utf8')) as Operation[];
}

/** The review of a second call, after the API server has applied the patch. */
export function patched({ request, ...review }: WireReview, patch: readonly Operation[]): WireReview {
  const object = jsonPatch.applyPatch(structuredClone(request.object), patch, true, false).newDocument;
  return { ...review, request: { ...request, object } };
}

export interface KubernetesService extends RunningPolicyService {
  /** The folder of the policies. */
  readonly folder: string;
  /** Posts a review, or a body as is, to `/kubernetes/admission`, or to another path. */
  ask(body: WireReview | object | string, path?: string): Promise<Reviewed>;
}

/** Options to add to the sections of a configuration. */
export interface KubernetesSettings {
  readonly kubernetes?: Readonly<Record<string, unknown>>;
  readonly service?: Readonly<Record<string, unknown>>;
  readonly enforcement?: Readonly<Record<string, unknown>>;
}

/** The service with policies and roles in YAML. */
export async function runKubernetes(
  text: string,
  { kubernetes, service, enforcement }: KubernetesSettings = {},
): Promise<KubernetesService> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'policies.yaml'), text);
  const running = await runServiceOf({
    service: { ...service },
    kubernetes: { scheduling_policies: [folder], ...kubernetes },
    enforcement: { ...enforcement },
  });
  return { ...running, folder, ask: asking(running) };
}

/** Adds a filter that blocks each `/check-create` until `finish()`; `begun` resolves when one is blocked. */
export async function runHeld(text: string, service: NonNullable<KubernetesSettings['service']>) {
  const { filters, begun, finish } = heldFilter();
  const enforcement = { filters_path: [filterFolder(filters)], enabled_filters: ['HeldFilter'] };
  return { ...(await runKubernetes(text, { service, enforcement })), begun, finish };
}

/** Creates a client of a running service. */
export function asking({ post }: Pick<RunningPolicyService, 'post'>): KubernetesService['ask'] {
  return async (body, path = ADMISSION) => reviewed(await post(path, body));
}

export const DEDICATED = { key: 'dedicated', operator: 'Equal', value: 'web', effect: 'NoSchedule' };
/** A default for each part of a pod. */
export const PARTS = {
  allowed: { nodeSelectors: {} },
  default: {
    schedulerName: 'batch',
    priorityClassName: 'low',
    nodeSelector: { 'kubernetes.io/arch': 'amd64' },
    tolerations: [DEDICATED],
  },
};
