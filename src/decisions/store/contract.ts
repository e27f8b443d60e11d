/**
 * Types of the decision store: decisions of all replicas in the ledger's database, and the list of replicas.
 */
import type { Wait } from '../../base/deadline.ts';
import type { PageOf, PageQuery } from '../../ledger/reports/pages.ts';
import type { RequestedLease } from '../lease-record.ts';
import type { DecisionRecord } from '../record.ts';
import type { Selection } from '../selection.ts';

/** `Selection`: projects, users, filters, outcomes, operations, since, until. All are combined by "and". */
export interface DecisionsQuery extends Selection, PageQuery {
  /**
   * Only leases of these projects, in addition to the other conditions, and only the parts that members may
   * see (`memberView`); `undefined` = everything.
   */
  readonly visible?: readonly string[] | undefined;
  readonly leaseId?: string | undefined;
  readonly requestId?: string | undefined;
  /** Only higher ids. */
  readonly newerThan?: bigint | undefined;
}

export interface StoredDecision {
  /** Ascending, so that readers can query newer decisions. Unique within one ledger only. */
  readonly id: bigint;
  readonly record: DecisionRecord;
  /** `undefined` = allowed, or not a lease. */
  readonly asked: RequestedLease | undefined;
  /** The replica that decided: `host/process/random`. */
  readonly replica: string;
}

/** Changes in the database since an id. */
export interface StoreChanges {
  /** The highest id. */
  readonly newest: bigint;
  /** Decisions of other replicas since then: the newest 500. */
  readonly decided: readonly { readonly operation: string; readonly project_id: string | null }[];
}

export interface DecisionSource {
  /**
   * Newest first, by the clocks of the replicas. Rare matches are searched in steps: a page may then have
   * fewer items, or none, and still a `next`. Throws `LedgerUnavailableError`, `CursorError`.
   */
  search(query: DecisionsQuery, wait: Wait): Promise<PageOf<StoredDecision>>;
  /** The highest id; 0 = none. */
  newest(wait: Wait): Promise<bigint>;
  /** Changes since an id. Cheap: live pages call it twice a second. */
  changesSince(after: bigint, wait: Wait): Promise<StoreChanges>;
  /**
   * Project → number of transactions, for the thousand projects that were changed last; includes changes that
   * are not decisions. Only with a ledger.
   */
  revisions(wait: Wait): Promise<ReadonlyMap<string, bigint>>;
}

/** The state that a replica reports. */
export interface ReplicaFacts {
  readonly version: string;
  /** The generation of its configuration, counted by the replica itself. */
  readonly generation: number;
  /** The digest of its configuration. */
  readonly digest: string;
}

export interface PresentReplica extends ReplicaFacts {
  /** As in `StoredDecision`. */
  readonly name: string;
  /** Whether it is the responding replica. */
  readonly isSelf: boolean;
}

/** How long a replica is listed after its last heartbeat, in seconds. */
export const REPLICA_LISTED = 30;

/** The replicas that store decisions in this database. */
export interface ReplicaList {
  /** Lists this replica for `REPLICA_LISTED` seconds from now, or until it is closed. */
  present(facts: ReplicaFacts, wait: Wait): Promise<void>;
  /** Sorted by name. */
  replicas(wait: Wait): Promise<readonly PresentReplica[]>;
}

export interface Retention {
  readonly days: number;
  readonly most: number;
}

/**
 * The target of the decision queue. Throws `LedgerUnavailableError`, or `LedgerContentError` for rows that
 * cannot be stored.
 */
export interface DecisionTarget extends DecisionSource, ReplicaList {
  /** All or nothing. `rows`: from `rowJson`. */
  write(rows: readonly string[], wait: Wait): Promise<void>;
  /** Whether a row exists, after a write with unknown outcome. */
  has(row: string, wait: Wait): Promise<boolean>;
  /** Removes some expired or excess decisions. Resolves to their number; 0 = nothing left to remove. */
  trim(retention: Retention, wait: Wait): Promise<number>;
  close(): Promise<void>;
}
