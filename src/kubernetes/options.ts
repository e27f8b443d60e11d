import { z } from 'zod';
import type { Problem } from '../base/errors.ts';
import type { FurtherSection } from '../config/option-groups.ts';
import type { Setting } from '../config/resolve.ts';
import { MIN_TOKEN_LENGTH, TOKEN_FORM } from '../config/secret.ts';
import {
  DAEMON_SET_TOLERATIONS,
  SCHEDULERS,
  SYSTEM_TOLERATION_PATTERN,
  SYSTEM_TOLERATIONS,
} from './policies/cluster-settings.ts';
import { MERGE_STRATEGIES } from './policies/merge.ts';

const tolerations = z.array(z.string().regex(SYSTEM_TOLERATION_PATTERN));
const TOLERATIONS = 'a comma-separated list of key:effect, key=value:effect or key:effect:seconds';

const path = z.string().min(1).optional();
const expectedPath = 'the path of a file';

/** `[kubernetes]`: the scheduling policies that pods must satisfy. */
export const kubernetesOptions = z.object({
  source: z.enum(['files', 'cluster']).default('files').meta({
    description:
      'Where policies and the rights to use them come from. files: scheduling_policies. cluster: the API server; policies are followed as they change, and SubjectAccessReviews say who may use them.',
  }),
  kubeconfig: path.meta({
    description:
      'With source = cluster: the kubeconfig of an account that may list and watch scheduling policies and create SubjectAccessReviews; etc/kubernetes has the role. Not set = the service account of the pod. It and the files that it names are read again when they change.',
    file: true,
    secretFile: true,
    guard: true,
    expected: expectedPath,
  }),
  cluster_stale_after: z.number().min(10).max(86_400).default(300).meta({
    unit: 'seconds',
    description:
      'With source = cluster: how long policies stay in force that can no longer be followed. After that every pod is refused until the API server answers again.',
  }),
  rights: z.enum(['auto', 'every']).default('auto').meta({
    description:
      'With source = cluster: whether one review is created for every policy. auto: up to 32 policies; where there are more, only for those that roles and bindings of the cluster name, so that a pod costs few reviews. every: always, for clusters where another authorizer than RBAC grants the use of single policies: with auto and more than 32 policies, such a grant is not seen, and what its policy requires is not required.',
  }),
  write_status: z.boolean().default(true).meta({
    description:
      'With source = cluster: whether the service writes the conditions Accepted, Enforced and Exportable into the status of each policy, and events about refused pods and invalid policies.',
  }),
  status_lease: z
    .string()
    .max(253)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
    .default('blazar-enforcement')
    .meta({
      description:
        'With source = cluster: the Lease, in the namespace of the service account or of the kubeconfig, that elects the replica which writes the status. Replicas of one installation share it; another installation in the namespace needs another name.',
      expected: 'the name of a Lease: lower case letters, digits, - and dots',
    }),
  workloads: z.enum(['warn', 'refuse', 'ignore']).default('warn').meta({
    description:
      'What happens when a Deployment, StatefulSet, ReplicaSet, Job or CronJob is stored whose pods would be refused. DaemonSets are always judged.',
  }),
  certificate_secret: z.string().min(1).optional().meta({
    description:
      'With source = cluster: the Secret, in the namespace of the service account or of the kubeconfig, in which all replicas keep the certificate that the service makes for itself. Not set = it makes none.',
  }),
  certificate_folder: path.meta({
    description:
      'Where the service writes that certificate: server.pem, with certificate and key, which tls_cert_file and tls_key_file in [service] name. scheduling-policy certificates writes it before the first start.',
    guard: true,
    expected: 'the path of a folder',
  }),
  certificate_names: z
    .array(z.string().regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/))
    .default([])
    .meta({
      description: 'The DNS names of that certificate: SERVICE.NAMESPACE.svc, as API servers call it.',
      expected: 'a comma-separated list of DNS names',
    }),
  certificate_days: z.number().int().min(1).max(3650).default(365).meta({
    description:
      'How many days that certificate is valid. When less than a third is left, another one takes its place.',
  }),
  webhook_configurations: z.array(z.string().min(1)).default([]).meta({
    description:
      'Names of MutatingWebhookConfigurations and ValidatingWebhookConfigurations in which the service writes the authority of that certificate, so that API servers trust it.',
  }),
  installed_webhooks: z.array(z.string().min(1)).default([]).meta({
    description:
      'With source = cluster: YAML files, or folders of them, with the webhook configurations as they were installed. Every 30 seconds the service compares them with those of the API server. What is missing, or changed so that API servers ask about less, is reported in the condition Enforced of policies, in the log and in the metrics. Empty = this is not noticed.',
    expected: 'a comma-separated list of paths',
  }),
  scheduling_policies: z.array(z.string()).default([]).meta({
    watched: true,
    description:
      'YAML files, or folders of them, with scheduling policies, roles and bindings. Empty = the Kubernetes webhooks are off, unless source = cluster.',
  }),
  rules_path: path.meta({
    watched: true,
    description:
      'A YAML file, or a folder of them, with rules; those with on: pod must be true for a pod to be admitted, after the scheduling policies. It may be the file of [enforcement] rules_path.',
    expected: 'the path of a file or a folder',
  }),
  tokens: z
    .array(z.string().regex(TOKEN_FORM))
    .default([])
    .meta({
      description:
        'Tokens that API servers must send: as Authorization: Bearer, configured in their kubeconfig for webhooks, or appended to the path of the webhook; there a token may contain only a-z, 0-9, - and dots. If tokens, tokens_file and client_ca_file are all unset, every client that can reach a loopback address is accepted; an empty list is an error.',
      secret: true,
      guard: true,
      expected: `a comma-separated list of ASCII strings of at least ${MIN_TOKEN_LENGTH} characters without spaces`,
    }),
  tokens_file: path.meta({
    description:
      'A file with more tokens for API servers, one per line; lines that start with # are comments. Read again when it changes.',
    file: true,
    guard: true,
    expected: expectedPath,
  }),
  client_ca_file: path.meta({
    description:
      'A PEM file of certificate authorities. API servers must present a certificate from one of them; if tokens are set, also a token. Other clients need no certificate. Cannot be combined with client_ca_file in [service]. The file is read again when it changes; adding or removing the option needs a restart.',
    file: true,
    guard: true,
    expected: expectedPath,
  }),
  merge_strategy: z.enum(MERGE_STRATEGIES).default('deep').meta({
    description:
      'How several policies of one account combine. deep: for each required or default part, the first policy by name wins; what is allowed adds up. first: only the first policy counts. simple: for each field, the first policy that has it wins. intersection: every policy must allow the pod.',
  }),
  audit: z.array(z.string()).default([]).meta({
    description:
      'Names of policies in audit mode: what they would reject becomes a warning for the user. * = all policies, also for accounts that have none.',
  }),
  system_tolerations: tolerations.default([...SYSTEM_TOLERATIONS]).meta({
    description:
      'Tolerations that the API server adds to every pod. Tolerations that exactly match one of these are not judged. Format: key:effect or key=value:effect, optionally followed by :seconds.',
    expected: TOLERATIONS,
  }),
  daemon_set_tolerations: tolerations.default([...DAEMON_SET_TOLERATIONS]).meta({
    description:
      'Tolerations that the DaemonSet controller adds to the pods that it creates. They are not judged in its pods, but in all others.',
    expected: TOLERATIONS,
  }),
  default_priority_class: z.string().min(1).optional().meta({
    description:
      'The PriorityClass of the cluster with globalDefault: true, which the API server gives to pods without one. Pods may have it without permission, and the default of a policy replaces it.',
  }),
  schedulers: z
    .array(z.string().min(1))
    .default([...SCHEDULERS])
    .meta({
      description:
        'Users that may assign any pod to any node, as schedulers do. Any other user who creates a Binding needs policies that allow all schedulers, that node by name, and tolerations of all NoSchedule taints.',
    }),
  topology_spread_constraints: z.enum(['allow', 'refuse']).default('allow').meta({
    description:
      'Whether pods may have topologySpreadConstraints, which policies cannot describe. refuse: only pods that may have all podAntiAffinities, which have the same effect.',
  }),
});

