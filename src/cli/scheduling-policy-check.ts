/** `scheduling-policy check`: reviews pods like the webhook. */

import { ConfigurationError, type Problem } from '../errors.ts';
import { asAdmitted, withAdditions } from '../kubernetes/api-server.ts';
import { serviceAccountName } from '../kubernetes/pod.ts';
import { PodAdmission } from '../kubernetes/pod-admission.ts';
import { formatReason, type Reason } from '../kubernetes/rules/reason.ts';
import { SchedulingPolicies } from '../kubernetes/scheduling-policies.ts';
import { type Path, plainCopy, valueAt } from '../yaml/tree.ts';
import { shownName } from './input.ts';
import { ExitCode, onOneLine, printJson, printTable, printWarnings, UsageError } from './output.ts';
import type { CheckFlags } from './scheduling-policy-flags.ts';
import { type CheckedObject, readObjects } from './scheduling-policy-objects.ts';
import { unifiedDiff } from './unified-diff.ts';

/** The result for one object. */
interface Checked {
  readonly object: CheckedObject;
  readonly user: string;
  readonly policies: readonly string[];
  readonly allowed: boolean;
  readonly reasons: readonly Reason[];
  readonly warnings: readonly string[];
  readonly diff: string;
}

export async function checkPods(file: string, flags: CheckFlags): Promise<void> {
  const { policies, admission, defaultPriorityClass } = await judges(flags);
  const { objects, others } = await readObjects(file);
  for (const kind of new Set(others)) {
    process.stderr.write(`warning: ${shownName(file)}: ${onOneLine(kind)} creates no pods: not checked\n`);
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
    process.stderr.write(`warning: ${onOneLine(warning)}\n`);
  }
  process.exitCode = allowed ? ExitCode.ok : ExitCode.rejected;

  async function check(object: CheckedObject): Promise<Checked> {
    const isTemplate = object.kind === 'DaemonSet';
    const namespace = namespaceOf(object, file, flags);
    const account = flags.serviceAccount ?? serviceAccountName(object.pod);
    const spec = { ...object.pod.spec, serviceAccountName: account };
    const pod = asAdmitted({ ...object.pod, spec }, { defaultPriorityClass, isTemplate });
    const decided = admission.review(
      {
        kind: isTemplate ? 'template' : 'pod',
        uid: '',
        name: object.name,
        namespace,
        pod,
        current: undefined,
        isUpdate: false,
        username: undefined,
        groups: [],
        dryRun: true,
      },
      { addDefaults: true },
    );
    const written = withAdditions(object.pod, pod, decided.pod ?? pod);
    return {
      object,
      user: decided.account.user,
      policies: policies.effectiveFor(decided.account).policies,
      allowed: decided.allowed,
      reasons: decided.reasons,
      warnings: decided.warnings,
      diff: decided.allowed ? await diffOf(object, written) : '',
    };
  }

  async function diffOf({ document, path, pod }: CheckedObject, changed: unknown): Promise<string> {
    if (changed === pod) {
      return '';
    }
    const whole = replaced(plainCopy(document.value), path, changed);
    const names = [shownName(file), '(changed by policies)'] as const;
    return unifiedDiff(names, document.format(), document.with(whole).format());
  }
}

/** The policies and cluster settings: of a service configuration, or of the flags alone. */
async function judges(flags: CheckFlags) {
  const options = await optionsOf(flags);
  const { policies, warnings } = SchedulingPolicies.read(options.paths, options);
  printWarnings(warnings);
  const admission = new PodAdmission(policies, options);
  return { policies, admission, defaultPriorityClass: options.defaultPriorityClass };
}

async function optionsOf({ configFile, policies = [], mergeStrategy, defaultPriorityClass }: CheckFlags) {
  const { kubernetesOptions, kubernetesSection, policyOptions } = await import('../kubernetes/options.ts');
  let configured = kubernetesOptions.parse({});
  if (configFile !== undefined) {
    const { readConfiguration, sectionOf } = await import('../enforcement/configuration.ts');
    const { SECTIONS } = await import('../server/sections.ts');
    const sources = {
      configFiles: configFile,
      environment: {},
      values: policies.length === 0 ? {} : { kubernetes: { scheduling_policies: [...policies] } },
    };
    const configuration = await readConfiguration(sources, SECTIONS);
    const problems = configuration.problems.filter(concernsPolicies);
    if (problems.length > 0) {
      throw new ConfigurationError(problems);
    }
    configured = sectionOf(configuration, kubernetesSection);
  }
  const paths = policies.length === 0 ? configured.scheduling_policies : policies;
  if (paths.length === 0) {
    throw new UsageError('expected --policies, or --config-file with scheduling_policies in [kubernetes]');
  }
  const own = policyOptions(configured);
  return {
    ...own,
    paths,
    audit: configured.audit,
    strategy: mergeStrategy ?? own.strategy,
    defaultPriorityClass: defaultPriorityClass ?? own.defaultPriorityClass,
  };
}

/** Keys, certificates and tokens of the service need not exist where its policies are tried. */
function concernsPolicies({ severity, section, option }: Problem): boolean {
  return (
    severity === 'error' && (section === undefined || (section === 'kubernetes' && option !== 'tokens_file'))
  );
}

function asJson({ object: { kind, name, namespace }, reasons, ...result }: Checked) {
  return {
    kind,
    name: name ?? null,
    namespace: namespace ?? null,
    ...result,
    reasons: reasons.map((reason) => ({ ...reason, message: formatReason(reason) })),
  };
}

async function print(
  { object, user, allowed, reasons, diff }: Checked,
  isOneOfSeveral: boolean,
): Promise<void> {
  const named = [object.kind, ...(object.name === undefined ? [] : [onOneLine(object.name)])].join(' ');
  const of = isOneOfSeveral || object.kind !== 'Pod' ? `${named}: ` : '';
  process.stdout.write(`${of}${allowed ? 'allowed' : 'rejected'} for ${onOneLine(user)}\n`);
  if (reasons.length > 0) {
    await printTable(
      ['FIELD', 'REASON', 'POLICIES'],
      reasons.map(({ field, expectation, policies }) => [field, expectation, policies.join(', ')]),
    );
  }
  if (diff !== '') {
    process.stdout.write(`\n${diff.split('\n').map(onOneLine).join('\n')}`);
  }
}

/** The tree with another value at a path; modifies the tree. */
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
