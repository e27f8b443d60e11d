/** Requests to judge by both: by the webhook, and by the policies that were exported. */
import fc from 'fast-check';
import type { BindingRequest, PodRequest } from '../../../src/kubernetes/admission/admission-review.ts';
import {
  type AdmissionPolicy,
  admissionPolicy,
  type ExportOptions,
} from '../../../src/kubernetes/export/admission-policies.ts';
import { SUBJECTS, type Subject } from '../../../src/kubernetes/export/subject.ts';
import { PolicyAccess, serviceAccount } from '../../../src/kubernetes/policies/access.ts';
import {
  DAEMON_SET_TOLERATIONS,
  SYSTEM_TOLERATIONS,
} from '../../../src/kubernetes/policies/cluster-settings.ts';
import { MERGE_STRATEGIES, type MergeStrategy } from '../../../src/kubernetes/policies/merge.ts';
import { type Pod, parsePod } from '../../../src/kubernetes/policies/pod.ts';
import type { SchedulingPolicy } from '../../../src/kubernetes/policies/policy.ts';
import { SchedulingPolicies } from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { policy } from '../../support/scheduling-policies.ts';
import { reviewer } from '../admission/reviewer.ts';
import { boundIn, clusterRole, everywhere } from '../policies/documents/roles.ts';
import { type Case, cases } from '../policies/model/arbitraries.ts';
import { type Answer, type Judgement, judge, type Request } from './admission-policy-evaluator.ts';

const NAMESPACE = 'research';
const ACCOUNT = 'trainer';
const CONTROLLER = 'system:serviceaccount:kube-system:daemon-set-controller';

export interface AdmissionCase {
  readonly policies: readonly SchedulingPolicy[];
  /** Whether the account may use each policy: in its namespace, everywhere, or not. */
  readonly rights: readonly ('namespace' | 'cluster' | 'none')[];
  readonly strategy: MergeStrategy;
  readonly subject: Subject;
  readonly pod: Pod;
  readonly current: Pod | undefined;
  readonly username: string;
  readonly node: string;
  readonly refusesTopologySpread: boolean;
  readonly defaultPriorityClass: string | undefined;
}

export const OPTIONS: ExportOptions = {
  name: 'test',
  strategy: 'deep',
  systemTolerations: SYSTEM_TOLERATIONS,
  daemonSetTolerations: DAEMON_SET_TOLERATIONS,
  defaultPriorityClass: undefined,
  topologySpreadConstraints: 'allow',
  schedulers: ['system:kube-scheduler'],
  exemptNamespaces: [],
  isTrial: false,
};

/** The webhook's word, and that of the exported policy. */
export function bothOf(one: AdmissionCase): { webhook: boolean; exported: Judgement } {
  return { webhook: byWebhook(one), exported: byExport(one) };
}

export function byWebhook({
  policies,
  rights,
  strategy,
  defaultPriorityClass,
  refusesTopologySpread,
  ...one
}: AdmissionCase) {
  const source = new SchedulingPolicies(
    { policies, problems: [], ...rolesFor(policies, rights, subjectsOf(one)) },
    {
      strategy,
      defaultPriorityClass,
      topologySpreadConstraints: refusesTopologySpread ? 'refuse' : 'allow',
    },
  );
  return reviewer(source, {}).review(requestOf(one), { addDefaults: false }).allowed;
}

type Asked = Pick<AdmissionCase, 'subject' | 'pod' | 'current' | 'username' | 'node'>;

function requestOf({ subject, pod, current, username, node }: Asked): PodRequest | BindingRequest {
  const common = {
    uid: '',
    name: 'web',
    namespace: NAMESPACE,
    username,
    groups: groupsOf(username),
    dryRun: false,
  };
  return subject === 'bindings'
    ? { ...common, kind: 'binding', pod: undefined, node }
    : {
        ...common,
        kind: subject === 'pods' ? 'pod' : 'template',
        pod,
        current,
        isUpdate: current !== undefined,
      };
}

function byExport(one: AdmissionCase): Judgement {
  return judge(exportOf(one), admissionRequest(one));
}

