/** `[kubernetes]`, as `config validate` looks at it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfiguration, requireConfiguration, sectionOf } from '../../src/enforcement/configuration.ts';
import { kubernetesOptions, kubernetesSection } from '../../src/kubernetes/options.ts';
import {
  DAEMON_SET_TOLERATIONS,
  SYSTEM_TOLERATIONS,
} from '../../src/kubernetes/policies/cluster-settings.ts';
import { configFile, shown } from '../config/helpers.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { policies, policiesForAll } from '../support/kubernetes-service.ts';

const FREE = { allowed: { schedulerNames: [] } };

/** The mistakes of the section with these lines, of which the first is in line 2; `{}` = a folder with these files. */
async function problems(lines: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text);
  }
  const text = ['[kubernetes]', ...lines].join('\n').replaceAll('{}', folder);
  const sources = { configFiles: [configFile(text)], environment: {} };
  const { problems: found, namedFiles } = await readConfiguration(sources, [kubernetesSection]);
  const own = found.filter(({ section }) => section !== 'enforcement');
  return {
    errors: shown(own, 'error').map((one) => one.replaceAll(folder, '')),
    warnings: shown(own, 'warning'),
    namedFiles: namedFiles.map((path) => path.replaceAll(folder, '')),
  };
}

const errorsOf = async (...args: Parameters<typeof problems>) => (await problems(...args)).errors;
const GOOD = { 'a.yaml': policiesForAll({ disks: FREE, zones: FREE }) };

describe('the section', () => {
  it('has defaults that serve nothing', async () => {
    expect(kubernetesOptions.parse({})).toEqual({
      source: 'files',
      cluster_stale_after: 300,
      rights: 'auto',
      write_status: true,
      status_lease: 'blazar-enforcement',
      certificate_days: 365,
      certificate_names: [],
      webhook_configurations: [],
      workloads: 'warn',
      scheduling_policies: [],
      merge_strategy: 'deep',
      audit: [],
      system_tolerations: [...SYSTEM_TOLERATIONS],
      daemon_set_tolerations: [...DAEMON_SET_TOLERATIONS],
      topology_spread_constraints: 'allow',
      schedulers: ['system:kube-scheduler'],
      tokens: [],
    });
    expect(await problems([])).toEqual({ errors: [], warnings: [], namedFiles: [] });
  });

  it('is read as it is written', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'a.yaml'), GOOD['a.yaml']);
    const text = `[kubernetes]
scheduling_policies = ${folder}
merge_strategy = intersection
audit = disks, zones
system_tolerations = example.org/a:NoSchedule, b=c:NoExecute, d=:PreferNoSchedule, e:NoExecute:300
daemon_set_tolerations = f:NoExecute
default_priority_class = everybody
topology_spread_constraints = refuse
schedulers = system:kube-scheduler, own
`;
    const sources = { configFiles: [configFile(text)], environment: {} };
    const configuration = await requireConfiguration(sources, [kubernetesSection]);
    expect(sectionOf(configuration, kubernetesSection)).toEqual({
      ...kubernetesOptions.parse({}),
      scheduling_policies: [folder],
      merge_strategy: 'intersection',
      audit: ['disks', 'zones'],
      system_tolerations: [
        'example.org/a:NoSchedule',
        'b=c:NoExecute',
        'd=:PreferNoSchedule',
        'e:NoExecute:300',
      ],
      daemon_set_tolerations: ['f:NoExecute'],
      default_priority_class: 'everybody',
      topology_spread_constraints: 'refuse',
      schedulers: ['system:kube-scheduler', 'own'],
    });
    expect(configuration.namedFiles).toEqual([folder]);
  });

  it('reports an invalid value with its position', async () => {
    expect(await errorsOf(['merge_strategy = deepest'])).toEqual([
      expect.stringMatching(/^blazar\.conf:2: \[kubernetes\] merge_strategy: .*deep.*"deepest"/),
    ]);
    expect(await errorsOf(['scheduling_policy = /etc'])).toEqual([
      expect.stringMatching(/^blazar\.conf:2: \[kubernetes\] scheduling_policy: .*"scheduling_policies"/),
    ]);
  });

  it.each(['a', 'a:Sometimes', ':NoSchedule', 'a:NoSchedule:soon', 'a b:NoSchedule', 'a=b=c:NoSchedule'])(
    'takes no system toleration that is written as %s',
    async (written) => {
      expect(await errorsOf([`system_tolerations = ${written}`])).toEqual([
        expect.stringMatching(
          /^blazar\.conf:2: \[kubernetes\] system_tolerations: expected a comma-separated list of key:effect/,
        ),
      ]);
    },
  );
});

