/** Every example of the proposal and of `examples`, judged by the webhook and by what is exported. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SUBJECTS, type Subject } from '../../../src/kubernetes/export/subject.ts';
import { readPolicyDocuments } from '../../../src/kubernetes/policies/documents/documents.ts';
import { MERGE_STRATEGIES } from '../../../src/kubernetes/policies/merge.ts';
import { parsePod } from '../../../src/kubernetes/policies/pod.ts';
import type { SchedulingPolicy } from '../../../src/kubernetes/policies/policy.ts';
import { type Manifest, parse } from '../../etc/kubernetes/manifests.ts';
import { projectFile } from '../../support/files.ts';
import { asStored, bothOf } from './admission-policy-cases.ts';

const PROPOSAL = projectFile('test/fixtures/kubernetes/proposal');
const EXAMPLES = projectFile('examples/scheduling-policies');
const POLICIES = projectFile('etc/kubernetes/policies.yaml');

/** Of a file, those that can be read. */
const policiesOf = (file: string) => readPolicyDocuments([file]).policies;
const proposal = readdirSync(PROPOSAL).sort();
const sources: readonly (readonly [name: string, policies: readonly SchedulingPolicy[]])[] = [
  ...proposal.map((name) => [name, policiesOf(join(PROPOSAL, name))] as const),
  ['examples, pods', policiesOf(join(EXAMPLES, 'pods/policies.yaml'))],
  ...readdirSync(join(EXAMPLES, 'leases')).map(
    (name) => [`examples, ${name}`, policiesOf(join(EXAMPLES, 'leases', name))] as const,
  ),
  ['etc/kubernetes', policiesOf(POLICIES)],
];

const ARCH = 'beta.kubernetes.io/arch';
const OS = 'beta.kubernetes.io/os';
const KEY = 'node-role.kubernetes.io/master';
const terms = (...matchExpressions: object[]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] },
    },
  },
});
const apart = (topologyKey: string) => ({
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey, labelSelector: { matchLabels: { app: 'web' } } },
      ],
    },
  },
});

/** Pods that have what the examples are about, and pods that do not. */
const SPECS: readonly object[] = [
  {},
  ...['default-scheduler', 'green-scheduler', 'my-scheduler', 'other'].map((schedulerName) => ({
    schedulerName,
  })),
  ...['gold', 'bronze', 'silver', 'critical-job', 'system-node-critical'].map((priorityClassName) => ({
    priorityClassName,
  })),
  ...['amd64', 'arm64', 'i386', 'riscv'].map((arch) => ({ nodeSelector: { [ARCH]: arch } })),
  ...['Linux', 'Windows'].map((os) => ({ nodeSelector: { [OS]: os, [ARCH]: 'amd64' } })),
  { nodeSelector: { [OS]: 'Linux', [ARCH]: 'i386' }, priorityClassName: 'bronze' },
  { nodeSelector: { 'kubernetes.io/arch': 'amd64', 'kubernetes.io/os': 'linux' } },
  { nodeSelector: { disk: 'ssd' } },
  { nodeSelector: { disk: 'sata', [ARCH]: 'arm64' } },
  { nodeName: 'node-1' },
  ...[
    { key: 'mykey', operator: 'Equal', value: 'value', effect: 'NoSchedule' },
    { key: 'mykey', operator: 'Exists' },
    { key: KEY, operator: 'Exists', effect: 'NoSchedule' },
    { operator: 'Exists' },
    { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
  ].map((toleration) => ({ tolerations: [toleration] })),
  terms({ key: ARCH, operator: 'In', values: ['amd64'] }),
  terms(
    { key: ARCH, operator: 'In', values: ['amd64', 'arm64'] },
    { key: OS, operator: 'In', values: ['Linux'] },
  ),
  terms({ key: 'authorized-region', operator: 'NotIn', values: ['private'] }),
  terms({ key: 'disk', operator: 'Exists' }),
  apart('kubernetes.io/hostname'),
  apart('region'),
  { topologySpreadConstraints: [{ whenUnsatisfiable: 'DoNotSchedule' }] },
];

/** What a policy adds is what it allows, in most examples. */
const defaultsOf = (policies: readonly SchedulingPolicy[]): object[] =>
  policies.map(({ default: defaults }) => {
    const { toleration, tolerations = toleration, ...others } = defaults as Record<string, unknown>;
    return { ...others, ...(Array.isArray(tolerations) && { tolerations }) };
  });

const ofExamples = ['train.yaml', 'web.yaml'].map((name): object => {
  const [pod] = parse(readFileSync(join(EXAMPLES, 'pods', name), 'utf8')) as [Manifest];
  return pod.spec;
});

const stored = (spec: object) =>
  asStored(parsePod({ metadata: { name: 'web' }, spec: { ...spec, serviceAccountName: 'trainer' } }));

function judgements(policies: readonly SchedulingPolicy[], subject: Subject) {
  const specs = [...SPECS, ...ofExamples, ...defaultsOf(policies)];
  return MERGE_STRATEGIES.flatMap((strategy) =>
    specs.map((spec) => {
      const { webhook, exported } = bothOf({
        ...{ policies, strategy, subject, pod: stored(spec), current: undefined, node: 'node-1' },
        ...{ rights: policies.map(() => 'namespace' as const), username: 'lin' },
        ...{ refusesTopologySpread: false, defaultPriorityClass: undefined },
      });
      return { strategy, spec, webhook, exported: exported.allowed };
    }),
  );
}

describe('exported ValidatingAdmissionPolicies of examples', () => {
  const withPolicies = sources.filter(([, policies]) => policies.length > 0);

  const seen = { allowed: 0, refused: 0 };

  it('are those of all files but three that are refused and three with roles', () => {
    const without = proposal.filter((name) => !withPolicies.some(([other]) => other === name));
    expect(without.map((name) => name.slice(0, 2))).toEqual(['03', '14', '18', '32', '33', '34']);
  });

  it.each(withPolicies)('judge as the webhook does: %s', (_, policies) => {
    const all = SUBJECTS.filter((subject) => subject !== 'bindings').flatMap((subject) =>
      judgements(policies, subject),
    );
    expect(all.filter(({ webhook, exported }) => webhook !== exported)).toEqual([]);
    for (const { webhook } of all) {
      seen[webhook ? 'allowed' : 'refused'] += 1;
    }
  });

  it('were asked about pods of both kinds', () => {
    console.info(`${seen.allowed} allowed, ${seen.refused} refused`);
    expect(Math.min(seen.allowed, seen.refused)).toBeGreaterThan(500);
  });
});
