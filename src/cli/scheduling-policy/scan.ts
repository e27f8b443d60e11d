/** `scheduling-policy scan`: finds running pods that enforcement would refuse if they were created now. */

import { inCdata, visibleXml } from '../../base/visible-text.ts';
import { nearestName } from '../../config/nearest.ts';
import { builder } from '../../conformance/report.ts';
import { type ApiClient, ApiError } from '../../kubernetes/cluster/api/contract.ts';
import { listObjects } from '../../kubernetes/cluster/api/list.ts';
import type { Refusal, Scanned } from '../../kubernetes/cluster/scan/findings.ts';
import { type ScanResult, scan } from '../../kubernetes/cluster/scan/scan.ts';
import { formatReason, listed } from '../../kubernetes/policies/rules/reason.ts';
import { ExitCode, onOneLine, printJson, printTable, UsageError, warn } from '../common/output.ts';
import { Progress } from '../common/progress.ts';
import { judgingSnapshot, withCluster } from './cluster.ts';
import { judgeOptions, type ScanFlags } from './options.ts';

/** The namespaces that the webhooks of etc/kubernetes exclude. */
const EXEMPT = ['kube-system', 'blazar-enforcement'];

export async function scanCluster(flags: ScanFlags): Promise<void> {
  const namespaces = [...new Set(flags.namespace ?? [])];
  if (flags.allNamespaces === true && namespaces.length > 0) {
    throw new UsageError('expected either --namespace or --all-namespaces, got both');
  }
  const exempt = flags.exemptNamespace ?? EXEMPT;
  const unseen = namespaces.find((name) => exempt.includes(name));
  if (unseen !== undefined) {
    throw new UsageError(
      `--namespace ${unseen}: webhooks do not look at this namespace: --exempt-namespace says which they do not look at, by default ${listed(EXEMPT, 'and')}`,
    );
  }
  const { configured } = await judgeOptions({ ...flags, cluster: true });
  await withCluster(flags, configured.kubeconfig, async (cluster) => {
    const { source, settings } = await judgingSnapshot(cluster, flags, configured);
    const progress = new Progress(flags.workloads === true ? 'pods and templates' : 'pods');
    const result = await scan(cluster.client, source, {
      namespaces,
      exempt: new Set(exempt),
      selector: flags.selector,
      workloads: flags.workloads === true,
      settings,
      now: Date.now(),
      progress: (seen) => progress.show(seen),
    }).finally(() => progress.end());
    await expectNamespaces(cluster.client, namespaces, result);
    await print(result, flags, exempt, cluster.reviews.count);
    const { refusedPods, refusedTemplates } = result.findings.counts;
    process.exitCode = refusedPods + refusedTemplates === 0 ? ExitCode.ok : ExitCode.rejected;
  });
}

/** Fails on a missing namespace: a mistyped name has no pods, so "all allowed" would be misleading. */
async function expectNamespaces(
  client: ApiClient,
  namespaces: readonly string[],
  { findings }: ScanResult,
): Promise<void> {
  const found = new Set(findings.owners.map(({ namespace }) => namespace));
  for (const name of namespaces.filter((one) => !found.has(one))) {
    try {
      await client.request({ method: 'GET', path: `/api/v1/namespaces/${encodeURIComponent(name)}` });
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 404) {
        const nearest = nearestName(name, await namespaceNames(client));
        throw new UsageError(`there is no namespace ${JSON.stringify(name)} in the cluster${nearest}`);
      }
      if (!(thrown instanceof ApiError && thrown.status === 403)) {
        throw thrown;
      }
      warn(
        `nothing was found in the namespace ${name}, and whether it exists is not known: ${thrown.message}`,
      );
    }
  }
}

async function namespaceNames(client: ApiClient): Promise<string[]> {
  try {
    const { objects } = await listObjects(client, '/api/v1/namespaces');
    return objects.map(({ metadata }) => metadata.name);
  } catch {
    return [];
  }
}

async function print(
  result: ScanResult,
  { format, workloads }: ScanFlags,
  exempt: readonly string[],
  reviews: number,
): Promise<void> {
  const { findings, skipped, accounts } = result;
  const { pods, refusedPods, templates, refusedTemplates, namespaces } = findings.counts;
  if (format === 'junit') {
    process.stdout.write(`${scanJunit(findings.owners)}\n`);
  } else if (format === 'json') {
    printJson({
      allowed: refusedPods + refusedTemplates === 0,
      scanned: { pods, templates: workloads === true ? templates : null, namespaces, accounts },
      would_be_refused: { pods: refusedPods, templates: workloads === true ? refusedTemplates : null },
      exempt_namespaces: exempt,
      not_scanned: skipped,
      reviews,
      refusals: findings.refusals.map(asJson),
      unlisted: findings.unlisted,
    });
  } else {
    await printRefusals(findings.refusals);
    const what = (all: number, refused: number, one: string) =>
      `${refused} of ${all} ${one}${all === 1 ? '' : 's'} would be refused`;
    const sentences = [
      what(pods, refusedPods, 'pod'),
      ...(workloads === true ? [what(templates, refusedTemplates, 'template')] : []),
    ];
    const exempted = exempt.length === 0 ? '' : `; not scanned: ${listed(exempt, 'and')}`;
    const mirrors = skipped.mirror === 0 ? '' : `, ${skipped.mirror} mirror pods`;
    process.stdout.write(`${onOneLine(`${sentences.join(', ')}${exempted}${mirrors}`)}\n`);
  }
  if (findings.unlisted > 0) {
    warn(`${findings.unlisted} more would be refused that are not listed`);
  }
}

async function printRefusals(refusals: readonly Refusal[]): Promise<void> {
  if (refusals.length === 0) {
    return;
  }
  await printTable(
    ['NAMESPACE', 'OWNER', 'PODS', 'REASON'],
    refusals.flatMap(({ namespace, source, owner, count, reasons }) =>
      reasons.map((reason, index) =>
        index > 0
          ? ['', '', '', formatReason(reason)]
          : [
              namespace,
              `${owner.kind} ${owner.name}`,
              source === 'pod' ? String(count) : 'template',
              formatReason(reason),
            ],
      ),
    ),
  );
  process.stdout.write('\n');
}

function asJson({ namespace, source, owner, user, policies, count, names, reasons }: Refusal) {
  return {
    namespace,
    source,
    owner: { kind: owner.kind, name: owner.name },
    user,
    policies,
    count,
    names,
    reasons: reasons.map((reason) => ({ ...reason, message: formatReason(reason) })),
  };
}

function scanJunit(owners: readonly Scanned[]): string {
  const report = builder.newBuilder();
  const suite = report.testSuite().name('blazar-enforcement scheduling-policy scan');
  for (const { namespace, source, owner, count, refusals } of owners) {
    const what = source === 'pod' ? `pods of ${owner.kind}` : `template of ${owner.kind}`;
    const test = suite.testCase().className(namespace).name(`${what} ${owner.name}`);
    if (refusals.length > 0) {
      const refused = refusals.reduce((sum, one) => sum + one.count, 0);
      const why = refusals.map(({ count: some, user, names, reasons }) => {
        const lines = reasons.map((reason) => `  ${formatReason(reason)}`);
        return [`${some} for ${user}, such as ${names.join(', ')}:`, ...lines].join('\n');
      });
      test
        .failure(
          source === 'pod' ? `${refused} of ${count} pods would be refused` : 'its pods would be refused',
        )
        .stacktrace(inCdata(why.join('\n')));
    }
  }
  return visibleXml(report.build());
}
