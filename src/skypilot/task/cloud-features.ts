/** What SkyPilot cannot do in some clouds. Source: SkyPilot 0.13 and 1.0.0-dev, features of its clouds. */
import type { UserRequest } from '../request/user-request.ts';
import { acceleratorsOf } from './accelerators.ts';
import { cloudsOf, infraOf } from './infra.ts';
import type { Resources } from './resources.ts';

/** On Kubernetes, it depends on the labels of nodes. */
const WITHOUT_SPOT = new Set(
  'cudo do fluidstack hyperbolic lambda paperspace scp seeweb shadeform slurm ssh vsphere yotta'.split(' '),
);
/** Where SkyPilot refuses a launch with autostop, unless it tears the cluster down. In the last four, even then. */
const REFUSES_STOP = new Set('kubernetes slurm ssh hyperbolic primeintellect verda yotta'.split(' '));
/** Where only new versions of SkyPilot refuse it. In others, such a cluster is never stopped. */
const WITHOUT_STOP = new Set('cudo fluidstack lambda runpod shadeform'.split(' '));
/** The same for spot instances. */
const SPOT_WITHOUT_STOP = new Set<string | null>(['aws', 'azure', 'ibm', 'oci', null]);

/** Where SkyPilot gives a task that names no accelerators a machine without some. */
const PLAIN_BY_DEFAULT = new Set('aws azure gcp ibm kubernetes oci slurm ssh'.split(' '));

/** Whether a machine that SkyPilot chooses by its size may have accelerators. `clouds`: those for `null`, if known. */
export function mayGiveAccelerators(cloud: string | null, clouds: readonly string[] | null = null): boolean {
  return (cloud === null ? (clouds ?? []) : [cloud]).some((one) => !PLAIN_BY_DEFAULT.has(one));
}

/** Where SkyPilot compares `max_hourly_cost` with the prices of all regions, whatever region a task names. */
export const COMPARES_ALL_REGIONS = new Set('primeintellect seeweb shadeform yotta'.split(' '));
/** Where the price of spot instances differs by zone, and a task can name one. */
const WITH_SPOT_ZONES = new Set<string | null>(['aws', 'gcp', 'ibm', 'oci', 'runpod', null]);

/** What must be named so that `max_hourly_cost` limits the price there. `any`: naming a place does not help. */
export function priceDependsOn(resources: Resources): 'region' | 'zone' | 'any' {
  const { cloud } = infraOf(resources);
  const isFree = cloud === 'gcp' && acceleratorsOf(resources).length > 0;
  if (isFree || COMPARES_ALL_REGIONS.has(cloud ?? '')) {
    return 'any';
  }
  return resources.use_spot === true && WITH_SPOT_ZONES.has(cloud) ? 'zone' : 'region';
}

type Asked = Pick<UserRequest, 'task' | 'skypilotConfig'>;

/** Whether SkyPilot may find spot instances for an alternative. */
export function mayHaveSpot(resources: Resources, asked: Asked): boolean {
  return cloudsFor(resources, asked).some((cloud) => cloud === null || !WITHOUT_SPOT.has(cloud));
}

/**
 * What comes of autostop without `down`, in each cloud that SkyPilot may choose for an alternative. `refused`: the
 * launch. `never`: it is launched, and never stopped.
 */
export function stoppingOf(resources: Resources, asked: Asked): ('stopped' | 'refused' | 'never')[] {
  const isPod = acceleratorsOf(resources).some(({ name }) => /^tpu-.*(?<!-8)$/i.test(name));
  return cloudsFor(resources, asked).map((cloud) => {
    if (cloud !== null && REFUSES_STOP.has(cloud)) {
      return 'refused';
    }
    const isSpot = resources.use_spot === true && SPOT_WITHOUT_STOP.has(cloud);
    return isPod || isSpot || WITHOUT_STOP.has(cloud ?? '') ? 'never' : 'stopped';
  });
}

/** The clouds that have volumes: SkyPilot runs a task where its volumes are. */
const WITH_VOLUMES = ['kubernetes', 'runpod'];

/** `null` = any. */
function cloudsFor(resources: Resources, { task, skypilotConfig }: Asked): readonly (string | null)[] {
  const { cloud } = infraOf(resources);
  if (cloud !== null) {
    return [cloud];
  }
  const allowed = cloudsOf(skypilotConfig.get('allowed_clouds'));
  return Object.keys(task.volumes ?? {}).length > 0
    ? WITH_VOLUMES.filter((one) => allowed?.includes(one) ?? true)
    : (allowed ?? [null]);
}
