import { z } from 'zod';
import type { FurtherSection } from '../config/option-groups.ts';
import type { Problem } from '../errors.ts';
import { MERGE_STRATEGIES } from './merge-strategy.ts';
import { SCHEDULERS } from './schedulers.ts';
import {
  DAEMON_SET_TOLERATIONS,
  SYSTEM_TOLERATION_PATTERN,
  SYSTEM_TOLERATIONS,
} from './system-tolerations.ts';

const tolerations = z.array(z.string().regex(SYSTEM_TOLERATION_PATTERN));
const TOLERATIONS = 'a list of key:effect, key=value:effect or key:effect:seconds, with commas between them';

const path = z.string().min(1).optional();
const expectedPath = 'the path of a file';

/** `[kubernetes]`: which scheduling policies pods must fit. */
export const kubernetesOptions = z.object({
  scheduling_policies: z.array(z.string()).default([]).meta({
    watched: true,
    description:
      'Files, and folders of files, with scheduling policies, roles and bindings in YAML. Empty = Kubernetes is not served.',
  }),
  tokens: z
    .array(z.string().regex(/^[\x21-\x7e]+$/))
    .default([])
    .meta({
      description:
        'What API servers must send: as Authorization: Bearer, by the kubeconfig that they have for webhooks, or behind the path of the webhook, where a token has no other characters than a-z, 0-9, - and a dot. None of tokens, tokens_file and client_ca_file set = everyone may ask who reaches a loopback address; set and empty is an error.',
      secret: true,
      guard: true,
      expected: 'a list of ASCII texts without spaces, with commas between them',
    }),
  tokens_file: path.meta({
    description:
      'A file with further tokens for API servers, one a line; a line that starts with # is a comment. Read again when it changes.',
    file: true,
    guard: true,
    expected: expectedPath,
  }),
  client_ca_file: path.meta({
    description:
      'The authorities whose certificates API servers must show, in PEM; with tokens, besides one of them. All others show none. Not with client_ca_file in [service]. Read again when it changes; whether it is set, at the start.',
    file: true,
    guard: true,
    expected: expectedPath,
  }),
  merge_strategy: z.enum(MERGE_STRATEGIES).default('deep').meta({
    description:
      'What several policies that an account may use say together. deep: of what is required and default the first policy counts, part by part, in the order of names; what is allowed adds up. first: only the first policy. simple: of each field the first policy that has it. intersection: all must let the pod through.',
  }),
  audit: z.array(z.string()).default([]).meta({
    description:
      'Names of policies that are tried: what they would refuse is a warning for the user. * = all, and also where no policy may be used.',
  }),
  system_tolerations: tolerations.default([...SYSTEM_TOLERATIONS]).meta({
    description:
      'Tolerations that the API server gives to every pod, and that nobody has asked for: those that are exactly one of these are not judged. key:effect or key=value:effect, with seconds behind if it has some.',
    expected: TOLERATIONS,
  }),
  daemon_set_tolerations: tolerations.default([...DAEMON_SET_TOLERATIONS]).meta({
    description:
      'Tolerations that the controller of DaemonSets gives to the pods that it creates. Of its pods they are not judged, of all others they are.',
    expected: TOLERATIONS,
  }),
  default_priority_class: z.string().min(1).optional().meta({
    description:
      'The PriorityClass of the cluster with globalDefault: true, which the API server gives to pods that name none. It is no choice of the pod: it needs no permission, and a default of a policy takes its place.',
  }),
  schedulers: z
    .array(z.string().min(1))
    .default([...SCHEDULERS])
    .meta({
      description:
        'The users that may put any pod on any node, as schedulers do. Whoever else creates a Binding needs policies that allow all schedulers, that node by name, and tolerations of all NoSchedule taints.',
    }),
  topology_spread_constraints: z.enum(['allow', 'refuse']).default('allow').meta({
    description:
      'Whether pods may have topologySpreadConstraints, of which policies say nothing. refuse: only pods that may have all podAntiAffinities, which keep pods apart in the same way.',
  }),
});

export type KubernetesOptions = z.infer<typeof kubernetesOptions>;

/** The section as the configuration is asked for it. */
export const kubernetesSection = {
  section: 'kubernetes',
  schema: kubernetesOptions,
  check: policyProblems,
} as const satisfies FurtherSection;

/** The options as the policies take them. */
export function policyOptions(options: KubernetesOptions) {
  return {
    strategy: options.merge_strategy,
    systemTolerations: options.system_tolerations,
    daemonSetTolerations: options.daemon_set_tolerations,
    defaultPriorityClass: options.default_priority_class,
    topologySpreadConstraints: options.topology_spread_constraints,
  };
}

/** Reading YAML takes a while to load: only where there is some. */
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
