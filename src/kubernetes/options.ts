import { z } from 'zod';
import type { FurtherSection } from '../config/option-groups.ts';
import type { Problem } from '../errors.ts';
import { SCHEDULERS } from './cluster.ts';
import { MERGE_STRATEGIES } from './merge.ts';
import {
  DAEMON_SET_TOLERATIONS,
  SYSTEM_TOLERATION_PATTERN,
  SYSTEM_TOLERATIONS,
} from './system-tolerations.ts';

const tolerations = z.array(z.string().regex(SYSTEM_TOLERATION_PATTERN));
const TOLERATIONS = 'a comma-separated list of key:effect, key=value:effect or key:effect:seconds';

const path = z.string().min(1).optional();
const expectedPath = 'the path of a file';

/** `[kubernetes]`: the scheduling policies that pods must satisfy. */
export const kubernetesOptions = z.object({
  scheduling_policies: z.array(z.string()).default([]).meta({
    watched: true,
    description:
      'YAML files, or folders of them, with scheduling policies, roles and bindings. Empty = the Kubernetes webhooks are off.',
  }),
  tokens: z
    .array(z.string().regex(/^[\x21-\x7e]+$/))
    .default([])
    .meta({
      description:
        'Tokens that API servers must send: as Authorization: Bearer, configured in their kubeconfig for webhooks, or appended to the path of the webhook; there a token may contain only a-z, 0-9, - and dots. If tokens, tokens_file and client_ca_file are all unset, every client that can reach a loopback address is accepted; an empty list is an error.',
      secret: true,
      guard: true,
      expected: 'a comma-separated list of ASCII strings without spaces',
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

/** The section of the configuration. */
export const kubernetesSection = {
  section: 'kubernetes',
  schema: kubernetesOptions,
  check: policyProblems,
} as const satisfies FurtherSection;

/** Maps the options to those of `SchedulingPolicies`. */
export function policyOptions(options: KubernetesOptions) {
  return {
    strategy: options.merge_strategy,
    systemTolerations: options.system_tolerations,
    daemonSetTolerations: options.daemon_set_tolerations,
    defaultPriorityClass: options.default_priority_class,
    topologySpreadConstraints: options.topology_spread_constraints,
  };
}

/** Loads the YAML reader only if there are policies, because that takes time. */
async function policyProblems({
  scheduling_policies,
  audit,
}: KubernetesOptions): Promise<(Problem | { option: string; message: string })[]> {
  if (scheduling_policies.length === 0) {
    return [];
  }
  const { readPolicyDocuments } = await import('./documents.ts');
  const { nearestName } = await import('../config/nearest.ts');
  const { policies, problems } = readPolicyDocuments(scheduling_policies);
  const names = policies.map(({ name }) => name);
  const unknown = problems.some(({ severity }) => severity === 'error')
    ? []
    : audit.filter((name) => name !== '*' && !names.includes(name));
  return [
    ...problems,
    ...unknown.map((name) => ({
      option: 'audit',
      message: `there is no scheduling policy ${JSON.stringify(name)}${nearestName(name, names)}`,
    })),
  ];
}
