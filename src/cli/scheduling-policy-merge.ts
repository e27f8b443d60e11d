/** `scheduling-policy merge`: shows the merged policies of an account, with the origin of each part. */

import { type Account, serviceAccount } from '../kubernetes/access.ts';
import { partsOf } from '../kubernetes/parts.ts';
import { formatReason } from '../kubernetes/rules/reason.ts';
import { SchedulingPolicies } from '../kubernetes/scheduling-policies.ts';
import { formatPath } from '../yaml/tree.ts';
import { jsonText, onOneLine, printJson, printTable, printWarnings, UsageError } from './output.ts';
import type { MergeFlags } from './scheduling-policy-flags.ts';

export async function showMerged(flags: MergeFlags): Promise<void> {
  const account = accountOf(flags);
  const { policies, warnings } = SchedulingPolicies.read(flags.policies, { strategy: flags.mergeStrategy });
  printWarnings(warnings);
  if (account === undefined) {
    const grants = policies.grants();
    if (flags.format === 'json') {
      printJson(grants.map((grant) => ({ ...grant, namespace: grant.namespace ?? null })));
      return;
    }
    await printTable(
      ['SUBJECT', 'NAMESPACE', 'POLICIES'],
      grants.map(({ subject, namespace, policies: names }) => [
        subject,
        namespace ?? 'all',
        names.join(', '),
      ]),
    );
    return;
  }
  const effective = policies.effectiveFor(account);
  const parts = effective.merged.flatMap(partsOf);
  if (flags.format === 'json') {
    const { user, groups, namespace } = account;
    printJson({
      account: { user, groups, namespace: namespace ?? null },
      policies: effective.policies,
      merge_strategy: flags.mergeStrategy,
      parts: parts.map(({ path, value, policy }) => ({ part: formatPath(path), value, policy })),
      conflicts: effective.conflicts.map(formatReason),
    });
    return;
  }
  await printTable(
    ['PART', 'VALUE', 'POLICY'],
    parts.map(({ path, value, policy }) => [formatPath(path), jsonText(value), policy]),
  );
  for (const conflict of effective.conflicts) {
    process.stderr.write(`warning: ${onOneLine(formatReason(conflict))}\n`);
  }
}

function accountOf({ namespace, serviceAccount: name, user, group }: MergeFlags): Account | undefined {
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