/** The exported policy that judges the request, with a name of its own. */
export function exportOf(
  { policies, strategy, subject, defaultPriorityClass, refusesTopologySpread }: AdmissionCase,
  name = OPTIONS.name,
): AdmissionPolicy {
  return admissionPolicy(policies, subject, {
    ...OPTIONS,
    name,
    strategy,
    defaultPriorityClass,
    topologySpreadConstraints: refusesTopologySpread ? 'refuse' : 'allow',
  });
}

export function admissionRequest({
  subject,
  pod,
  current,
  username,
  node,
  policies,
  rights,
}: AdmissionCase): Request {
  const whole = (held: Pod) =>
    subject === 'pods' ? held : { metadata: { name: 'web' }, spec: { template: held } };
  return {
    operation: current === undefined || subject === 'bindings' ? 'CREATE' : 'UPDATE',
    namespace: NAMESPACE,
    userInfo: { username, groups: groupsOf(username) },
    object: subject === 'bindings' ? { target: { kind: 'Node', name: node } } : whole(pod),
    oldObject: current === undefined || subject === 'bindings' ? null : whole(current),
    authorizer: answers(policies, rights, { subject, username }),
  };
}

function groupsOf(username: string): string[] {
  const ofNode = username.startsWith('system:node:') ? ['system:nodes'] : [];
  const [, , namespace = '', name] = username.split(':');
  return name === undefined
    ? [...ofNode, 'system:authenticated']
    : [...serviceAccount(namespace, name).groups];
}

function subjectsOf({ subject, username }: Pick<AdmissionCase, 'subject' | 'username'>): string {
  return subject === 'bindings' ? username : serviceAccount(NAMESPACE, ACCOUNT).user;
}

function rolesFor(policies: readonly SchedulingPolicy[], rights: AdmissionCase['rights'], user: string) {
  const to = { kind: 'User', name: user } as const;
  return {
    roles: policies.map(({ name, group }) =>
      clusterRole(`use-${name}`, {
        apiGroups: [group],
        resources: ['schedulingpolicies'],
        resourceNames: [name],
        verbs: ['use'],
      }),
    ),
    bindings: policies.flatMap(({ name }, index) => {
      const right = rights[index];
      return right === 'namespace'
        ? [boundIn(NAMESPACE, 'ClusterRole', `use-${name}`, to)]
        : right === 'cluster'
          ? [everywhere(`use-${name}`, to)]
          : [];
    }),
  };
}

/** As the authorizer of a cluster with these roles. */
function answers(
  policies: readonly SchedulingPolicy[],
  rights: AdmissionCase['rights'],
  of: Pick<AdmissionCase, 'subject' | 'username'>,
): Answer {
  const { roles, bindings } = rolesFor(policies, rights, subjectsOf(of));
  const access = new PolicyAccess(policies, roles, bindings);
  return ({ user, group, resource, namespace, name, verb }) =>
    resource === 'schedulingpolicies' &&
    verb === 'use' &&
    policies.some((one) => one.name === name && one.group === group) &&
    access.usableBy({ user, groups: [], namespace }).includes(name);
}

const spread = fc.array(
  fc.record({ whenUnsatisfiable: fc.constantFrom('ScheduleAnyway', 'DoNotSchedule') }),
  { maxLength: 2 },
);
const mirror = fc.boolean();

/** What a case is about. Where it is about everything, most pods are refused for several reasons. */
const FOCUSES = [/./, /toleration/i, /affinit/i, /nodeSelector/, /scheduler|priorityClass/i] as const;

/** The fields of a policy or of a pod that the case is about, of which none forbids the scheduler. */
function focused(one: Case, focus: RegExp): Pick<Case, 'documents' | 'pod'> {
  const kept = (fields: object | null | undefined) =>
    Object.fromEntries(Object.entries(fields ?? {}).filter(([field]) => focus.test(field)));
  const { spec, ...rest } = one.pod as { spec: object };
  return {
    pod: { ...rest, spec: kept(spec) } as Case['pod'],
    documents: one.documents.map(({ name, spec: { required, allowed, default: defaults } }) => ({
      name,
      spec: {
        required: section(kept(required)),
        allowed: focus.test('schedulerNames')
          ? section(kept(allowed))
          : { schedulerNames: [], ...kept(allowed) },
        default: section(kept(defaults)),
      },
    })),
  };
}

