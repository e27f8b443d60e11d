import { describe, expect, it } from 'vitest';
import { PolicyRejected } from '../../../src/skypilot/admin-policy.ts';
import { hardwareOf, refuseHiddenDevices } from '../../../src/skypilot/charging/hardware.ts';
import { HardwareRates } from '../../../src/skypilot/charging/hardware-rates.ts';
import type { Task } from '../../../src/skypilot/request/user-request.ts';
import { YamlDocument } from '../../../src/yaml/document.ts';

describe('the cost of a launch', () => {
  const RATES = { A100: 2, 'aws/A100': 3, 'gcp/*': 5, 'do/H100': 7, '*': 1 };

  /** In units for each hour: that of the dearest alternative. */
  function cost(
    yaml: string,
    rates: Readonly<Record<string, number>> = { '*': 1 },
    spot = 1,
  ): number | string {
    const task = YamlDocument.parse(yaml).value as Task;
    const costs = new HardwareRates(rates, spot);
    try {
      refuseHiddenDevices(task.config, task.resources);
      return hardwareOf(task)
        .map((hardware) => costs.costOf(hardware))
        .map((one) => (typeof one === 'bigint' ? Number(one) / 1e6 : Number.POSITIVE_INFINITY))
        .reduce((most, one) => Math.max(most, one));
    } catch (thrown) {
      return thrown instanceof PolicyRejected ? thrown.message : String(thrown);
    }
  }

  it.each([
    ['any spelling', 'accelerators: a100', 3],
    ['a cloud with its own rate', 'infra: aws/us-east-1\n  accelerators: A100:2', 6],
    ['a cloud in the older form', 'cloud: AWS\n  accelerators: A100', 3],
    ['a cloud without one', 'infra: k8s\n  accelerators: A100', 2],
    ['the rate of a cloud', 'infra: GCP\n  accelerators: T4:2', 10],
    ['no cloud: the dearest', 'accelerators: T4', 5],
    ['a fraction', 'infra: k8s\n  accelerators: A100:0.5', 1],
    ['a mapping', 'infra: k8s\n  accelerators: {A100: 3}', 6],
    ['a list, of which the dearest counts', 'infra: k8s\n  accelerators: [A100:1, T4:3]', 3],
    ['gpus, the alias', 'infra: k8s\n  gpus: A100:4', 8],
    ['any_of', 'infra: k8s\n  any_of: [{accelerators: A100:1}, {accelerators: A100:8}]', 16],
    ['ordered', 'ordered: [{infra: aws, accelerators: A100}, {infra: k8s, accelerators: A100:2}]', 4],
    ['no accelerators', 'cpus: 64+', 0],
    ['none at all', 'accelerators: A100:0', 0],
    ['an instance type of Kubernetes', 'infra: k8s\n  instance_type: 4CPU--16GB--A100:2', 4],
    ['A100s, which a part of their name means too', 'infra: k8s\n  accelerators: "100-"', 1],
    ['an accelerator that part of a name may mean', 'infra: aws\n  accelerators: A1.0', 3],
    ['a cloud by its alias', 'infra: digitalocean\n  accelerators: H100', 7],
    ['a TPU', 'infra: k8s\n  accelerators: tpu-v4-8', 1],
  ])('is that of %s', (_, resources, expected) => {
    expect(cost(`resources:\n  ${resources}\n`, RATES)).toBe(expected);
  });

  it('rises with the nodes', () => {
    expect(cost('num_nodes: 4\nresources: {accelerators: A100:2}\n')).toBe(8);
  });

  it('is another one for spot instances', () => {
    const task = 'resources: {accelerators: A100:2, use_spot: true}\n';
    expect(cost(task, { '*': 1 }, 0.25)).toBe(0.5);
  });

  it('is that of an instance type that is listed, and unknown otherwise', () => {
    const task = 'resources: {instance_type: p4d.24xlarge}\n';
    expect(cost(task, { 'P4d.24xlarge': 16, '*': 1 })).toBe(16);
    expect(cost(task)).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([
    [
      'accelerators of an unknown form',
      'resources: {accelerators: [[A100]], infra: 5}\n',
      'resources.infra: expected a text.',
    ],
    ['too many nodes', 'num_nodes: 1e9\n', 'num_nodes: expected a whole number from 1 to 100000.'],
    ['nodes as a text', 'num_nodes: "4"\n', 'num_nodes: expected a whole number from 1 to 100000.'],
    ['use_spot as a text', 'resources: {use_spot: maybe}\n', 'resources.use_spot: expected true or false.'],
    [
      'devices of a pod',
      'resources:\n  _cluster_config_overrides:\n    kubernetes: {pod_config: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}}\n',
      'nvidia.com/gpu: accelerators of a pod_config cannot be counted; ask for them as accelerators in resources.',
    ],
    [
      'devices of Slurm',
      'config: {slurm: {sbatch_options: {gres: "gpu:8"}}}\n',
      'gres: accelerators in sbatch_options cannot be counted; ask for them as accelerators in resources.',
    ],
    ...[
      '{comment: "x --gres=gpu:8"}',
      '{"comment=x --gpus": 8}',
      '{exclusiv: true}',
      '{array: 0-9}',
      '{gpus_per_node: 8}',
    ].map((options): [string, string, unknown] => [
      `devices of Slurm behind ${options}`,
      `config: {slurm: {sbatch_options: ${options}}}\n`,
      expect.stringContaining('accelerators in sbatch_options cannot be counted'),
    ]),
    [
      'devices that a pod claims',
      'config: {kubernetes: {pod_config: {spec: {resourceClaims: [{name: gpu}]}}}}\n',
      'resourceClaims: accelerators of a pod_config cannot be counted; ask for them as accelerators in resources.',
    ],
    ...['A10[0]', '^A100$', '80GB+'].map((name): [string, string, unknown] => [
      `${name}, which names no accelerator`,
      `resources: {accelerators: {"${name}": 8}}\n`,
      'resources.accelerators: expected names of accelerators in full, such as A100:8.',
    ]),
  ])('refuses %s', (_, task, message) => {
    expect(cost(task)).toEqual(message);
  });
});
