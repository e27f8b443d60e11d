/** The judging options of `scheduling-policy` commands: from a service configuration, or only from flags. */
import { ConfigurationError } from '../../base/errors.ts';
import type { KubernetesOptions } from '../../kubernetes/options.ts';
import type { MergeStrategy } from '../../kubernetes/policies/merge.ts';
import { UsageError } from '../common/output.ts';

interface JudgeOptions {
  /** The options of `--config-file`, otherwise the defaults. */
  readonly configured: KubernetesOptions;
  /** Whether policies and rights come from the cluster. */
  readonly asksCluster: boolean;
  /** Files and folders; empty if the cluster is asked. */
  readonly paths: readonly string[];
}

type Flags = JudgeFlags & SourceFlags;

/** `cluster`: only policies of a cluster count. `judgesRules`: rules for pods suffice. */
export async function judgeOptions(flags: Flags, judgesRules = false): Promise<JudgeOptions> {
  const { configFile, policies = [], cluster, kubeconfig, context } = flags;
  if (cluster === true && policies.length > 0) {
    throw new UsageError('expected either --cluster or --policies, got both');
  }
  const configured = await read(configFile, overrides(flags));
  const asksCluster = cluster === true || configured.source === 'cluster';
  if (!asksCluster && (kubeconfig !== undefined || context !== undefined)) {
    const flag = kubeconfig === undefined ? '--context' : '--kubeconfig';
    throw new UsageError(`expected ${flag} only where the cluster is asked: with --cluster`);
  }
  const paths = asksCluster ? [] : policies.length === 0 ? configured.scheduling_policies : policies;
  if (!asksCluster && paths.length === 0 && !(judgesRules && configured.rules_path !== undefined)) {
    throw new UsageError(
      'expected --policies, --cluster, or --config-file with scheduling_policies or source = cluster in [kubernetes]',
    );
  }
  return { configured, asksCluster, paths };
}

/** How policies merge, and what is not judged. Flags override the configuration. */
export async function setOptions(
  { mergeStrategy, defaultPriorityClass }: JudgeFlags,
  configured: KubernetesOptions,
) {
  const { policyOptions } = await import('../../kubernetes/options.ts');
  const own = policyOptions(configured);
  return {
    ...own,
    strategy: mergeStrategy ?? own.strategy,
    defaultPriorityClass: defaultPriorityClass ?? own.defaultPriorityClass,
  };
}

function overrides({ policies = [], cluster, kubeconfig }: Flags): Readonly<Record<string, unknown>> {
  if (policies.length > 0) {
    return { source: 'files', scheduling_policies: [...policies] };
  }
  return {
    ...(cluster === true && { source: 'cluster', scheduling_policies: [] }),
    ...(kubeconfig !== undefined && { kubeconfig }),
  };
}

async function read(
  configFiles: readonly string[] | undefined,
  values: Readonly<Record<string, unknown>>,
): Promise<KubernetesOptions> {
  if (configFiles === undefined) {
    return (await import('../../kubernetes/options.ts')).kubernetesOptions.parse({});
  }
  // Keys, certificates and tokens of the service, and an unused kubeconfig, need not exist here.
  const unused = values.source === 'files' ? ['tokens_file', 'kubeconfig'] : ['tokens_file'];
  return readKubernetes(configFiles, unused, values);
}

/** `[kubernetes]` of a service. Ignores errors elsewhere or in `unused`. @throws ConfigurationError */
export async function readKubernetes(
  configFiles: readonly string[],
  unused: readonly string[],
  values: Readonly<Record<string, unknown>> = {},
): Promise<KubernetesOptions> {
  const { kubernetesSection } = await import('../../kubernetes/options.ts');
  const { readConfiguration, sectionOf } = await import('../../enforcement/configuration.ts');
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const sources = { configFiles, environment: {}, values: { kubernetes: values } };
  const configuration = await readConfiguration(sources, SECTIONS);
  const problems = configuration.problems.filter(
    ({ severity, section, option = '' }) =>
      severity === 'error' &&
      (section === undefined || (section === 'kubernetes' && !unused.includes(option))),
  );
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  return sectionOf(configuration, kubernetesSection);
}

export interface AccountFlags {
  readonly namespace?: string;
  readonly serviceAccount?: string;
}

export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

export interface JudgeFlags {
  readonly configFile?: readonly string[];
  readonly mergeStrategy?: MergeStrategy;
  readonly defaultPriorityClass?: string;
}

interface SourceFlags extends ClusterFlags {
  readonly policies?: readonly string[];
  readonly cluster?: boolean;
}

export interface CheckFlags extends AccountFlags, SourceFlags, JudgeFlags {
  readonly format: 'diff' | 'json';
}

export interface MergeFlags extends AccountFlags, SourceFlags {
  readonly mergeStrategy: MergeStrategy;
  readonly user?: string;
  readonly group?: readonly string[];
  readonly format: 'table' | 'json';
}

export interface WhoCanFlags extends AccountFlags, ClusterFlags {
  readonly user?: string;
  readonly group?: readonly string[];
  readonly format: 'table' | 'json';
}

export interface ScanFlags extends ClusterFlags, JudgeFlags {
  readonly namespace?: readonly string[];
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly exemptNamespace?: readonly string[];
  readonly workloads?: boolean;
  readonly format: 'table' | 'json' | 'junit';
}

export interface ExportFlags extends SourceFlags, JudgeFlags {
  /** Rules for pods instead of policies. */
  readonly rules?: string;
  /** Name prefix of all objects. */
  readonly name: string;
  readonly exemptNamespace?: readonly string[];
  readonly warnOnly?: boolean;
  readonly strict?: boolean;
  readonly format: 'vap';
}
