/**
 * The column `shown` of a lease that is a cluster of SkyPilot. Such leases have a region of their own: Blazar has none of them, and a list of Blazar's
 * says nothing about them.
 */
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';

/** What a cluster used before it was first charged counts for so long, in microseconds. SkyPilot is asked about a day. */
export const LOOKED_BACK = 86_400n * MICROSECONDS_PER_SECOND;

/** No cloud has a region of this name. */
export const CLUSTER_REGION = 'skypilot:';

/**
 * `awaited`: SkyPilot has not shown the cluster since the lease was opened. `seen`: it has. `settled`: the cluster is gone, and is charged for exactly what it
 * used. A lease that ended by its date is not settled: nobody knows what it used until SkyPilot is asked again.
 */
type ClusterState = 'awaited' | 'seen' | 'settled';

const SIGNS: Readonly<Record<ClusterState, string>> = { awaited: '~', seen: '=', settled: '.' };
/** How the marks of settled leases begin. */
export const SETTLED = SIGNS.settled;

/** What the ledger knows of a cluster beside its claims. */
interface ClusterMark {
  readonly state: ClusterState;
  /** What the cluster used before is charged for good. */
  readonly since: Instant;
  /** Whether SkyPilot has shown it with autostop last. */
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
