/** `scheduling-policy check`: reviews pods like the webhook. */

import { YamlDocument } from '../../base/yaml/document.ts';
import { type Path, plainCopy, valueAt } from '../../base/yaml/tree.ts';
import { BrokenRulesError, type RuleOutcomes } from '../../filter/verdict.ts';
import { PodAdmission } from '../../kubernetes/admission/pod-admission.ts';
import { formatReason, type Reason } from '../../kubernetes/policies/rules/reason.ts';
import {
  ExitCode,
  FailedError,
  onOneLine,
  printJson,
  printTable,
  printWarnings,
  shownName,
  UsageError,
  unifiedDiff,
  warn,
} from '../common/output.ts';
import { type CheckedObject, type Judges, readObjects, reviewObject } from './objects.ts';
import { type CheckFlags, judgeOptions, setOptions } from './options.ts';

interface Checked {
  readonly object: CheckedObject;
  readonly user: string;
  readonly policies: readonly string[];
  readonly allowed: boolean;
  readonly reasons: readonly Reason[];
  readonly rules: RuleOutcomes;
  readonly warnings: readonly string[];
  readonly diff: string;
}

/** What the webhook judges of objects that have no pods. */
const JUDGED_OTHERWISE: ReadonlyMap<string, string> = new Map([
  ['Binding', 'the webhook judges it for the user who creates it, who is not known here'],
  ['SchedulingPolicy', '"scheduling-policy validate" reads it'],
]);

export async function checkPods(file: string, flags: CheckFlags): Promise<void> {
  const read = await readObjects(file);
  await withJudges(flags, (judges) => checkBy(judges, read, file, flags));
}

async function checkBy(
  judges: Judges,
  { objects, others }: Awaited<ReturnType<typeof readObjects>>,
  file: string,
  flags: CheckFlags,
): Promise<void> {
  for (const kind of new Set(others)) {
    const why = JUDGED_OTHERWISE.get(kind) ?? 'if it has pods, they are judged when they are created';
    warn(`${shownName(file)}: ${kind} is not checked: ${why}`);
  }
  const results: Checked[] = [];
  for (const object of objects) {
    results.push(await check(object));
  }
  const allowed = results.every((one) => one.allowed);
  if (flags.format === 'json') {
    printJson({ file, allowed, objects: results.map(asJson) });
  } else {
    for (const [index, result] of results.entries()) {
      process.stdout.write(index === 0 ? '' : '\n');
      await print(result, results.length > 1);
    }
  }
  for (const warning of results.flatMap(({ warnings }) => warnings)) {
    warn(warning);
  }
  process.exitCode = allowed ? ExitCode.ok : ExitCode.rejected;

  async function check(object: CheckedObject): Promise<Checked> {
    const namespace = namespaceOf(object, file, flags);
    const { decided, policies, written } = await reviewObject(judges, object, namespace, {
      account: flags.serviceAccount,
      isSenderUnknown: true,
    }).catch((thrown: unknown) => {
      throw thrown instanceof BrokenRulesError ? new FailedError(thrown.message) : thrown;
    });
    return {
      object,
      user: decided.account.user,
      policies,
      allowed: decided.allowed,
      reasons: decided.reasons,
      rules: decided.rules ?? [],
      warnings: decided.warnings,
      diff: decided.allowed ? await diffOf(object, written) : '',
    };
  }

  async function diffOf({ document, value, path, pod }: CheckedObject, changed: unknown): Promise<string> {
    if (changed === pod) {
      return '';
    }
    const before = document ?? YamlDocument.from(plainCopy(value));
    const after = before.with(replaced(plainCopy(value), path, changed));
    const names = [shownName(file), '(changed by policies)'] as const;
    return unifiedDiff(names, before.format(), after.format());
  }
}

/** The policies and cluster settings: of a service configuration, or only of the flags. */
async function withJudges(flags: CheckFlags, work: (judges: Judges) => Promise<void>): Promise<void> {
  const { configured, asksCluster, paths } = await judgeOptions(flags, true);
  const { audit, schedulers, rules_path } = configured;
  const rules =
    rules_path === undefined
      ? undefined
      : (await import('../../kubernetes/admission/pod-rules.ts')).PodRules.read(rules_path);
  if (asksCluster) {
    const { judgingSnapshot, withCluster } = await import('./cluster.ts');
    await withCluster(flags, configured.kubeconfig, async (cluster) => {
      const { source, defaultPriorityClass } = await judgingSnapshot(cluster, flags, configured);
      await work({
        source,
        admission: new PodAdmission(source, { audit, schedulers, rules }),
        defaultPriorityClass,
      });
    });
    return;
  }
  const { SchedulingPolicies } = await import('../../kubernetes/policies/scheduling-policies.ts');
  const options = await setOptions(flags, configured);
  const { policies, warnings } =
    paths.length === 0 ? { warnings: [] } : SchedulingPolicies.read(paths, options);
  printWarnings(warnings);
  await work({
    source: policies,
    admission: new PodAdmission(policies, { audit, schedulers, rules }),
    defaultPriorityClass: options.defaultPriorityClass,
  });
}

function asJson({ object: { kind, name, namespace }, reasons, rules, ...result }: Checked) {
  return {
    kind,
    name: name ?? null,
    namespace: namespace ?? null,
    ...result,
    reasons: reasons.map((reason) => ({ ...reason, message: formatReason(reason) })),
    ...(rules.length > 0 && { rules }),
  };
}

async function print(
  { object, user, allowed, reasons, rules, diff }: Checked,
  isOneOfSeveral: boolean,
): Promise<void> {
  const named = [object.kind, ...(object.name === undefined ? [] : [onOneLine(object.name)])].join(' ');
  const of = isOneOfSeveral || object.kind !== 'Pod' ? `${named}: ` : '';
  process.stdout.write(`${of}${allowed ? 'allowed' : 'rejected'} for ${onOneLine(user)}\n`);
  const rows = [
    ...reasons.map(({ field, expectation, policies }) => [field, expectation, policies.join(', ')]),
    ...rules.flatMap(({ rule, audit, message }) => (audit ? [] : [[`rule ${rule}`, message ?? '', '']])),
  ];
  if (rows.length > 0) {
    await printTable(['FIELD', 'REASON', 'POLICIES'], rows);
  }
  if (diff !== '') {
    process.stdout.write(`\n${diff.split('\n').map(onOneLine).join('\n')}`);
  }
}

/** Replaces the value at a path; modifies the tree. */
function replaced(tree: unknown, path: Path, value: unknown): unknown {
  const last = path.at(-1);
  if (last === undefined) {
    return value;
  }
  const holder = valueAt(tree, path.slice(0, -1));
  Object.assign(holder as object, { [last]: value });
  return tree;
}

function namespaceOf({ namespace: own }: CheckedObject, file: string, { namespace }: CheckFlags): string {
  if (namespace !== undefined && own !== undefined && namespace !== own) {
    throw new UsageError(`${shownName(file)}: --namespace is ${namespace}, but the pod is in ${own}`);
  }
  return namespace ?? own ?? 'default';
}
