import { z } from 'zod';
import {
  AdminPolicy,
  changeResources,
  infraOf,
  MutatedUserRequest,
  matchesPattern,
  needsOneOf,
  PolicyRejected,
  priceDependsOn,
  type Resources,
  type UserRequest,
} from '../src/skypilot/index.ts';

/** SkyPilot reads numbers with smaller exponents as texts. */
const SMALLEST_PRICE = 0.000001;

const price = z.number().positive().max(1_000_000);

const options = z
  .object({
    max_price: price.optional().meta({
      description: 'Maximum price of one node. A task that sets max_hourly_cost to less keeps it.',
      unit: 'US dollars per hour',
    }),
    max_price_task: price.optional().meta({
      description: 'Maximum price of all nodes of a task together.',
      unit: 'US dollars per hour',
    }),
    max_price_instance_types: z.array(z.string().min(1)).default([]).meta({
      description:
        'Instance types that tasks may name, whatever they cost: SkyPilot compares no price then. * stands for any characters. Empty = none.',
      expected: 'a comma-separated list of instance types such as m6i.*',
    }),
    max_price_places: z.enum(['any', 'named']).default('any').meta({
      description:
        'What a task must name. any: nothing; SkyPilot compares with its cheapest region and zone, and may launch it in others that cost more. named: its region, and for spot instances its zone where the cloud has some. Refused are then accelerators on Google Cloud, and Prime Intellect, Seeweb, Shadeform and Yotta, where SkyPilot compares no price by region.',
    }),
  })
  .superRefine(needsOneOf('MaxPricePolicy', 'max_price', 'max_price_task'));

/** Where SkyPilot compares no prices, even if its configuration has some (`kubernetes.pricing`). */
const WITHOUT_PRICES = new Set(['kubernetes', 'ssh', 'slurm']);

/**
 * Limits the cost of nodes, by `max_hourly_cost` of every alternative: SkyPilot then drops
 * instances that are more expensive everywhere where the task may go, except those with accelerators on Google
 * Cloud. It does not check the price of an instance type in the task, so only listed types are allowed.
 */
export class MaxPricePolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  override validateAndMutate({ task, skypilotConfig, requestName }: UserRequest): MutatedUserRequest {
    // `exec` starts nothing.
    if (requestName !== 'exec') {
      const limit = this.#limitFor(task.num_nodes);
      changeResources(task, (resources) => {
        this.#refuseUncompared(resources);
        const own = costOf(resources);
        return own !== undefined && own <= limit ? {} : { max_hourly_cost: limit };
      });
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  /** For one node. */
  #limitFor(numNodes: unknown): number {
    const nodes = numNodes ?? 1;
    if (typeof nodes !== 'number' || !Number.isSafeInteger(nodes) || nodes < 1) {
      throw new PolicyRejected('num_nodes: expected a whole number of at least 1.');
    }
    const { max_price: node, max_price_task: task } = this.options;
    const limit = Math.min(node ?? Number.POSITIVE_INFINITY, (task ?? Number.POSITIVE_INFINITY) / nodes);
    return Math.max(limit, SMALLEST_PRICE);
  }

  #refuseUncompared(resources: Resources): void {
    const { cloud, region, zone } = infraOf(resources);
    if (WITHOUT_PRICES.has(cloud ?? '')) {
      return;
    }
    const { instance_type: type } = resources;
    const { max_price_instance_types: allowed, max_price_places: places } = this.options;
    if (type !== undefined && type !== null) {
      if (typeof type !== 'string' || !allowed.some((pattern) => matchesPattern(pattern, type))) {
        throw new PolicyRejected(
          `Tasks may not name the instance type ${String(type)} here, because its price would not be limited. Set cpus, memory or accelerators instead${allowed.length === 0 ? '' : `, or one of the types ${allowed.join(', ')}`}.`,
        );
      }
    } else if (places === 'named') {
      const needed = priceDependsOn(resources);
      if (needed === 'any') {
        throw new PolicyRejected(
          `The price of this task would not be limited on ${cloud}, because SkyPilot compares none by region there. Set infra to another cloud.`,
        );
      }
      if (cloud === null || region === null || (needed === 'zone' && zone === null)) {
        throw new PolicyRejected(
          `Tasks must name their ${needed} here, because their price may be higher in others. Set infra, such as ${needed === 'zone' ? 'aws/us-east-1/us-east-1a' : 'aws/us-east-1'}.`,
        );
      }
    }
  }
}

function costOf({ max_hourly_cost: cost }: Resources): number | undefined {
  if (cost === undefined || cost === null) {
    return undefined;
  }
  if (typeof cost !== 'number' || !(cost > 0)) {
    throw new PolicyRejected('resources.max_hourly_cost: expected a number of US dollars greater than 0.');
  }
  return cost;
}
