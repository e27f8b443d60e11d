/** Cluster access for `scheduling-policy` commands, and their messages when it fails. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { ApiClient, ApiError } from '../../kubernetes/cluster/api/contract.ts';
import type {
  ClusterPolicies,
  ClusterSnapshot,
  UseReviews,
} from '../../kubernetes/cluster/snapshot/cluster-snapshot.ts';
import type { KubernetesOptions } from '../../kubernetes/options.ts';
import type { PolicySetOptions } from '../../kubernetes/policies/scheduling-policies.ts';
import { fail, UsageError, warn } from '../common/output.ts';
import { type ClusterFlags, type JudgeFlags, setOptions } from './options.ts';

/** A reachable cluster. */
export interface AskedCluster {
  readonly client: ApiClient;
  readonly reviews: UseReviews;
}

/** Shows the message of a failed credential plugin, for example that a session has expired. */
const PLUGIN_LOGGER = {
  info: () => undefined,
  warn: (fields: unknown) => {
    if (typeof fields === 'object' && fields !== null && 'stderr' in fields) {
      warn(String(fields.stderr));
    }
  },
};

/**
 * Connects to a cluster. A refused request is an error of the user: exit code 2. Without a response, prints
 * one line and sets exit code 3. `configured`: the kubeconfig of the service.
 */
export async function withCluster(
  flags: ClusterFlags,
  configured: string | undefined,
  work: (cluster: AskedCluster) => Promise<void>,
): Promise<void> {
  const kubeconfig = kubeconfigOf(flags, configured);
  const { createApiClient } = await import('../../kubernetes/cluster/api/api-client.ts');
  const { UseReviews } = await import('../../kubernetes/cluster/snapshot/cluster-snapshot.ts');
  const client = createApiClient({ kubeconfig, context: flags.context, logger: PLUGIN_LOGGER });
  try {
    await work({ client, reviews: new UseReviews(client) });
  } catch (thrown) {
    const problem = await problemOf(thrown, client.server);
    if (problem === undefined) {
      throw thrown;
    }
    fail(problem);
  } finally {
    await client.close();
  }
}

/** The policies of the cluster and the rights to use them. Prints problems of policies. */
export async function readSnapshot(
  { client, reviews }: AskedCluster,
  rights: KubernetesOptions['rights'],
  options: PolicySetOptions,
): Promise<ClusterSnapshot> {
  const { valid, invalid } = await readPolicies(client);
  const { ClusterSnapshot } = await import('../../kubernetes/cluster/snapshot/cluster-snapshot.ts');
  const { PolicySet } = await import('../../kubernetes/policies/scheduling-policies.ts');
  return new ClusterSnapshot(new PolicySet(valid, options, invalid), client, reviews, {
    rights,
    onUnlisted: ({ message }) =>
      warn(`roles and bindings cannot be listed, so every policy is asked for: ${message}`),
  });
}

/**
 * The cluster's policies with the options of a service. Without a configuration, the service is assumed to
 * have the PriorityClass with `globalDefault: true`; with one, its `default_priority_class` is used, like in
 * the service.
 */
export async function judgingSnapshot(
  cluster: AskedCluster,
  flags: JudgeFlags,
  configured: KubernetesOptions,
): Promise<{ readonly source: ClusterSnapshot; readonly settings: PolicySetOptions }> {
  const options = await setOptions(flags, configured);
  const given = options.defaultPriorityClass;
  const found = await defaultPriorityClassOf(cluster, given);
  const isKnown = given !== undefined || flags.configFile !== undefined;
  if (isKnown && found !== given) {
    const known = given === undefined ? 'is not set' : `is ${given}`;
    const has = found === undefined ? 'no PriorityClass' : `the PriorityClass ${found}`;
    warn(`default_priority_class ${known}, but the cluster has ${has} with globalDefault: true`);
  }
  if (!isKnown && found !== undefined) {
    warn(
      `the cluster gives the PriorityClass ${found} to pods without one: judged as by a service with default_priority_class = ${found}`,
    );
  }
  const source = await readSnapshot(cluster, configured.rights, {
    ...options,
    defaultPriorityClass: isKnown ? given : found,
  });
  return { source, settings: { ...options, defaultPriorityClass: found } };
}