it.each([
  [
    ['source = cluster', 'scheduling_policies = {}'],
    /scheduling_policies: expected nothing, since source = cluster/,
  ],
  [['kubeconfig = {}/a.yaml'], /kubeconfig: expected nothing, unless source = cluster/],
])('an option of the other source is refused: %j', async (lines, message) => {
  expect(await errorsOf(lines, GOOD)).toEqual([expect.stringMatching(message)]);
});

describe('the policies that it names', () => {
  it('are read, and their errors reported with file and line', async () => {
    const files = {
      'a.yaml': policies({ disks: FREE }),
      'b.yaml': 'kind: SchedulingPolicy\nmetadata: {name: b}\nspec:\n  allowed:\n    colour: red\n',
      'c.yml': 'kind: [\n',
    };
    const { errors } = await problems(['# none', 'scheduling_policies = {}'], files);
    expect(errors.sort()).toEqual([
      expect.stringMatching(/^b\.yaml:5: spec\.allowed\.colour: /),
      expect.stringMatching(/^c\.yml:\d+: /),
    ]);
  });

  it('are errors if they are missing or invalid', async () => {
    expect(await errorsOf(['scheduling_policies = {}/none.yaml, {}'])).toEqual([
      expect.stringMatching(/^\/none\.yaml: could not be read: /),
      ': no *.yaml, *.yml or *.json file in this folder',
    ]);
  });

  it('may have warnings', async () => {
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'x' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'none' },
      subjects: [],
    };
    const files = { 'a.yaml': `${GOOD['a.yaml']}---\n${JSON.stringify(binding)}\n` };
    const { errors, warnings } = await problems(['scheduling_policies = {}'], files);
    expect(errors).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/^a\.yaml:\d+: .*none/)]);
  });

  it('are what --watch looks at', async () => {
    const files = { 'a.yaml': policies({ a: FREE }), 'b.yaml': policies({ b: FREE }) };
    const { namedFiles } = await problems(['scheduling_policies = {}/a.yaml, {}/b.yaml'], files);
    expect(namedFiles).toEqual(['/a.yaml', '/b.yaml']);
  });
});

describe('audit', () => {
  const lines = (audit: string) => ['scheduling_policies = {}', `audit = ${audit}`];

  it('names existing policies, or all', async () => {
    for (const audit of ['disks', 'disks, zones', '*', '*, disks', '']) {
      expect(await errorsOf(lines(audit), GOOD), audit).toEqual([]);
    }
  });

  it('with an unknown name is an error, with the nearest name', async () => {
    expect(await errorsOf(lines('disk, zones, elsewhere'), GOOD)).toEqual([
      expect.stringMatching(
        /^blazar\.conf:3: \[kubernetes\] audit: there is no scheduling policy "disk".*"disks"/,
      ),
      expect.stringMatching(
        /^blazar\.conf:3: \[kubernetes\] audit: there is no scheduling policy "elsewhere"/,
      ),
    ]);
  });

  it('is not checked against invalid policies', async () => {
    const files = { 'a.yaml': 'kind: SchedulingPolicy\nmetadata: {name: disks}\nspec: 7\n' };
    expect(await errorsOf(lines('zones'), files)).toEqual([expect.stringMatching(/^a\.yaml:3: spec: /)]);
  });
});
