/** `scheduling-policy export`: scheduling policies as ValidatingAdmissionPolicies, which need no webhook. */

import { refuseErrors } from '../../base/errors.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { nearestName } from '../../config/nearest.ts';
import { AUDIT_ALL } from '../../kubernetes/admission/pod-admission.ts';
import { admissionPolicies, type ExportOptions } from '../../kubernetes/export/admission-policies.ts';
import { auditLeftOut, defaultsLeftOut } from '../../kubernetes/export/left-out.ts';
import { NotExportableError } from '../../kubernetes/export/limits.ts';
import { rulesPolicy } from '../../kubernetes/export/pod-rules.ts';
import type { KubernetesOptions } from '../../kubernetes/options.ts';
import { readPolicyDocuments } from '../../kubernetes/policies/documents/documents.ts';
import { byName } from '../../kubernetes/policies/merge.ts';
import type { SchedulingPolicy } from '../../kubernetes/policies/policy.ts';
import { podEnvironment } from '../../rules/pod/environment.ts';
import { readRules } from '../../rules/read-rules.ts';
import { ExitCode, onOneLine, printWarnings, UsageError, warn } from '../common/output.ts';
import { type ExportFlags, judgeOptions, setOptions } from './options.ts';

/** A cluster does not work without the pods of these namespaces. */
const EXEMPT = ['kube-system'];
const STANDARD_INPUT = '/dev/stdin';
/** A label of an object's name, with room for what is appended. */
const NAME = /^[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?$/;

export async function exportPolicies(names: readonly string[], flags: ExportFlags): Promise<void> {
  if (!NAME.test(flags.name)) {
    throw new UsageError(
      `--name: expected lower-case letters, digits, "-" and ".", got ${JSON.stringify(flags.name)}`,
    );
  }
  if (flags.rules !== undefined) {
    exportRules(flags.rules, names, flags);
    return;
  }
  const { configured, asksCluster, paths } = await judgeOptions(flags);
  if (!asksCluster) {
    await print(chosen(ofFiles(paths), names), configured, flags);
    return;
  }
  const { policiesOf, withCluster } = await import('./cluster.ts');
  await withCluster(flags, configured.kubeconfig, async ({ client }) => {
    const { valid, invalid } = await policiesOf(client);
    // Pods of users of an invalid policy are denied. Without it, other policies would let them pass.
    const [broken] = invalid;
    if (broken !== undefined) {
      throw new UsageError(`scheduling policy ${broken.name}: ${broken.message}. Repair or delete it first`);
    }
    await print(chosen(valid, names), configured, flags);
  });
}

/** Exports all rules for pods, or none: one that Kubernetes may read differently is an error with a place. */
function exportRules(path: string, names: readonly string[], flags: ExportFlags): void {
  if (
    names.length > 0 ||
    flags.policies !== undefined ||
    flags.cluster === true ||
    flags.configFile !== undefined
  ) {
    throw new UsageError('expected either --rules or policies, got both');
  }
  const { rules, problems } = readRules(path, { pod: podEnvironment() });
  refuseErrors(problems);
  printWarnings(problems);
  const isTrial = flags.warnOnly === true;
  const now = Date.now();
  const valid = rules.pod.filter(({ until }) => until === undefined || now < until);
  const kept = valid.filter(({ audit }) => isTrial || !audit);
  if (kept.length === 0) {
    throw new UsageError('expected at least one rule for pods that is enforced');
  }
  const leftOut = valid
    .filter((one) => !kept.includes(one))
    .map(({ name }) => `rule ${name} is in audit mode and is left out`);
  const { name, exemptNamespace: exemptNamespaces = EXEMPT } = flags;
  const objects = exported(() => rulesPolicy(kept, { name, exemptNamespaces, isTrial }));
  process.stdout.write(
    commented([
      'Rules for pods as a ValidatingAdmissionPolicy, for Kubernetes 1.30 or newer.',
      'A copy of these rules: export them again when they change.',
      ...leftOut.map((one) => `Not expressed: ${one}`),
    ]),
  );
  written(objects, leftOut, flags);
}

function ofFiles(paths: readonly string[]): readonly SchedulingPolicy[] {
  const { policies, problems } = readPolicyDocuments(
    paths.map((path) => (path === '-' ? STANDARD_INPUT : path)),
  );
  refuseErrors(problems);
  printWarnings(problems);
  return policies;
}

function chosen(policies: readonly SchedulingPolicy[], names: readonly string[]): SchedulingPolicy[] {
  const sorted = [...policies].sort(byName);
  const unknown = names.find((name) => !sorted.some((policy) => policy.name === name));
  if (unknown !== undefined) {
    const known = sorted.map(({ name }) => name);
    throw new UsageError(
      `there is no scheduling policy ${JSON.stringify(unknown)}${nearestName(unknown, known)}`,
    );
  }
  const kept = names.length === 0 ? sorted : sorted.filter(({ name }) => names.includes(name));
  if (kept.length === 0) {
    throw new UsageError('expected at least one scheduling policy');
  }
  return kept;
}

async function print(
  all: readonly SchedulingPolicy[],
  configured: KubernetesOptions,
  flags: ExportFlags,
): Promise<void> {
  const { audit } = configured;
  const settings = await setOptions(flags, configured);
  const isTrial = flags.warnOnly === true || audit.includes(AUDIT_ALL);
  const audited = isTrial ? [] : all.filter(({ name }) => audit.includes(name));
  const policies = all.filter((policy) => !audited.includes(policy));
  if (policies.length === 0) {
    throw new UsageError('expected at least one scheduling policy that is not in audit mode');
  }
  const options: ExportOptions = {
    name: flags.name,
    ...settings,
    schedulers: configured.schedulers,
    exemptNamespaces: flags.exemptNamespace ?? EXEMPT,
    isTrial,
  };
  const leftOut = [...auditLeftOut(audited.map(({ name }) => name)), ...defaultsLeftOut(policies)];
  const objects = exported(() => admissionPolicies(policies, options));
  process.stdout.write(comments(policies, options, leftOut));
  written(objects, leftOut, flags);
}

function written(objects: readonly object[], leftOut: readonly string[], flags: ExportFlags): void {
  process.stdout.write(objects.map((one) => YamlDocument.from(one).toString()).join('---\n'));
  for (const one of leftOut) {
    warn(one);
  }
  process.exitCode = flags.strict === true && leftOut.length > 0 ? ExitCode.rejected : ExitCode.ok;
}

function exported<T>(objects: () => T): T {
  try {
    return objects();
  } catch (thrown) {
    throw thrown instanceof NotExportableError ? new UsageError(thrown.message) : thrown;
  }
}

function comments(
  policies: readonly SchedulingPolicy[],
  { strategy, exemptNamespaces, isTrial }: ExportOptions,
  leftOut: readonly string[],
): string {
  const exempt = exemptNamespaces.length === 0 ? 'none' : exemptNamespaces.join(', ');
  const lines = [
    'Scheduling policies as ValidatingAdmissionPolicies, for Kubernetes 1.30 or newer.',
    `A copy of these policies, merged with ${strategy}: export them again when they change.`,
    ...policies.map(({ name }, index) => `  use${index + 1}: ${name}`),
    'Rights are asked for at each admission: the verb use on schedulingpolicies.',
    `Exempt namespaces: ${exempt}.`,
    ...(isTrial ? ['Warns only.'] : []),
    leftOut.length === 0 ? 'Everything is expressed.' : 'Not expressed:',
    ...leftOut.map((one) => `- ${one}`),
  ];
  return commented(lines);
}

function commented(lines: readonly string[]): string {
  return lines.map((line) => `# ${onOneLine(line)}\n`).join('');
}
