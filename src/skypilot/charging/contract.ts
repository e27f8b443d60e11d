/** Charging launches of SkyPilot against the ledger of leases: what policies see of it. */
import type { Call } from '../../filter/call.ts';
import type { Claims, ProjectState, Proposal } from '../../filter/claim.ts';
import type { Rejection, Verdict } from '../../filter/verdict.ts';

/** Who launches, and where. */
export interface LaunchOwner {
  readonly workspace: string;
  /** SkyPilot's id, a hash. */
  readonly userId: string;
  /** Empty if it is not known. */
  readonly userName: string;
}

/** One way in which a cluster may be built. Names are in lower case, unless they are shown to people. */
export interface Hardware {
  readonly nodes: number;
  /** Such as `aws` or `kubernetes`; `null` = any. */
  readonly cloud: string | null;
  /** `null` = any. */
  readonly region: string | null;
  readonly instanceType: string | null;
  /** Of each node, as written. `null` = only the instance type tells. */
  readonly accelerators: { readonly name: string; readonly count: number } | null;
  readonly isSpot: boolean;
  /** What a task says that only prices depend on. `undefined` = nothing. */
  readonly wishes?: HardwareRequest;
  /** The instance type that SkyPilot shows of a cluster; `null` = it shows none. `undefined` = it is no cluster yet. */
  readonly shownType?: string | null;
}

/** What a task says about the machines from which SkyPilot chooses. */
export interface HardwareRequest {
  /** As written: `8`, `8+`. */
  readonly cpus: string | null;
  /** As written: `32`, `32GB+`, `4x`. */
  readonly memory: string | null;
  /** The most that a node may cost for each hour, in US dollars. */
  readonly maxPrice: number | null;
  /** Whether spot instances may be replaced with others. */
  readonly mayFallBack: boolean;
  /** Whether a TPU is to have a machine beside it. */
  readonly hasTpuHost: boolean;
  /** The clouds that SkyPilot may choose from; `null` = all. */
  readonly clouds: readonly string[] | null;
}

export interface Launch {
  readonly owner: LaunchOwner;
  readonly cluster: string;
  /** At least one. Which of them it will be is not known: the most expensive counts. */
  readonly alternatives: readonly [Hardware, ...Hardware[]];
}

/** Whose account of the ledger a cluster is charged to. */
export interface Payer {
  readonly projectId: string;
  readonly userId: string;
}

/** A limit that launches share, as the ledger and the comparison with SkyPilot call it. */
export interface LaunchLimit {
  readonly name: string;
  /** The beginning of the ids of its leases: `skypilot`. Different for each limit. */
  readonly scheme: string;
  /** For how long a launch is charged ahead, in seconds. */
  readonly hold: number;
  /** How far ahead a cluster that is up is charged, in seconds. Default: an hour, or `hold` if that is less. */
  readonly ahead?: number;
  /** For how long a launch may take until SkyPilot shows its cluster, in seconds. */
  readonly grace: number;
  /**
   * For how long after a complete round the clusters that it has counted are taken for all that are up, in seconds. Before the first one, and
   * later, launches that take something limited are refused. `undefined` = the limit does not depend on what else is up.
   */
  readonly believed?: number;
  payerOf(owner: LaunchOwner): Payer | Rejection;
  claims(owner: LaunchOwner, hardware: Hardware, proposal: Proposal, state: ProjectState): Claims;
}

/** The ledger, for policies that charge launches. */
export interface LaunchLedger {
  /** Makes the limit known to the comparison with SkyPilot. Call it in the constructor. */
  attach(limit: LaunchLimit): void;
  /** Whether the launch fits. Records nothing. @throws LedgerUnavailableError */
  check(limit: LaunchLimit, launch: Launch, call: Call): Promise<Verdict>;
  /**
   * Whether the launch fits, and if it does, charges it as soon as all policies have accepted the request. A cluster that is charged already takes
   * nothing more, unless it grows. Records nothing for a policy that is only tried. @throws LedgerUnavailableError
   */
  hold(limit: LaunchLimit, launch: Launch, call: Call, seconds?: number): Promise<Verdict>;
}