export type KubernetesOptions = z.infer<typeof kubernetesOptions>;

export const kubernetesSection = {
  section: 'kubernetes',
  schema: kubernetesOptions,
  check: policyProblems,
} as const satisfies FurtherSection;

export function policyOptions(options: KubernetesOptions) {
  return {
    strategy: options.merge_strategy,
    systemTolerations: options.system_tolerations,
    daemonSetTolerations: options.daemon_set_tolerations,
    defaultPriorityClass: options.default_priority_class,
    topologySpreadConstraints: options.topology_spread_constraints,
  };
}

export function servesKubernetes({ source, scheduling_policies, rules_path }: KubernetesOptions): boolean {
  return source === 'cluster' || scheduling_policies.length > 0 || rules_path !== undefined;
}

type Found = Problem | { readonly option: string; readonly message: string };

/** Loads the YAML reader only if there are policies, because that takes time. */
async function policyProblems(options: KubernetesOptions, settings?: readonly Setting[]): Promise<Found[]> {
  const { rules_path: rules } = options;
  return [
    ...certificateProblems(options),
    ...(await sourceProblems(options)),
    ...(rules === undefined
      ? []
      : (await import('../rules/section-problems.ts')).sectionProblems(rules, ['pod'], settings)),
  ];
}

/** Options that only work together. */
function certificateProblems({
  source,
  certificate_secret,
  certificate_folder,
  certificate_names,
  webhook_configurations,
}: KubernetesOptions): Found[] {
  const given = {
    certificate_secret: certificate_secret !== undefined,
    certificate_folder: certificate_folder !== undefined,
    certificate_names: certificate_names.length > 0,
    webhook_configurations: webhook_configurations.length > 0,
  };
  const set = Object.entries(given).filter(([, isSet]) => isSet);
  const missing = Object.entries(given).filter(([, isSet]) => !isSet);
  const [first] = set;
  if (first === undefined) {
    return [];
  }
  if (source !== 'cluster') {
    return set.map(([option]) => ({ option, message: 'expected nothing, unless source = cluster' }));
  }
  return missing.map(([option]) => ({ option, message: `expected a value, since ${first[0]} is set` }));
}

