import { describe, expect, it } from 'vitest';
import { askTwice, chainOf, problemsOf } from './helpers.ts';

const chain = (options: Readonly<Record<string, unknown>> = { max_price: 5 }) =>
  chainOf(['MaxPricePolicy'], options);
const taskWith = (resources: string, more = '') => `resources: ${resources}\nrun: hostname\n${more}`;

async function resourcesAfter(
  resources: string,
  options: Readonly<Record<string, unknown>> = { max_price: 5 },
  more = '',
) {
  const { ask } = await chain(options);
  return (await askTwice(ask, { task: taskWith(resources, more) })).task.resources;
}

describe('MaxPricePolicy', () => {
  it.each([
    ['{}', { max_hourly_cost: 5 }],
    ['{infra: aws, max_hourly_cost: 7.5}', { infra: 'aws', max_hourly_cost: 5 }],
    ['{max_hourly_cost: 5.000001}', { max_hourly_cost: 5 }],
    ['{max_hourly_cost: .inf}', { max_hourly_cost: 5 }],
    ['{max_hourly_cost: null}', { max_hourly_cost: 5 }],
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
    expect(await resourcesAfter(resources)).toEqual(expected);
  });

  it.each([
    '{max_hourly_cost: 5}',
    '{max_hourly_cost: 0.1}',
    '{any_of: [{max_hourly_cost: 1}, {max_hourly_cost: 5.0}]}',
  ])('leaves a lower one as it is: %s', async (resources) => {
    const { ask } = await chain();
    const task = taskWith(resources);
    expect(await askTwice(ask, { task })).toMatchObject({ changed: false, task_: task });
  });

  it('shares the price of a task among its nodes', async () => {
    const options = { max_price: 5, max_price_task: 10 };
    expect(await resourcesAfter('{}', options)).toEqual({ max_hourly_cost: 5 });
    expect(await resourcesAfter('{}', options, 'num_nodes: 2\n')).toEqual({ max_hourly_cost: 5 });
    expect(await resourcesAfter('{}', options, 'num_nodes: 3\n')).toEqual({ max_hourly_cost: 10 / 3 });
    expect(await resourcesAfter('{}', { max_price_task: 0.01 }, 'num_nodes: 1000000\n')).toEqual({
      max_hourly_cost: 0.000001,
    });
  });

  it.each(['0', '-1', '2.5', '"2"', 'many', '[1]', '{}', 'true', '99999999999999999999'])(
    'rejects %s nodes',
    async (nodes) => {
      const { ask } = await chain();
      expect(await ask({ task: taskWith('{}', `num_nodes: ${nodes}\n`) })).toMatchObject({
        allowed: false,
        failed: false,
        message: 'num_nodes: expected a whole number of at least 1.',
      });
    },
  );

  it.each(['0', '-2', '"3"', '.nan', '[3]', 'true'])('rejects a price that is none: %s', async (cost) => {
    const { ask } = await chain();
    expect(await ask({ task: taskWith(`{any_of: [{cpus: 2}, {max_hourly_cost: ${cost}}]}`) })).toMatchObject({
      allowed: false,
      failed: false,
      message: 'resources.max_hourly_cost: expected a number of US dollars greater than 0.',
    });
  });

  it('rejects an instance type, whose price SkyPilot would not compare', async () => {
    const { ask } = await chain();
    for (const resources of [
      '{instance_type: p5.48xlarge}',
      '{infra: aws, any_of: [{cpus: 2}, {instance_type: p5.48xlarge}]}',
      '{instance_type: [p5]}',
    ]) {
      const answer = await ask({ task: taskWith(resources) });
      expect(answer).toMatchObject({ allowed: false, failed: false });
      expect(answer.message).toContain(
        'its price would not be limited. Set cpus, memory or accelerators instead.',
      );
    }
  });

  it('allows the listed ones, and those where nothing has a price', async () => {
    const options = { max_price: 5, max_price_instance_types: ['m6i.*', 'c7.large'] };
    expect(await resourcesAfter('{instance_type: m6i.2xlarge}', options)).toMatchObject({
      max_hourly_cost: 5,
    });
    expect(await resourcesAfter('{infra: k8s/gpu, instance_type: 4CPU--16GB}')).toMatchObject({
      max_hourly_cost: 5,
    });
    const { ask } = await chain(options);
    for (const type of ['m6i', 'xm6i.large', 'c7xlarge', 'C7.large', '']) {
      expect(await ask({ task: taskWith(`{instance_type: "${type}"}`) })).toMatchObject({
        allowed: false,
        failed: false,
      });
    }
  });

  it('leaves sky exec alone, which starts nothing', async () => {
    const { ask } = await chain();
    expect(await ask({ name: 'exec', task: taskWith('{instance_type: p5.48xlarge}') })).toMatchObject({
      allowed: true,
      changed: false,
    });
  });

  it('is refused without a price, and with one that is none', async () => {
    expect(await problemsOf('MaxPricePolicy', {})).toEqual([
      expect.stringContaining('MaxPricePolicy needs max_price or max_price_task'),
    ]);
    for (const price of [0, -1, 'five', 1e9]) {
      expect(await problemsOf('MaxPricePolicy', { max_price: price })).not.toEqual([]);
    }
  });
});
