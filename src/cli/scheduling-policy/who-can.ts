/** `scheduling-policy who-can`: lists who may use a policy of the cluster, and the binding that grants it. */
import { nearestName } from '../../config/nearest.ts';
import { ApiError } from '../../kubernetes/cluster/api/contract.ts';
import { POLICIES_PATH } from '../../kubernetes/cluster/live/read-policy.ts';
import { type PolicyUser, subjectText, whoCanUse } from '../../kubernetes/cluster/snapshot/who-can-use.ts';
import { type Account, serviceAccount } from '../../kubernetes/policies/access.ts';
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
  try {
    if (CAN_BE_NAME.test(name)) {
      await client.request({ method: 'GET', path: `${POLICIES_PATH}/${name}` });
      return;
    }
  } catch (thrown) {
    if (!(thrown instanceof ApiError && thrown.status === 404)) {
      throw thrown;
    }
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