async function sourceProblems({
  source,
  kubeconfig,
  scheduling_policies,
  installed_webhooks,
  audit,
}: KubernetesOptions): Promise<Found[]> {
  if (source === 'cluster') {
    const message = 'expected nothing, since source = cluster reads no policies from files';
    return [
      ...(scheduling_policies.length === 0 ? [] : [{ option: 'scheduling_policies', message }]),
      ...(installed_webhooks.length === 0
        ? []
        : (await import('./cluster/status/installed-webhooks.ts')).readInstalled(installed_webhooks)
            .problems),
    ];
  }
  const unread = Object.entries({ kubeconfig: kubeconfig ?? [], installed_webhooks })
    .filter(([, value]) => value.length > 0)
    .map(([option]) => ({ option, message: 'expected nothing, unless source = cluster' }));
  if (scheduling_policies.length === 0) {
    return unread;
  }
  const { readPolicyDocuments } = await import('./policies/documents/documents.ts');
  const { nearestName } = await import('../config/nearest.ts');
  const { policies, problems } = readPolicyDocuments(scheduling_policies);
  const names = policies.map(({ name }) => name);
  const unknown = problems.some(({ severity }) => severity === 'error')
    ? []
    : audit.filter((name) => name !== '*' && !names.includes(name));
  return [
    ...unread,
    ...problems,
    ...unknown.map((name) => ({
      option: 'audit',
      message: `there is no scheduling policy ${JSON.stringify(name)}${nearestName(name, names)}`,
    })),
  ];
}
