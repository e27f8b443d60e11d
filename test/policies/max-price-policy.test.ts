import { describe, expect, it } from 'vitest';
import { resourcePolicy, taskWith } from './helpers.ts';

const policy = (options: Readonly<Record<string, unknown>> = { max_price: 5 }) =>
  resourcePolicy('MaxPricePolicy', options);

describe('MaxPricePolicy', () => {
  it.each([
    ['{}', { max_hourly_cost: 5 }],
    ['{infra: aws, max_hourly_cost: 7.5}', { infra: 'aws', max_hourly_cost: 5 }],
    ['{max_hourly_cost: .inf}', { max_hourly_cost: 5 }],
    [
      '{max_hourly_cost: 2, any_of: [{cpus: 4}, {max_hourly_cost: 9}]}',
      { max_hourly_cost: 2, any_of: [{ cpus: 4 }, { max_hourly_cost: 5 }] },
    ],
    [
      '{ordered: [{infra: k8s}, {infra: gcp, use_spot: true}]}',
      {
        ordered: [
          { infra: 'k8s', max_hourly_cost: 5 },
          { infra: 'gcp', use_spot: true, max_hourly_cost: 5 },
        ],
      },
    ],
  ])('sets the price of every alternative, or lowers it: %s', async (resources, expected) => {
    const { resourcesAfter } = await policy();
    expect(await resourcesAfter(resources)).toEqual(expected);
  });

  it.each([
    '{max_hourly_cost: 5}',
    '{max_hourly_cost: 0.1}',
    '{any_of: [{max_hourly_cost: 1}, {max_hourly_cost: 5.0}]}',
  ])('leaves a lower one as it is: %s', async (resources) => {
    await (await policy()).leaves(resources);
  });

  it('shares the price of a task among its nodes', async () => {
    const { resourcesAfter } = await policy({ max_price: 5, max_price_task: 10 });
    for (const [nodes, max_hourly_cost] of [
      ['', 5],
      ['num_nodes: 2\n', 5],
      ['num_nodes: 3\n', 10 / 3],
    ] as const) {
      expect(await resourcesAfter('{}', { task: taskWith('{}', nodes) })).toEqual({ max_hourly_cost });
    }
    const low = await policy({ max_price_task: 0.01 });
    expect(await low.resourcesAfter('{}', { task: taskWith('{}', 'num_nodes: 1000000\n') })).toEqual({
      max_hourly_cost: 0.000001,
    });
  });

  it.each(['0', '2.5', '"2"', '99999999999999999999'])('rejects %s nodes', async (nodes) => {
    const task = taskWith('{}', `num_nodes: ${nodes}\n`);
    await (await policy()).refuses('', 'num_nodes: expected a whole number of at least 1.', { task });
  });

  it.each(['0', '"3"', '.nan'])('rejects a price that is none: %s', async (cost) => {
    await (await policy()).refuses(
      `{any_of: [{cpus: 2}, {max_hourly_cost: ${cost}}]}`,
      'resources.max_hourly_cost: expected a number of US dollars greater than 0.',
    );
  });

  it('rejects an instance type, whose price SkyPilot would not compare', async () => {
    const { refuses } = await policy();
    const reason = 'its price would not be limited. Set cpus, memory or accelerators instead.';
    for (const resources of [
      '{instance_type: p5.48xlarge}',
      '{infra: aws, any_of: [{cpus: 2}, {instance_type: p5.48xlarge}]}',
      '{instance_type: [p5]}',
    ]) {
      await refuses(resources, expect.stringContaining(reason));
    }
  });

  it('allows the listed ones, and those where nothing has a price', async () => {
    const { resourcesAfter, refuses } = await policy({
      max_price: 5,
      max_price_instance_types: ['m6i.*', 'c7.large'],
    });
    for (const listed of ['{instance_type: m6i.2xlarge}', '{infra: k8s/gpu, instance_type: 4CPU--16GB}']) {
      expect(await resourcesAfter(listed)).toMatchObject({ max_hourly_cost: 5 });
    }
    for (const type of ['m6i', 'xm6i.large', 'c7xlarge', 'C7.large', '']) {
      await refuses(`{instance_type: "${type}"}`, expect.any(String));
    }
  });

  it.each([
    ['{cpus: 4}', 'must name their region here'],
    ['{infra: "*/us-east-1"}', 'must name their region here'],
    ['{infra: aws}', 'must name their region here'],
    ['{any_of: [{infra: aws/us-east-1}, {infra: azure}]}', 'must name their region here'],
    ['{infra: aws/us-east-1, use_spot: true}', 'must name their zone here'],
    ['{infra: shadeform/r1}', 'would not be limited on shadeform'],
    ['{infra: gcp/us-central1, accelerators: T4}', 'would not be limited on gcp'],
  ])(
    'with places that must be named, rejects a task that may go to a dearer one: %s',
    async (task, reason) => {
      const { refuses } = await policy({ max_price: 5, max_price_places: 'named' });
      await refuses(task, expect.stringContaining(reason));
    },
  );

  it.each([
    '{infra: aws/us-east-1}',
    '{infra: aws/us-east-1/us-east-1a, use_spot: true}',
    '{cloud: azure, region: westus, use_spot: true}',
    '{infra: gcp/us-central1, cpus: 4}',
    '{infra: k8s, accelerators: T4}',
    '{infra: aws, instance_type: m6i.large}',
  ])('with places that must be named, allows a task for one of a known price: %s', async (resources) => {
    const { resourcesAfter } = await policy({
      max_price: 5,
      max_price_places: 'named',
      max_price_instance_types: ['m6i.*'],
    });
    expect(await resourcesAfter(resources)).toMatchObject({ max_hourly_cost: 5 });
  });

  it('leaves sky exec alone, which starts nothing', async () => {
    await (await policy()).leaves('{instance_type: p5.48xlarge}', { name: 'exec' });
  });
});
