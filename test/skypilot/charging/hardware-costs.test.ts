import { beforeAll, describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { PolicyRejected } from '../../../src/skypilot/admin-policy.ts';
import { openCatalogs } from '../../../src/skypilot/charging/catalog/catalog-file.ts';
import { hardwareOf, refuseHiddenDevices } from '../../../src/skypilot/charging/hardware.ts';
import { HardwareCosts, HardwareRates } from '../../../src/skypilot/charging/hardware-costs.ts';
import { hardwareShown } from '../../../src/skypilot/charging/observe.ts';
import type { Task } from '../../../src/skypilot/request/user-request.ts';
import { projectFile, temporaryFile } from '../../support/files.ts';
import { rows } from '../../support/rows.ts';

type Catalogs = Awaited<ReturnType<typeof openCatalogs>>;
let catalogs: Catalogs;
beforeAll(async () => {
  const path = (cloud: string) => projectFile(`examples/skypilot-catalog/${cloud}.csv`);
  catalogs = await openCatalogs({ aws: path('aws'), gcp: path('gcp') }, 'usage_budget_catalog');
});

/** In dollars for each hour, of the most expensive alternative; or why it cannot be told. */
function cost(
  resources: string,
  rates: Record<string, number> = {},
  clouds: string[] | null = null,
  from = catalogs,
): number | string {
  const task = YamlDocument.parse(
    resources.includes('resources:') ? resources : `resources:\n  ${resources}\n`,
  ).value as Task;
  const costs = new HardwareCosts(new HardwareRates(rates), from);
  const all = hardwareOf(task, clouds).map((hardware) => costs.costOf(hardware));
  const wrong = all.find((one) => typeof one !== 'bigint');
  return wrong === undefined || typeof wrong === 'bigint'
    ? all.map((one) => Number(one) / 1e6).reduce((most, one) => Math.max(most, one))
    : wrong.mistake;
}

describe('the price of a launch', () => {
  it.each(rows`
    an instance type in a region → infra: aws/us-east-1\n  instance_type: m6i.large → 0.096
    an instance type anywhere → infra: aws\n  instance_type: m6i.large → 0.107
    an instance type in any case → infra: AWS/EU-West-1\n  instance_type: M6I.Large → 0.107
    a zone, of which its region counts → infra: aws/us-east-1/us-east-1a\n  instance_type: m6i.large → 0.096
    accelerators, in any machine → infra: aws\n  accelerators: t4:1 → 0.838
    accelerators in a region → infra: aws/us-east-1\n  accelerators: T4 → 0.752
    accelerators with cpus → infra: aws/us-east-1\n  accelerators: T4\n  cpus: 4 → 0.526
    accelerators with cpus or more → infra: aws/us-east-1\n  accelerators: T4\n  cpus: 4+ → 0.752
    accelerators with memory → infra: aws/us-east-1\n  accelerators: T4\n  memory: 16GB → 0.526
    accelerators with memory for each cpu → infra: aws/us-east-1\n  accelerators: T4\n  memory: 4x → 0.752
    one accelerator, not one whose name contains it → infra: aws/us-east-1\n  accelerators: A100:8 → 32.7726
    a part of a name, by the most expensive that it may mean → infra: aws/us-east-1\n  accelerators: A10.-80:8 → 40.96575
    spot instances → infra: aws/us-east-1\n  instance_type: m6i.large\n  use_spot: true → 0.0363
    spot instances of a managed job, replaced by others of their kind → infra: aws/us-east-1\n  instance_type: m6i.large\n  use_spot: true\n  job_recovery: FAILOVER → 0.0363
    spot instances that a service may replace → resources: {infra: aws/us-east-1, instance_type: m6i.large, use_spot: true}\nservice: {replica_policy: {dynamic_ondemand_fallback: true}} → 0.096
    spot instances of which some are always others → resources: {infra: aws/us-east-1, instance_type: m6i.large, use_spot: true}\nservice: {replica_policy: {base_ondemand_fallback_replicas: 1}} → 0.096
    spot instances where some have no price → infra: aws\n  accelerators: T4\n  use_spot: true → 0.2853
    cpus alone → infra: aws\n  cpus: 2 → 0.107
    cpus or more → infra: aws\n  cpus: 2+ → 40.96575
    cpus or more below a maximum → infra: aws\n  cpus: 2+\n  max_hourly_cost: 0.4 → 0.428
    nothing at all → infra: aws → 40.96575
    any_of → any_of: [{infra: aws/us-east-1, instance_type: m6i.large}, {infra: aws/us-east-1, accelerators: "T4:1"}] → 0.752
    a list → infra: aws/us-east-1\n  accelerators: ["T4:1", "A100:8"] → 32.7726
    a machine with accelerators that are priced apart → infra: gcp\n  instance_type: a2-highgpu-8g → 30.0073
    accelerators that are priced apart → infra: gcp/us-central1\n  accelerators: A100:8 → 29.407
    accelerators that are priced apart, above a maximum → infra: gcp/us-central1\n  accelerators: A100:8\n  max_hourly_cost: 5 → 29.407
    accelerators without a spot price → infra: gcp/europe-west4\n  accelerators: A100:8\n  use_spot: true → 25.4321
    accelerators on any machine that has room → infra: gcp\n  accelerators: T4 → 1.869992
    accelerators on a machine of a size → infra: gcp\n  accelerators: T4\n  cpus: 8 → 0.729998
    accelerators on a named machine → infra: gcp\n  accelerators: T4\n  instance_type: n1-standard-8 → 0.729998
    a TPU → infra: gcp\n  accelerators: tpu-v4-8 → 12.88
  `)('is that of %s', (_, resources, expected) => {
    expect(cost(resources)).toBe(Number(expected));
  });

  it('is that of any size, and of any region below a maximum, where SkyPilot compares neither', async () => {
    const lines = ['InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region'];
    const file = temporaryFile(
      'shadeform.csv',
      `${[...lines, 'l4,L4,1,8,32,2.5,,north', 'l4,L4,1,8,32,0.5,,south'].join('\n')}\n`,
    );
    const own = await openCatalogs({ shadeform: file }, 'usage_budget_catalog');
    for (const limits of ['cpus: 2', 'memory: 4', 'max_hourly_cost: 1']) {
      expect(cost(`infra: shadeform/north\n  accelerators: L4\n  ${limits}`, {}, null, own)).toBe(2.5);
    }
  });

  it('rises with the nodes, without drift', () => {
    expect(cost('num_nodes: 100000\nresources: {infra: aws/us-east-1, instance_type: m6i.large}\n')).toBe(
      9600,
    );
  });

  it.each(rows`
    an unknown instance type → infra: aws\n  instance_type: x9.huge → the catalog of aws has no price for x9.huge
    a region without a price → infra: aws/mars-1\n  accelerators: T4 → the catalog of aws has no price for T4:1 in mars-1
    a fraction → infra: aws\n  accelerators: T4:0.5 → the catalog of aws has no price for T4:0.5
    an accelerator that the cloud has not → infra: aws\n  accelerators: H100:8 → the catalog of aws has no price for H100:8
    Kubernetes → infra: k8s\n  accelerators: A100:8 → there is neither a catalog nor a rate for kubernetes
    a cloud without a catalog → infra: lambda\n  cpus: 2 → there is neither a catalog nor a rate for lambda
    any cloud → accelerators: T4 → name a cloud in infra, because SkyPilot may choose one that has no prices here
    cpus that nobody can read → infra: aws\n  cpus: many → expected cpus such as 8 or 8+
    memory that nobody can read → infra: aws\n  memory: nan → expected memory such as 32, 32+ or 4x
    a machine whose accelerators nobody knows → infra: gcp\n  instance_type: a9-highgpu-8g → the catalog of gcp has no price for a9-highgpu-8g
  `)('of %s is unknown', (_, resources, expected) => {
    expect(cost(resources)).toBe(expected);
  });

  it('is the most expensive of the clouds that SkyPilot may choose from', () => {
    expect(cost('accelerators: A100:8', {}, ['aws', 'gcp'])).toBe(35.39655);
    expect(cost('accelerators: T4', {}, ['aws', 'gcp'])).toBe(1.869992);
    expect(cost('accelerators: A100-80GB:8', {}, ['aws', 'gcp'])).toBe(40.96575);
    expect(cost('accelerators: B200:8', {}, ['aws', 'gcp'])).toBe('no catalog has a price for B200:8');
    expect(cost('accelerators: T4', {}, ['aws', 'azure'])).toBe(
      'there is neither a catalog nor a rate for azure',
    );
  });
});

describe('a rate beside a catalog', () => {
  it.each(rows`
    of an instance type counts before its price → {"m6i.large": 2} → infra: aws\n  instance_type: m6i.large → 2
    of an accelerator counts before the price of its machines → {"aws/T4": 3} → infra: aws\n  accelerators: T4 → 3
    of an accelerator counts for a machine that has it → {"A100": 5} → infra: aws\n  instance_type: p4d.24xlarge → 40
    of one machine that SkyPilot may choose counts if it is the most expensive → {"g4dn.xlarge": 9} → infra: aws\n  accelerators: T4 → 9
    of everything counts after prices → {"*": 99, "aws/*": 98} → infra: aws\n  accelerators: T4 → 0.838
    of everything counts where there is no catalog → {"kubernetes/*": 1.5} → infra: k8s\n  accelerators: A100:8 → 12
    of everything makes machines without accelerators free → {"k8s/*": 1.5} → infra: kubernetes\n  cpus: 4 → 0
    of everything lets SkyPilot choose a cloud → {"*": 1} → accelerators: T4 → 1.869992
  `)('%s', (_, rates, resources, expected) => {
    expect(cost(resources, JSON.parse(rates))).toBe(Number(expected));
  });

  it('of everything tells nothing of an unknown instance type, nor of machines that may have accelerators', () => {
    expect(cost('infra: aws\n  instance_type: x9.huge', { '*': 1 })).toBe(
      'the catalog of aws has no price for x9.huge',
    );
    expect(cost('infra: lambda\n  cpus: 124', { '*': 1 })).toBe(
      'name the accelerators or the instance type, because a machine that SkyPilot chooses there may have some',
    );
    expect(cost('infra: lambda\n  instance_type: x9', { 'lambda/*': 1 })).toBe(
      'name the accelerators of x9, which may have some',
    );
  });
});

describe('a cluster that SkyPilot shows', () => {
  const shown = (text: string, accelerators = 'None', cloud = 'AWS', region = 'us-east-1', rates = {}) => {
    const hardware = hardwareShown({ num_nodes: 2, cloud, region, accelerators, resources_str_full: text });
    const found = hardware && new HardwareCosts(new HardwareRates(rates), catalogs).costOf(hardware);
    return typeof found === 'bigint' ? Number(found) / 1e6 : found?.mistake;
  };

  it('costs the price of its own instance type, where it is', () => {
    expect(shown('2x(cpus=2, mem=8, m6i.large, disk=256)')).toBe(0.192);
    expect(shown('2x[spot](cpus=2, mem=8, m6i.large, disk=256)')).toBe(0.0726);
    expect(shown('2x(cpus=2, mem=8, m6i.large, image_id=docker:lab/spot:1, disk=256)')).toBe(0.192);
    expect(
      shown("2x(gpus=T4:1, cpus=4, mem=16, g4dn.xlarge, image_id={'us-east-1': 'x'}, disk=256)", "{'T4': 1}"),
    ).toBe(1.052);
    expect(
      shown(
        '2x(gpus=A100:8, cpus=96, mem=680, a2-highgpu-8g, disk=256)',
        "{'A100': 8}",
        'GCP',
        'us-central1',
      ),
    ).toBe(58.814);
  });

  it('costs the next price that is known, if its own is not', () => {
    expect(shown('2x(cpus=2, mem=8, m6i.large, disk=256)', 'None', 'AWS', 'mars-1')).toBe(0.214);
    expect(shown('2x[spot](gpus=T4:1, cpus=8, mem=32, g4dn.2xlarge)', "{'T4': 1}", 'AWS', 'eu-west-1')).toBe(
      0.5706,
    );
    expect(shown('2x(gpus=T4:1, cpus=8, mem=32, x9.huge, disk=256)', "{'T4': 1}")).toBe(1.676);
  });

  it('costs nobody knows what without either', () => {
    expect(shown('2x(cpus=2, mem=8, x9.huge, disk=256)')).toBe(
      'the catalog of aws has no price for x9.huge in us-east-1',
    );
    expect(shown('-')).toMatch(/no price/);
    expect(shown('1x(cpus=2, mem=8)', 'None', 'Kubernetes', 'east')).toBe(
      'there is neither a catalog nor a rate for kubernetes',
    );
    expect(shown('1x(cpus=2, mem=8)', "{'A100': 8}", 'Kubernetes', 'east', { A100: 2 })).toBe(32);
  });
});

describe('the cost of a launch', () => {
  const RATES = { A100: 2, 'aws/A100': 3, 'gcp/*': 5, 'do/H100': 7, '*': 1 };

  /** In units for each hour: that of the most expensive alternative. */
  function cost(
    yaml: string,
    rates: Readonly<Record<string, number>> = { '*': 1 },
    spot = 1,
  ): number | string {
    const task = YamlDocument.parse(yaml).value as Task;
    const costs = new HardwareCosts(new HardwareRates(rates, spot), new Map());
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
    ['no cloud: the most expensive', 'accelerators: T4', 5],
    ['a part, where a catalog may have machines with it', 'infra: aws\n  accelerators: A100:0.5', 1.5],
    ['a whole one for a part, where SkyPilot rounds up', 'infra: k8s\n  accelerators: A100:0.5', 2],
    ['a whole one for a part, where the cloud is unknown', 'accelerators: H200:0.001', 1],
    ['a mapping', 'infra: k8s\n  accelerators: {A100: 3}', 6],
    ['a list, of which the most expensive counts', 'infra: k8s\n  accelerators: [A100:1, T4:3]', 3],
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
    const fallBack = `${task}service: {replica_policy: {dynamic_ondemand_fallback: true}}\n`;
    expect(cost(fallBack, { '*': 1 }, 0.25)).toBe(2);
    expect(cost(fallBack, { '*': 1 }, 4)).toBe(8);
  });

  it('is that of an instance type that is listed, and unknown otherwise', () => {
    const task = 'resources: {instance_type: p4d.24xlarge}\n';
    expect(cost(task, { 'P4d.24xlarge': 16, '*': 1 })).toBe(16);
    expect(cost(task)).toBe(Number.POSITIVE_INFINITY);
    expect(cost('resources: {infra: lambda, cpus: 124}\n')).toBe(Number.POSITIVE_INFINITY);
    expect(cost('resources: {infra: lambda, instance_type: cpu}\n', { cpu: 1 })).toBe(1);
  });

  it('does not rise with network cards of a pod', () => {
    const limits = '{cpu: 4, vpc.amazonaws.com/efa: 32, rdma/ib: 1, smarter-devices/fuse: 1}';
    const pod = `{spec: {containers: [{resources: {limits: ${limits}}}]}}`;
    expect(
      cost(
        `resources: {infra: k8s, accelerators: A100}\nconfig: {kubernetes: {pod_config: ${pod}}}\n`,
        RATES,
      ),
    ).toBe(2);
  });

  it.each([
    [
      'accelerators of an unknown form',
      'resources: {accelerators: [[A100]], infra: 5}\n',
      expect.stringContaining('resources.infra: expected where to run'),
    ],
    ['too many nodes', 'num_nodes: 1e9\n', 'num_nodes: expected a whole number from 1 to 100000.'],
    ['nodes as a text', 'num_nodes: "4"\n', 'num_nodes: expected a whole number from 1 to 100000.'],
    ['use_spot as a text', 'resources: {use_spot: maybe}\n', 'resources.use_spot: expected true or false.'],
    ...['nvidia.com/gpu', 'smarter-devices/nvidia0', 'smarter-devices/fuse2'].map(
      (device): [string, string, unknown] => [
        `${device} of a pod`,
        `resources:\n  _cluster_config_overrides:\n    kubernetes: {pod_config: {spec: {containers: [{resources: {limits: {${device}: 8}}}]}}}\n`,
        `${device}: accelerators of a pod_config cannot be counted; ask for them as accelerators in resources.`,
      ],
    ),
    [
      'devices of Slurm',
      'config: {slurm: {sbatch_options: {gres: "gpu:8"}}}\n',
      'gres: accelerators in sbatch_options cannot be counted; ask for them as accelerators in resources.',
    ],
    ...[
      '{comment: "x --gres=gpu:8"}',
      `{comment: 'x "--gres=gpu:8"'}`,
      String.raw`{comment: 'x \--gres=gpu:8'}`,
      '{comment: HetJob}',
      '{"comment=x --gpus": 8}',
      '{exclusiv: true}',
      '{array: 0-9}',
      '{gpus_per_node: 8}',
      '{nodes: 8}',
      '{N: 8}',
      '{ntasks: 8, ntasks_per_gpu: 1}',
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
