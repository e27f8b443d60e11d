/** Decisions in the ledger's database, for all replicas to see, and who they are: types. */
import type { Wait } from '../../base/deadline.ts';
import type { PageOf, PageQuery } from '../../ledger/reports/pages.ts';
import type { DecisionRecord } from '../record.ts';
import type { RequestedLease } from '../requested-lease.ts';
import type { Selection } from '../selection.ts';

/** `Selection`: projects, users, filters, outcomes, operations, since, until. All are combined by "and". */
export interface DecisionsQuery extends Selection, PageQuery {
  /**
   * Only about leases of these projects, whatever else is asked, and only what members may see of them (`memberView`); `undefined` =
   * everything.
   */
  readonly visible?: readonly string[] | undefined;
  readonly leaseId?: string | undefined;
  readonly requestId?: string | undefined;
  /** Only with a higher id. */
  readonly newerThan?: bigint | undefined;
}

export interface StoredDecision {
  /** Rises, so that a reader can ask for what is newer. Only unique within one ledger. */
  readonly id: bigint;
  readonly record: DecisionRecord;
  /** `undefined` = allowed, or not a lease. */
  readonly asked: RequestedLease | undefined;
  /** The replica that decided: `host/process/random`. */
  readonly replica: string;
}

/** What has happened in the database since somebody looked. */
export interface StoreNews {
  /** The highest id. */
  readonly newest: bigint;
  /** What other replicas have decided since, at most 500: the newest. */
  readonly decided: readonly { readonly operation: string; readonly project_id: string | null }[];
}

export interface DecisionSource {
  /**
   * The newest first, by the clocks of the replicas. What is rare among very many is looked for in pieces: a page may then have fewer
   * items, even none, and a `next` that goes on. Throws `LedgerUnavailableError`, `CursorError`.
   */
  search(query: DecisionsQuery, wait: Wait): Promise<PageOf<StoredDecision>>;
  /** The highest id; 0 = there is none. */
  newest(wait: Wait): Promise<bigint>;
  /** What came after an id. Cheap: live pages ask twice a second. */
  news(after: bigint, wait: Wait): Promise<StoreNews>;
  /** The thousand projects that were written last, with how often: also by what is not stored as a decision. Only with a ledger. */
  revisions(wait: Wait): Promise<ReadonlyMap<string, bigint>>;
}

/** What a replica says of itself. */
export interface ReplicaFacts {
  readonly version: string;
  /** How often its configuration was loaded: it counts for itself. */
  readonly generation: number;
  /** Of its configuration: equal where it is. */
  readonly digest: string;
}

export interface PresentReplica extends ReplicaFacts {
  /** As in `StoredDecision`. */
  readonly name: string;
  /** It is the one that is asked. */
  readonly isSelf: boolean;
}

/** How long a replica that has gone without a word is listed, in seconds. */
export const REPLICA_LISTED = 30;

/** The replicas that store decisions in this database. */
export interface ReplicaList {
  /** Lists this one, for `REPLICA_LISTED` seconds from now, or until it is closed. */
  present(facts: ReplicaFacts, wait: Wait): Promise<void>;
  /** By their names. */
  replicas(wait: Wait): Promise<readonly PresentReplica[]>;
}

export interface Retention {
  readonly days: number;
  readonly most: number;
}

/** What the queue of decisions writes to. Throws `LedgerUnavailableError`; `LedgerContentError` = they cannot be stored. */
export interface DecisionTarget extends DecisionSource, ReplicaList {
  /** All or nothing. `rows`: of `rowJson`. */
  write(rows: readonly string[], wait: Wait): Promise<void>;
  /** Whether a row is there, after a write that may or may not have been completed. */
  has(row: string, wait: Wait): Promise<boolean>;
  /** Removes a small part of what is too old, or too much. Resolves to how many; 0 = nothing is left to remove. */
  trim(retention: Retention, wait: Wait): Promise<number>;
  close(): Promise<void>;
}