/** `unless`: the result if the cluster refuses to answer. */
async function defaultPriorityClassOf(
  { client }: AskedCluster,
  unless: string | undefined,
): Promise<string | undefined> {
  const { ApiError } = await import('../../kubernetes/cluster/api/contract.ts');
  const { readDefaultPriorityClass } = await import('../../kubernetes/cluster/snapshot/cluster-snapshot.ts');
  try {
    return await readDefaultPriorityClass(client);
  } catch (thrown) {
    if (!(thrown instanceof ApiError && thrown.status === 403)) {
      throw thrown;
    }
    if (unless === undefined) {
      warn(`the default PriorityClass of the cluster is not known: ${thrown.message}`);
    }
    return unless;
  }
}

async function readPolicies(client: ApiClient): Promise<ClusterPolicies> {
  const policies = await policiesOf(client);
  const { valid, invalid } = policies;
  for (const { name, message } of invalid) {
    warn(
      `scheduling policy ${name} is invalid: ${message}. Accounts that may use it are refused, unless the service has seen it valid`,
    );
  }
  if (valid.length + invalid.length === 0) {
    warn('the cluster has no scheduling policies: no account may use any');
  }
  return policies;
}

/** @throws UsageError if the cluster does not have the resource of scheduling policies */
export async function policiesOf(client: ApiClient): Promise<ClusterPolicies> {
  const { ApiError } = await import('../../kubernetes/cluster/api/contract.ts');
  const { readClusterPolicies } = await import('../../kubernetes/cluster/snapshot/cluster-snapshot.ts');
  try {
    return await readClusterPolicies(client);
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 404) {
      throw new UsageError(
        `${client.server} does not know scheduling policies: apply etc/kubernetes/custom-resource-definition.yaml`,
      );
    }
    throw thrown;
  }
}

/** Found as by kubectl. `undefined` = the service account of this pod. */
function kubeconfigOf(flags: ClusterFlags, configured: string | undefined): string | undefined {
  const { env } = process;
  const named = flags.kubeconfig ?? configured;
  if (named !== undefined) {
    return named;
  }
  if (env.KUBECONFIG) {
    const files = env.KUBECONFIG.split(delimiter).filter((file) => file !== '');
    // kubectl skips missing files.
    const there = files.length > 1 ? files.filter((file) => existsSync(file)) : files;
    if (there.length !== 1) {
      throw new UsageError(
        there.length === 0
          ? `$KUBECONFIG: none of its files exists: ${files.join(', ')}`
          : `$KUBECONFIG: expected one file, got ${there.length}, which are not merged: name one with --kubeconfig, or merge them with kubectl config view --flatten`,
      );
    }
    return there[0];
  }
  const usual = join(env.HOME || homedir(), '.kube', 'config');
  if (existsSync(usual)) {
    return usual;
  }
  if (env.KUBERNETES_SERVICE_HOST) {
    if (flags.context !== undefined) {
      throw new UsageError('--context: a service account has no contexts: expected --kubeconfig too');
    }
    return undefined;
  }
  throw new UsageError(
    `there is no cluster to ask: expected --kubeconfig, $KUBECONFIG, ${usual}, or the service account of a pod`,
  );
}

/** One sentence on why the cluster does not answer; `undefined` = another error. @throws UsageError */
async function problemOf(thrown: unknown, server: string): Promise<string | undefined> {
  const { ApiError, ApiUnreachableError } = await import('../../kubernetes/cluster/api/contract.ts');
  const { SourceUnavailableError } = await import('../../kubernetes/policies/access.ts');
  const { ZodError } = await import('zod');
  if (thrown instanceof SourceUnavailableError && thrown.cause instanceof ApiError) {
    return problemOf(thrown.cause, server);
  }
  if (thrown instanceof ApiError) {
    return refusal(thrown, server);
  }
  if (thrown instanceof ApiUnreachableError || thrown instanceof SourceUnavailableError) {
    return `the cluster gives no answer: ${thrown.message}`;
  }
  if (thrown instanceof ZodError) {
    return `the cluster gives no answer: ${server} sends objects that cannot be read`;
  }
  return undefined;
}

function refusal({ status, reason, message }: ApiError, server: string): string {
  switch (status) {
    case 400:
      throw new UsageError(`${server}: ${message}`);
    case 401:
      throw new UsageError(`${server} does not accept these credentials: ${message}`);
    case 403:
      throw new UsageError(`${server} forbids what this command needs: ${message}`);
    case 410:
      return `${server}: reading took so long that the list has expired: try again, with --namespace for less at once`;
    default:
      return `${server} answered ${status} ${reason}: ${message}`;
  }
}
