/** What SkyPilot's page about sources of its configuration shows, with values of ours. */
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import type { Mapping } from '../../../src/base/yaml/tree.ts';
import { readConfiguration } from '../../../src/enforcement/configuration.ts';
import { taskConfig } from '../../../src/skypilot/config/config-file.ts';
import { findSources } from '../../../src/skypilot/config/config-sources.ts';
import { type Level, mergeSources } from '../../../src/skypilot/config/layers.ts';
import { skypilotSection } from '../../../src/skypilot/section.ts';

const originOf = () => ({ kind: 'code' }) as const;
const mapping = (yaml: string) => YamlDocument.parse(yaml).value as Mapping;

/** The result of these sources. `task` is the `config` of a task, `config` are the pairs of the command line. */
function mergedFrom({
  config = [],
  task,
  ...files
}: Partial<Record<Exclude<Level, 'command line'>, string>> & { readonly config?: string[] }): Mapping {
  const nothing = { user: '/dev/null', project: '/dev/null' };
  const sources = Object.entries(files).map(([level, yaml]) => ({
    level: level as Level,
    tree: mapping(yaml),
    originOf,
  }));
  const own = task === undefined ? [] : [taskConfig({ config: mapping(task) }, originOf)];
  expect(own.flatMap(({ problems }) => problems)).toEqual([]);
  const { tree, dropped } = mergeSources([
    ...sources,
    ...own.map((one) => ({ level: 'task' as const, tree: one.tree, originOf })),
    ...findSources({ ...nothing, config }, {}).sources.filter(({ level }) => level === 'command line'),
  ]);
  expect(dropped).toEqual([]);
  return tree;
}

describe('a project over its user', () => {
  it('replaces lists and values, and merges mappings key by key', () => {
    const user = `
kubernetes:
  allowed_contexts: [north, south]
  provision_timeout: 900
aws:
  labels: {cost-center: a-17, owner: lee}
`;
    const project = `
kubernetes:
  allowed_contexts: [east, west]
  provision_timeout: 120
aws:
  labels: {owner: folding}
`;
    expect(mergedFrom({ user, project })).toEqual({
      kubernetes: { allowed_contexts: ['east', 'west'], provision_timeout: 120 },
      aws: { labels: { 'cost-center': 'a-17', owner: 'folding' } },
    });
  });

  it('appends to the lists of a pod', () => {
    const pod = (key: string) => `kubernetes: {pod_config: {spec: {tolerations: [{key: ${key}}]}}}\n`;
    expect(mergedFrom({ user: pod('a'), project: pod('b') })).toEqual({
      kubernetes: { pod_config: { spec: { tolerations: [{ key: 'a' }, { key: 'b' }] } } },
    });
  });
});

describe('pairs of the command line', () => {
  it('set a number, and a value deep inside of a pod, over every other source', () => {
    const config = ['kubernetes.provision_timeout=30', 'kubernetes.pod_config.spec.priorityClassName=urgent'];
    const every = 'kubernetes: {provision_timeout: 1, pod_config: {spec: {priorityClassName: a, x: 1}}}\n';
    expect(mergedFrom({ server: every, user: every, project: every, task: every, config })).toEqual({
      kubernetes: { provision_timeout: 30, pod_config: { spec: { priorityClassName: 'urgent', x: 1 } } },
    });
  });

  it('set two annotations side by side', () => {
    const annotation = (name: string) => `kubernetes.custom_metadata.annotations.${name}=of-${name}`;
    expect(mergedFrom({ config: [annotation('one'), annotation('two')] })).toEqual({
      kubernetes: { custom_metadata: { annotations: { one: 'of-one', two: 'of-two' } } },
    });
  });
});

it('the config of a task sets every key that the page shows', () => {
  const config = `
docker: {run_options: [--shm-size=1g]}
kubernetes: {pod_config: {spec: {runtimeClassName: nvidia}}, provision_timeout: 60}
gcp: {managed_instance_group: {run_duration: 3600, provision_timeout: 60}}
nvidia_gpus: {disable_ecc: true}
`;
  expect(mergedFrom({ task: config })).toEqual({
    docker: { run_options: ['--shm-size=1g'] },
    kubernetes: { pod_config: { spec: { runtimeClassName: 'nvidia' } }, provision_timeout: 60 },
    gcp: { managed_instance_group: { run_duration: 3600, provision_timeout: 60 } },
    nvidia_gpus: { disable_ecc: true },
  });
});

describe('the deadline of policies', () => {
  it.for([
    [1, []],
    [29, []],
    [30, ['deadline']],
    [0, ['deadline']],
  ] as const)('is shorter than the 30 seconds that SkyPilot waits: %i', async ([deadline, wrong]) => {
    const { problems } = await readConfiguration(
      { configFiles: [], environment: {}, values: { skypilot: { deadline } } },
      [skypilotSection],
    );
    expect(problems.filter(({ section }) => section === 'skypilot').map(({ option }) => option)).toEqual(
      wrong,
    );
  });
});
