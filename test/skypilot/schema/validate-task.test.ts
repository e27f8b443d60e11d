import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isMapping } from '../../../src/base/yaml/tree.ts';
import { decodeRequest } from '../../../src/skypilot/request/wire.ts';
import { validateConfig, validateTask } from '../../../src/skypilot/schema/validate.ts';
import { projectFile } from '../../support/files.ts';
import { rows } from '../../support/rows.ts';
import { problemsIn as problemsOf } from './problems.ts';

const problemsIn = (yaml: string) => problemsOf(validateTask, 'task.yaml', yaml);

describe('a task', () => {
  it.for([
    ['keys without a value', 'name:\nresources:\n  infra:\nservice:\nenvs:'],
    ['numbers as values of variables', 'envs: {A: 5, B: true, C: 1.5}\nsecrets: {D: 5, E: null}'],
    ['managed secrets', 'secrets: [secrets:HF_TOKEN, 5]'],
    ['accelerators by their other name', 'resources: {gpus: A100:8}'],
    ['accelerators in every form', 'resources: {accelerators: {A100: 8, H100: null}}'],
    [
      'alternatives',
      'resources: {any_of: [{infra: aws, gpus: A100}, {infra: k8s/west, accelerators: {L4: 1}}]}',
    ],
    [
      'its own configuration',
      'config: {kubernetes: {provision_timeout: 5}, hooks: [{run: ./stop.sh, events: [stop]}]}',
    ],
    ['what SkyPilot makes of that', 'resources: {_cluster_config_overrides: {docker: {run_options: [a]}}}'],
    ['null, which clears an override', 'resources: {_cluster_config_overrides: {gcp: {vpc_name: null}}}'],
    ['what SkyPilot adds', '_user_specified_yaml: "name: x"\n_metadata: {git_commit: abc}\nvolumes: {}'],
    [
      'variables in storage and services',
      'envs: {M: MOUNT}\nfile_mounts: {/a: {name: b, mode: $M}, /b: s3://c}',
    ],
    ['a service', 'service: {readiness_probe: /health, replicas: 2}'],
  ] as const)('may have %s', ([, yaml]) => {
    expect(problemsIn(yaml)).toEqual([]);
  });

  it.for(
    rows`
      num_node: 2 → num_node: unknown key; the nearest right key is "num_nodes"
      accelerators: A100 → accelerators: unknown key here; it belongs below resources
      resources: {num_nodes: 2} → resources.num_nodes: unknown key here; it belongs to the top level: check the indentation
      resources: {acelerators: A100} → resources.acelerators: unknown key; the nearest right key is "accelerators"
      resources: {infra: gpc/us-central1} → resources.infra: expected a cloud with optional region and zone such as aws/us-east-1 or k8s/my-context, got "gpc/us-central1"; the nearest right one is "gcp"
      resources: {accelerators: A100, gpus: A100} → resources: expected only one of the keys accelerators, gpus in it
      resources: {accelerators: {A100: many}} → resources.accelerators.A100: expected null or a number, got "many"
      resources: {autostop: soon} → resources.autostop: expected true or false, a duration such as 10m, a whole number or a mapping, got "soon"
      envs: {1A: x} → envs.1A: unknown key; expected a name of letters, digits and _, not starting with a digit
      config: {admin_policy: a.B} → config.admin_policy: a task may not set this key
      config: {kubernetes: {networking: portforward}} → config.kubernetes.networking: a task may not set this key
      config: {kubernetes: {pod_confg: {}}} → config.kubernetes.pod_confg: unknown key; the nearest right key is "pod_config"
      resources: {_cluster_config_overrides: {rbac: {}}} → resources._cluster_config_overrides.rbac: a task may not set this key
      resources: {any_of: [{_cluster_config_overrides: {kubernetes: {provision_timeout: x}}}]} → resources.any_of[0]._cluster_config_overrides.kubernetes.provision_timeout: expected a whole number, got "x"
      experimental: {config_overrides: {}} → experimental: unknown key; use config instead of experimental.config_overrides
      file_mounts: {/a: {mode: mont}} → file_mounts./a.mode: expected one of MOUNT, COPY, MOUNT_CACHED, got "mont"; the nearest right one is "MOUNT"
      file_mounts: {/a: 5} → file_mounts./a: expected a string or a mapping, got 5
      resources: [] → resources: expected a mapping, got an empty list
  `,
  )('says what is wrong: %s', ([yaml, problem]) => {
    expect(problemsIn(yaml)).toEqual([`task.yaml:1: ${problem}`]);
  });

  it('keeps its secrets', () => {
    const [problem = '', ...further] = problemsIn(
      'secrets: {HF_TOKEN: hf-the-token}\nresources: {infra: hf-the-token, labels: 5}\nenvs: [hf-the-token]',
    );
    expect(problem).toContain('got "****"');
    expect(further.join()).not.toContain('the-token');
  });
});

describe('recorded requests of SkyPilot', () => {
  const folder = projectFile('test/fixtures/skypilot-wire');

  it.for(readdirSync(folder))('are valid: %s', (name) => {
    const { task, skypilotConfig } = decodeRequest(JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')));
    const trees = [task.value, skypilotConfig.value].map((value) => (isMapping(value) ? value : {}));
    const [taskTree = {}, configTree = {}] = trees;
    expect(validateTask(taskTree, () => undefined)).toEqual([]);
    expect(validateConfig(configTree, () => undefined)).toEqual([]);
  });
});
