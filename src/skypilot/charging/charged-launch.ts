/**
 * The clusters that a SkyPilot request launches, for shared limits. Source: SkyPilot 0.13, calls of its admin
 * policy.
 */

import { isMapping } from '../../base/yaml/tree.ts';
import type { Call } from '../../filter/verdict.ts';
import { PolicyRejected, type PolicyServices } from '../admin-policy.ts';
import { taskConfigsOf } from '../config/task-configs.ts';
import { FORERUNNERS, MutatedUserRequest, type Task, type UserRequest } from '../request/user-request.ts';
import { AUTOSTOP_OFF, autostopOf } from '../task/autostop.ts';
import { cloudsOf } from '../task/infra.ts';
import { resourcesOf } from '../task/resources.ts';
import type { Hardware, Launch, LaunchLedger, LaunchLimit } from './contract.ts';
import { hardwareOf, refuseHiddenDevices } from './hardware.ts';

/**
 * `hold`: a cluster is about to be launched. `check`: a later request may launch one, and is reviewed itself.
 * `managed`: a controller will launch clusters without a review.
 */
export interface ChargedLaunch {
  readonly kind: 'hold' | 'check' | 'managed';
  readonly launch: Launch;
  /** The longest possible time that the cluster is up, in seconds; `undefined` = unlimited. */
  readonly seconds: number | undefined;
}

/** Requests that launch the cluster that they name. */
const LAUNCHES = new Set([
  'launch',
  'jobs.launch_cluster',
  'jobs.launch_controller',
  'serve.launch_replica',
  'serve.launch_controller',
]);
/** Requests that make a controller launch clusters. */
const MANAGED = new Set(['jobs.launch', 'jobs.pool_apply', 'serve.up', 'serve.update']);

/**
 * `undefined` = the request launches nothing: an `exec`, and all requests on the client side, which the
 * server reviews again.
 *
 * @throws PolicyRejected if the launch or its user cannot be determined
 */
export function chargedLaunch(request: UserRequest): ChargedLaunch | undefined {
  const { requestName, requestOptions, atClientSide, task, skypilotConfig, user } = request;
  if (atClientSide || requestName === 'exec') {
    return undefined;
  }
  const cluster = requestOptions?.clusterName ?? '';
  const isManaged = MANAGED.has(requestName);
  const named = skypilotConfig.getNested(['active_workspace']) ?? undefined;
  // `validate` does not show what the client overrides: who would pay is not known yet.
  if (FORERUNNERS.has(requestName) && (cluster === '' || named === undefined)) {
    return undefined;
  }
  if (cluster === '' && !isManaged) {
    throw new PolicyRejected('Name the cluster: a launch without a name cannot be charged.');
  }
  // SkyPilot refuses such a name later. In the id of a lease, a part of it would belong to the workspace.
  if (cluster.includes('/')) {
    throw new PolicyRejected('The name of a cluster cannot contain a slash.');
  }
  if (user === null) {
    throw new PolicyRejected('SkyPilot does not say who launches, so that it cannot be charged.');
  }
  const config = skypilotConfig.toDict();
  refuseHiddenDevices(
    ...[config, task.config, task.resources],
    ...[task.experimental, task._cluster_config_overrides],
  );
  const workspace = named ?? 'default';
  if (typeof workspace !== 'string' || workspace === '') {
    throw new PolicyRejected('active_workspace: expected the name of a workspace.');
  }
  // A task may name one itself: which of the two pays is in doubt. Before a launch, a client's own is not shown.
  const elsewhere = taskConfigsOf(task).filter(
    ({ config: { active_workspace: own } }) => (own ?? workspace) !== workspace,
  );
  if (!FORERUNNERS.has(requestName) && elsewhere.length > 0) {
    throw new PolicyRejected(`active_workspace of the task: expected ${workspace}, where it is launched.`);
  }
  const one = hardwareOf(task, cloudsOf(config.allowed_clouds));
  const times = isManaged ? replicasOf(requestName, task) : 1;
  const [first, ...others] = one.map((hardware) => ({ ...hardware, nodes: hardware.nodes * times }));
  if (first === undefined) {
    throw new PolicyRejected('resources: expected at least one alternative.');
  }
  const launches = LAUNCHES.has(requestName) || !(isManaged || FORERUNNERS.has(requestName));
  return {
    kind: isManaged ? 'managed' : launches && requestOptions?.dryrun !== true ? 'hold' : 'check',
    launch: {
      owner: { workspace, userId: user.id, userName: user.name },
      cluster: cluster === '' ? `(${requestName})` : cluster,
      alternatives: [first, ...others],
    },
    seconds: autostopLimitOf(task),
  };
}

