/** `scheduling-policy merge`: shows the merged policies of an account, with the origin of each part. */

import { formatPath } from '../../base/yaml/tree.ts';
import { type AccessGrant, type Account, serviceAccount } from '../../kubernetes/policies/access.ts';
import type { EffectivePolicy } from '../../kubernetes/policies/effective-policy.ts';
import { partsOf } from '../../kubernetes/policies/merge.ts';
import { formatReason } from '../../kubernetes/policies/rules/reason.ts';
import {
  jsonText,
  printItems,
  printJson,
  printTable,
  printWarnings,
  UsageError,
  warn,
} from '../common/output.ts';
import type { AccountFlags, MergeFlags } from './options.ts';

export async function showMerged(flags: MergeFlags): Promise<void> {
  const { policies: paths = [], cluster, kubeconfig, context, mergeStrategy: strategy } = flags;
  const account = accountOf(flags);
  if (cluster === true) {
    if (paths.length > 0) {
      throw new UsageError('expected either --cluster or --policies, got both');
    }
    await showMergedInCluster(account, flags);
    return;
  }
  if (paths.length === 0) {
    throw new UsageError('expected --policies or --cluster');
  }
  if (kubeconfig !== undefined || context !== undefined) {
    throw new UsageError('expected --kubeconfig and --context only with --cluster');
  }
  const { SchedulingPolicies } = await import('../../kubernetes/policies/scheduling-policies.ts');
  const { policies, warnings } = SchedulingPolicies.read(paths, { strategy });
  printWarnings(warnings);
  await (account === undefined
    ? printGrants(policies.grants(), flags)
    : printMerged(account, policies.effectiveFor(account), flags));
}

async function showMergedInCluster(account: Account | undefined, flags: MergeFlags): Promise<void> {
  const { readSnapshot, withCluster } = await import('./cluster.ts');
  await withCluster(flags, undefined, async (cluster) => {
    const snapshot = await readSnapshot(cluster, 'auto', { strategy: flags.mergeStrategy });
    if (account !== undefined) {
      await printMerged(account, (await snapshot.policiesOf(account)).all, flags);
      return;
    }
    const { PolicyAccess } = await import('../../kubernetes/policies/access.ts');
    const { CLUSTER_GROUP } = await import('../../kubernetes/policies/policy.ts');
    const { readClusterRbac } = await import('../../kubernetes/cluster/snapshot/cluster-snapshot.ts');
    const { roles, bindings } = await readClusterRbac(cluster.client);
    const policies = snapshot.names.map((name) => ({ name, group: CLUSTER_GROUP }));
    const grants = new PolicyAccess(policies, roles, bindings).grants();
    await printGrants(
      grants.filter((grant) => grant.policies.length > 0),
      flags,
    );
  });
}

async function printGrants(grants: readonly AccessGrant[], { format }: MergeFlags): Promise<void> {
  await printItems(grants, format, (grant) => ({ ...grant, namespace: grant.namespace ?? null }), {
    SUBJECT: ({ subject }) => subject,
    NAMESPACE: ({ namespace }) => namespace ?? 'all',
    POLICIES: ({ policies }) => policies.join(', '),
  });
}

async function printMerged(
  { user, groups, namespace }: Account,
  { merged, policies, conflicts }: EffectivePolicy,
  { format, mergeStrategy }: MergeFlags,
): Promise<void> {
  const parts = merged.flatMap(partsOf);
  if (format === 'json') {
    printJson({
      account: { user, groups, namespace: namespace ?? null },
      policies,
      merge_strategy: mergeStrategy,
      parts: parts.map(({ path, value, policy }) => ({ part: formatPath(path), value, policy })),
      conflicts: conflicts.map(formatReason),
    });
    return;
  }
  await printTable(
    ['PART', 'VALUE', 'POLICY'],
    parts.map(({ path, value, policy }) => [formatPath(path), jsonText(value), policy]),
  );
  for (const conflict of conflicts) {
    warn(formatReason(conflict));
  }
}

type Flags = AccountFlags & { readonly user?: string; readonly group?: readonly string[] };

function accountOf({ namespace, serviceAccount: name, user, group }: Flags): Account | undefined {
  if (user !== undefined) {
    if (name !== undefined) {
      throw new UsageError('expected either --user or --service-account, got both');
    }
    return { user, groups: group ?? ['system:authenticated'], namespace };
  }
  if (group !== undefined) {
    throw new UsageError('expected --user with --group');
  }
  return name === undefined && namespace === undefined
    ? undefined
    : serviceAccount(namespace ?? 'default', name ?? 'default');
}