function section(fields: Readonly<Record<string, unknown>>) {
  return Object.keys(fields).length === 0 ? null : fields;
}

export const admissionCases: fc.Arbitrary<AdmissionCase> = fc
  .record({
    whole: cases,
    another: cases,
    focus: fc.constantFrom(...FOCUSES),
    kept: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
    rights: fc.array(fc.constantFrom('namespace', 'cluster', 'none'), {
      minLength: 3,
      maxLength: 3,
    }),
    strategy: fc.constantFrom(...MERGE_STRATEGIES),
    subject: fc.constantFrom('pods', 'pods', ...SUBJECTS),
    isUpdate: fc.constantFrom(false, false, true),
    username: fc.constantFrom('lin', 'lin', CONTROLLER, 'system:kube-scheduler', 'system:node:node-1'),
    node: fc.constantFrom('1', '2', 'node-1'),
    spread: fc.option(spread),
    mirror,
    refusesTopologySpread: fc.boolean(),
    defaultPriorityClass: fc.constantFrom(undefined, 'gold'),
    group: fc.constantFrom('extensions', 'scheduling.blazar-enforcement'),
  })
  .map(({ whole, another, focus, kept, spread: constraints, mirror: isMirror, isUpdate, group, ...rest }) => {
    const one = focused(whole, focus);
    const other = focused(another, focus);
    const policies = one.documents.map(({ name, spec }) => ({
      ...policy(name, spec),
      group,
    })) as SchedulingPolicy[];
    const written = podOf(one.pod, constraints, isMirror);
    const before = podOf(other.pod, null, isMirror);
    const names = Object.keys({ ...written.spec, ...before.spec }).sort();
    const mixed = Object.fromEntries(
      names.flatMap((name, index) => {
        const from = kept[index % kept.length] === true ? written.spec : before.spec;
        return name in from ? [[name, from[name]]] : [];
      }),
    );
    return {
      ...rest,
      policies,
      pod: asStored(written),
      current: isUpdate ? asStored({ ...written, spec: mixed as Pod['spec'] }) : undefined,
    };
  });

function podOf(written: object, constraints: unknown, isMirror: boolean): Pod {
  const { spec } = written as { spec: object };
  return parsePod({
    metadata: { name: 'web', ...(isMirror && { annotations: { 'kubernetes.io/config.mirror': 'x' } }) },
    spec: { ...spec, serviceAccountName: ACCOUNT, topologySpreadConstraints: constraints },
  });
}

/** The kinds that the API knows. */
const KINDS: readonly string[] = ['nodeAffinity', 'podAffinity', 'podAntiAffinity'];

/**
 * As the API server stores a pod: without empty fields and without those that it does not know, with a scheduler, and with terms where
 * an affinity requires some.
 */
export function asStored(pod: Pod): Pod {
  const { affinity, ...spec } = pod.spec;
  const known = Object.entries(affinity ?? {}).filter(([kind]) => KINDS.includes(kind));
  const stored = withoutEmpty({ ...spec, ...(affinity && { affinity: Object.fromEntries(known) }) });
  return parsePod({
    ...pod,
    spec: { ...(stored as object), schedulerName: pod.spec.schedulerName || 'default-scheduler' },
  });
}

/** Objects may be empty, texts and lists not. */
function withoutEmpty(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => withoutEmpty(one));
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  // Label values may be empty.
  const keeps = (one: unknown) =>
    one !== null &&
    one !== undefined &&
    (name === 'nodeSelector' || (one !== '' && !(Array.isArray(one) && one.length === 0)));
  const isEmpty = (one: unknown) => Object.keys(one ?? {}).length === 0;
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([field, one]) =>
          keeps(one) &&
          !(field === 'nodeSelector' && isEmpty(one)) &&
          !(name === 'nodeAffinity' && isEmpty(withoutEmpty(one, field))),
      )
      .map(([field, one]) => [field, withoutEmpty(one, field)]),
  );
}
