/** `scheduling-policy who-can`: lists who may use a policy of the cluster, and the binding that grants it. */
import { nearestName } from '../../config/nearest.ts';
import { type ApiClient, unlessMissing } from '../../kubernetes/cluster/api/contract.ts';
import { POLICIES_PATH } from '../../kubernetes/cluster/live/read-policy.ts';
import {
  readClusterRbac,
  sideBySide,
  type UseReviews,
} from '../../kubernetes/cluster/snapshot/cluster-snapshot.ts';
import {
  type Account,
  type Binding,
  boundRole,
  grantsUse,
  type Role,
  roleId,
  serviceAccount,
} from '../../kubernetes/policies/access.ts';
import type { Subject } from '../../kubernetes/policies/documents/rbac-schema.ts';
import { compare } from '../../kubernetes/policies/merge.ts';
import { CLUSTER_GROUP } from '../../kubernetes/policies/policy.ts';
import { ExitCode, onOneLine, printJson, printRows, UsageError } from '../common/output.ts';
import { type AskedCluster, policiesOf, withCluster } from './cluster.ts';
import type { WhoCanFlags } from './options.ts';

/** Other names cannot exist, and could change the path. Source: Kubernetes, names of objects (RFC 1123). */
const CAN_BE_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const AUTHENTICATED = 'system:authenticated';

export async function showWhoCan(name: string, flags: WhoCanFlags): Promise<void> {
  const account = accountOf(flags);
  await withCluster(flags, undefined, async (cluster) => {
    await expectPolicy(cluster, name);
    await (account === undefined
      ? showUsers(cluster, name, flags)
      : showAnswer(cluster, name, account, flags));
  });
}

async function showUsers(
  { client, reviews }: AskedCluster,
  name: string,
  { namespace, format }: WhoCanFlags,
): Promise<void> {
  const users = await whoCanUse(client, reviews, name, namespace);
  if (format === 'json') {
    printJson({ policy: name, namespace: namespace ?? null, users: users.map(asJson) });
    return;
  }
  const place = namespace === undefined ? '' : ` in ${namespace}`;
  if (users.length === 0) {
    process.stdout.write(`no role with a binding grants the use of ${onOneLine(name)}${place}\n`);
    return;
  }
  await printRows(users, {
    SUBJECT: ({ subject }) => subjectText(subject),
    NAMESPACE: (user) => user.namespace ?? 'all',
    ROLE: ({ role }) => `${role.kind} ${role.name}`,
    BINDING: ({ binding }) => `${binding.kind} ${binding.name}`,
    CONFIRMED: ({ confirmed }) => (confirmed ? 'yes' : 'no'),
  });
}

async function showAnswer(
  { reviews }: AskedCluster,
  name: string,
  account: Account,
  { format }: WhoCanFlags,
): Promise<void> {
  const allowed = await reviews.mayUse(account, name);
  const { user, groups, namespace } = account;
  if (format === 'json') {
    printJson({ policy: name, account: { user, groups, namespace: namespace ?? null }, allowed });
  } else {
    process.stdout.write(`${allowed ? 'yes' : 'no'}\n`);
  }
  process.exitCode = allowed ? ExitCode.ok : ExitCode.rejected;
}

/** An invalid policy may be used, too; its users' pods are denied. @throws UsageError if it does not exist */
async function expectPolicy({ client }: AskedCluster, name: string): Promise<void> {
  const path = `${POLICIES_PATH}/${name}`;
  if (CAN_BE_NAME.test(name) && (await client.request({ method: 'GET', path }).catch(unlessMissing))) {
    return;
  }
  const { valid, invalid } = await policiesOf(client);
  const names = [...valid, ...invalid].map((policy) => policy.name);
  throw new UsageError(
    `there is no scheduling policy ${JSON.stringify(name)} in the cluster${nearestName(name, names)}`,
  );
}

function asJson({ subject, namespace, role, binding, confirmed }: PolicyUser) {
  return {
    subject: {
      kind: subject.kind,
      name: subject.name,
      namespace: subject.kind === 'ServiceAccount' ? subject.namespace : null,
    },
    namespace: namespace ?? null,
    role: { kind: role.kind, name: role.name },
    binding: { kind: binding.kind, name: binding.name, namespace: binding.namespace ?? null },
    confirmed,
  };
}

