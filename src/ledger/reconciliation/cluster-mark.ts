/**
 * The column `shown` of leases that are SkyPilot clusters. They have a region of their own: Blazar has none
 * of them, and its lists do not contain them.
 */
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';

/**
 * Use of a cluster before its first charge counts up to this far back, in microseconds. SkyPilot is queried
 * for about a day.
 */
export const LOOKED_BACK = 86_400n * MICROSECONDS_PER_SECOND;

/** No cloud has a region of this name. */
export const CLUSTER_REGION = 'skypilot:';

/**
 * `awaited`: SkyPilot has not shown the cluster since the lease was opened. `seen`: it has. `settled`: the
 * cluster is gone, and its exact use is charged. A lease that ended by its date is not settled: its use is
 * unknown until SkyPilot is queried again.
 */
type ClusterState = 'awaited' | 'seen' | 'settled';

const SIGNS: Readonly<Record<ClusterState, string>> = { awaited: '~', seen: '=', settled: '.' };
/** Prefix of the marks of settled leases. */
export const SETTLED = SIGNS.settled;

/** The state of a cluster, besides its claims. */
interface ClusterMark {
  readonly state: ClusterState;
  /** Use before this time is charged permanently. */
  readonly since: Instant;
  /** Whether SkyPilot last showed it with autostop. */
  readonly hasAutostop: boolean;
}

export function clusterMark({ shown }: { readonly shown: string | null }): ClusterMark {
  const [, sign = SIGNS.awaited, since, autostop] = /^([~=.])(\d{1,19})(a?)$/.exec(shown ?? '') ?? [];
  const state = sign === SIGNS.seen ? 'seen' : sign === SIGNS.settled ? 'settled' : 'awaited';
  return { state, since: BigInt(since ?? 0), hasAutostop: autostop === 'a' };
}

export function writtenMark({ state, since, hasAutostop }: ClusterMark): string {
  return `${SIGNS[state]}${since < 0n ? 0n : since}${hasAutostop ? 'a' : ''}`;
}