/** The largest number of clusters of a service or a pool. @throws PolicyRejected */
function replicasOf(requestName: string, task: Task): number {
  if (requestName === 'jobs.launch') {
    return 1;
  }
  const { service, pool } = task;
  // SkyPilot moves a pool below `service`.
  const numbers = [service, isMapping(service) ? service.pool : undefined, pool].map((place) => {
    const { workers, max_workers, replicas, replica_policy } = isMapping(place) ? place : {};
    const { min_replicas, max_replicas, num_overprovision, dynamic_ondemand_fallback } = isMapping(
      replica_policy,
    )
      ? replica_policy
      : {};
    const most = Math.max(1, ...[workers, max_workers, replicas, min_replicas, max_replicas].map(numberOf));
    // Both come on top, for spot instances that may be taken away: until one is ready, another one replaces it.
    const times = dynamic_ondemand_fallback === true ? 2 : 1;
    return (most + numberOf(num_overprovision)) * times;
  });
  return Math.max(...numbers);
}

function numberOf(value: unknown): number {
  const number = value ?? 0;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 0 || number > 10_000) {
    throw new PolicyRejected('The number of replicas or workers: expected a whole number.');
  }
  return number;
}

// The maximum time that a cluster is up as the request guarantees it: by an autostop that waits for nothing, also
// not for a hook.

/** In seconds, the longest of all alternatives, without provisioning. `undefined` = unlimited. */
function autostopLimitOf(task: Task): number | undefined {
  const { hooks } = isMapping(task.config) ? task.config : {};
  if (hooks !== undefined && hooks !== null) {
    return undefined;
  }
  let longest = 0;
  for (const { autostop } of resourcesOf(task)) {
    const { idleMinutes, waitFor, hook } = autostopOf(autostop) ?? {};
    if (
      idleMinutes === undefined ||
      idleMinutes === AUTOSTOP_OFF ||
      waitFor !== 'none' ||
      hook !== undefined
    ) {
      return undefined;
    }
    longest = Math.max(longest, idleMinutes * 60);
  }
  return longest;
}

export interface LaunchTerms {
  /** Treatment of requests whose controller launches without a review, if `takes` an alternative. */
  readonly managed: 'refuse' | 'check';
  /** Whether the hardware uses any of the limit. */
  readonly takes: (hardware: Hardware) => boolean;
  /** For users whose request is refused by `managed`. */
  readonly refusal: string;
  /**
   * How long a launch is held, in seconds; `longest`: how long its cluster can be up, `undefined` =
   * unlimited. Default: the hold of the limit.
   */
  readonly secondsOf?: (longest: number | undefined) => number;
}

/** Holds a request's launch; returns the request. @throws PolicyRejected @throws LedgerUnavailableError */
export async function reviewLaunch(
  limit: LaunchLimit,
  launches: LaunchLedger,
  request: UserRequest,
  call: Call,
  { managed, takes, refusal, secondsOf }: LaunchTerms,
): Promise<MutatedUserRequest> {
  const charged = chargedLaunch(request);
  if (charged !== undefined) {
    const { kind, launch, seconds } = charged;
    if (kind === 'managed' && managed === 'refuse' && launch.alternatives.some(takes)) {
      throw new PolicyRejected(refusal);
    }
    const verdict =
      kind === 'hold'
        ? await launches.hold(limit, launch, call, secondsOf?.(seconds))
        : await launches.check(limit, launch, call);
    if (!verdict.allowed) {
      throw new PolicyRejected(verdict.message);
    }
  }
  return new MutatedUserRequest(request.task, request.skypilotConfig);
}

/** The ledger, for a policy with `needs = ['ledger']`. @throws Error if there is none */
export function requireLaunches({ launches }: PolicyServices): LaunchLedger {
  if (launches === undefined) {
    throw new Error('expected the ledger, which the policy names in needs');
  }
  return launches;
}