function accountOf({ namespace, serviceAccount: named, user, group }: WhoCanFlags): Account | undefined {
  if (named === undefined) {
    return user === undefined && group === undefined
      ? undefined
      : { user: user ?? '', groups: groupsOf(user, group), namespace };
  }
  if (user !== undefined || group !== undefined) {
    throw new UsageError('expected either --service-account, or --user and --group, got both');
  }
  const parts = named.split('/');
  const [place, name] = parts.length === 1 ? [namespace, named] : parts;
  if (parts.length > 2 || !place || !name) {
    throw new UsageError(`--service-account: expected NAMESPACE/NAME, got ${JSON.stringify(named)}`);
  }
  if (namespace !== undefined && namespace !== place) {
    throw new UsageError(`--namespace is ${namespace}, but the service account is in ${place}`);
  }
  return serviceAccount(place, name);
}

/** As `kubectl auth can-i --as`: a user with a name is authenticated. */
function groupsOf(user: string | undefined, groups: readonly string[] = []): readonly string[] {
  return user === undefined || groups.includes(AUTHENTICATED) ? groups : [...groups, AUTHENTICATED];
}

/** One binding that grants the use of the policy to one subject. */
interface PolicyUser {
  readonly subject: Subject;
  /** Where it may use the policy; `undefined` = in all namespaces. */
  readonly namespace: string | undefined;
  readonly role: Pick<Role, 'kind' | 'name'>;
  readonly binding: Pick<Binding, 'kind' | 'name' | 'namespace'>;
  /** Whether the API server confirms it. It may not if the binding was just removed. */
  readonly confirmed: boolean;
}

/** `namespace`: only its users there. Sorted by subject. @throws ApiError @throws ApiUnreachableError */
async function whoCanUse(
  client: ApiClient,
  reviews: UseReviews,
  name: string,
  namespace: string | undefined,
): Promise<PolicyUser[]> {
  const { roles, bindings } = await readClusterRbac(client, namespace);
  const granting = new Map(
    roles
      .filter((role) => grantsUse(role, { name, group: CLUSTER_GROUP }))
      .map((role) => [roleId(role.kind, role.namespace, role.name), role]),
  );
  const found = bindings.flatMap((one) => {
    const { kind, name: of, namespace: place, subjects } = one;
    const role = granting.get(boundRole(one).role);
    const binding = { kind, name: of, namespace: place };
    return role === undefined
      ? []
      : subjects.map((subject) => ({
          subject,
          namespace: place,
          role: { kind: role.kind, name: role.name },
          binding,
        }));
  });
  const answers = new Map<string, Promise<boolean>>();
  const users = await sideBySide(found, async (user) => {
    const account = accountOfSubject(user.subject, user.namespace ?? namespace);
    const key = JSON.stringify(account);
    const answer = answers.get(key) ?? reviews.mayUse(account, name);
    answers.set(key, answer);
    return { ...user, confirmed: await answer };
  });
  return users.sort(
    (a, b) =>
      compare(subjectText(a.subject), subjectText(b.subject)) ||
      compare(a.namespace ?? '', b.namespace ?? '') ||
      compare(a.binding.name, b.binding.name),
  );
}

/** `ServiceAccount shop/web`, `Group system:authenticated` */
function subjectText(subject: Subject): string {
  return subject.kind === 'ServiceAccount'
    ? `${subject.kind} ${subject.namespace}/${subject.name}`
    : `${subject.kind} ${subject.name}`;
}

/** A group is reviewed alone: as a user who is in no other group. */
function accountOfSubject(subject: Subject, namespace: string | undefined): Account {
  switch (subject.kind) {
    case 'ServiceAccount':
      return { ...serviceAccount(subject.namespace, subject.name), namespace };
    case 'User':
      return { user: subject.name, groups: [], namespace };
    case 'Group':
      return { user: '', groups: [subject.name], namespace };
  }
}
