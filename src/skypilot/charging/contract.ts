/** Charging launches of SkyPilot against the ledger of leases: the interface for policies. */
import type { Claims, ProjectState, Proposal } from '../../filter/claim.ts';
import type { Call, Rejection, Verdict } from '../../filter/verdict.ts';

/** The user and workspace of a launch. */
export interface LaunchOwner {
  readonly workspace: string;
  /** SkyPilot's id, a hash. */
  readonly userId: string;
  /** Empty = unknown. */
  readonly userName: string;
}

/** A possible form of a cluster. Names are in lower case, unless they are displayed. */
export interface Hardware {
  readonly nodes: number;
  /** Such as `aws` or `kubernetes`; `null` = any. */
  readonly cloud: string | null;
  /** `null` = any. */
  readonly region: string | null;
  readonly instanceType: string | null;
  /** Of each node, as written. `null` = determined by the instance type alone. */
  readonly accelerators: { readonly name: string; readonly count: number } | null;
  readonly isSpot: boolean;
  /** Requirements of a task that affect only prices. `undefined` = none. */
  readonly requirements?: HardwareRequest;
  /** The instance type that SkyPilot shows for a cluster; `null` = none. `undefined` = not a cluster yet. */
  readonly shownType?: string | null;
}

/** Requirements of a task about the machines from which SkyPilot chooses. */
export interface HardwareRequest {
  /** As written: `8`, `8+`. */
  readonly cpus: string | null;
  /** As written: `32`, `32GB+`, `4x`. */
  readonly memory: string | null;
  /** Maximum price of a node for each hour, in US dollars. */
  readonly maxPrice: number | null;
  /** Whether spot instances may be replaced with others. */
  readonly mayFallBack: boolean;
  /** Whether a TPU is to have a separate host machine. */
  readonly hasTpuHost: boolean;
  /** The clouds that SkyPilot may choose from; `null` = all. */
  readonly clouds: readonly string[] | null;
}

export interface Launch {
  readonly owner: LaunchOwner;
  readonly cluster: string;
  /** At least one. The choice is unknown: the most expensive counts. */
  readonly alternatives: readonly [Hardware, ...Hardware[]];
}

/** The account of the ledger to which a cluster is charged. */
export interface Payer {
  readonly projectId: string;
  readonly userId: string;
}

/** A limit that launches share, for the ledger and the comparison with SkyPilot. */
export interface LaunchLimit {
  readonly name: string;
  /** Prefix of the ids of its leases: `skypilot`. Different for each limit. */
  readonly scheme: string;
  /** How long a launch is charged ahead, in seconds. */
  readonly hold: number;
  /** How far ahead a running cluster is charged, in seconds. Default: an hour, or `hold` if that is less. */
  readonly ahead?: number;
  /** How long a launch may take until SkyPilot shows its cluster, in seconds. */
  readonly grace: number;
  /**
   * How long after a complete round the clusters that it counted are assumed to be all that are up, in
   * seconds. Before the first round and after this time, launches that use a limit are refused. `undefined` =
   * the limit does not depend on other clusters.
   */
  readonly believed?: number;
  payerOf(owner: LaunchOwner): Payer | Rejection;
  /** `owner`: if another user's cluster is up, the payer of that cluster, without a name. */
  claims(owner: LaunchOwner, hardware: Hardware, proposal: Proposal, state: ProjectState): Claims;
}

/** The ledger, for policies that charge launches. */
export interface LaunchLedger {
  /** Registers the limit for the comparison with SkyPilot. Call it in the constructor. */
  attach(limit: LaunchLimit): void;
  /** Whether the launch fits. Records nothing. @throws LedgerUnavailableError */
  check(limit: LaunchLimit, launch: Launch, call: Call): Promise<Verdict>;
  /**
   * Whether the launch fits. If it does, it is charged as soon as all policies have accepted the request. A
   * charged cluster takes nothing more, unless it grows. Records nothing if the process only tries policies.
   * @throws LedgerUnavailableError
   */
  hold(limit: LaunchLimit, launch: Launch, call: Call, seconds?: number): Promise<Verdict>;
}
