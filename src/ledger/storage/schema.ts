/**
 * The tables of the ledger. Times are microseconds of the epoch unless stated in seconds. Both databases
 * return numbers as `bigint`.
 */
import type { Generated, Selectable } from 'kysely';
import type {
  BudgetRequestsTable,
  CalendarLinksTable,
  LoginCountsTable,
  ReplicasTable,
  SessionsTable,
} from './service-tables.ts';

/** One row per project: locking the row locks the project. */
export interface ProjectsTable {
  project_id: string;
  /** Number of transactions: if it is lower than an acknowledged one, transactions are lost. */
  revision: bigint;
  /** The latest time at which the project was locked. */
  latest_at: bigint;
}

/** A single row: the ledger itself. */
interface LedgerTable {
  /** The same in every copy. */
  id: string;
  /** Increases each time `ledger reconcile` resumes a suspended ledger. */
  epoch: bigint;
  /** Why nothing is granted until `ledger reconcile`; `null` = leases are granted. */
  suspended: string | null;
  /** SQLite only: identifies the file that was last written to. */
  file: string | null;
}

/** `open` until it ended, was deleted, or its end was processed. */
export type LeaseState = 'open' | 'ended';

interface LeasesTable {
  id: Generated<bigint>;
  /** Blazar's id; `null` until an update or an end has it. */
  lease_id: string | null;
  /** Empty = the request names no region. */
  region: string;
  project_id: string;
  user_id: string;
  name: string;
  /** As last requested. */
  starts_at: bigint;
  /** The latest possible end. */
  ends_at: bigint;
  state: LeaseState;
  /** From `demandOf`: the demand of the last request. */
  demand: string;
  /** The claims of the last request, from `formatClaims`. */
  claims: string;
  /** All alternatives, from `recordedAs`; `null` = only the one above. */
  alternatives: string | null;
  /** The `Idempotency-Key` of its request. */
  repetition_key: string | null;
  /** A digest of that request. */
  repetition_content: string | null;
  /**
   * Increases by a random step with each recording, so that a recording that was acknowledged again is not
   * taken back. Random, so that one number never identifies two recordings, even if one of them was lost.
   */
  revision: bigint;
  recorded_at: bigint;
  ended_at: bigint | null;
  /** Time of the last request: creation or change. */
  touched_at: bigint;
  /**
   * Blazar's last observation since the last request: a digest from `digestOf`, or `ABSENT`. `ASKED` and, for
   * a new lease, `null` = none yet, so its alternative and its allocations are unknown.
   */
  shown: string | null;
  /**
   * From `recordedResources`: as last requested or shown. `null` = recorded by an older version, which did
   * not store it.
   */
  resources: string | null;
}

/** Balances, so that a check needs no sums. */
export interface AccountsTable {
  project_id: string;
  name: string;
  balance: bigint;
}

/** Every change of a balance. Rows are only added. */
export interface EntriesTable {
  id: Generated<bigint>;
  at: bigint;
  project_id: string;
  account: string;
  delta: bigint;
  /** The row of the lease. */
  lease: bigint;
  operation: string;
  who: string;
  request_id: string | null;
  reason: string | null;
}

/** Budgets in force and removed budgets. */
export interface BudgetsTable {
  id: Generated<bigint>;
  project_id: string;
  user_id: string | null;
  /** In seconds. */
  valid_from: bigint;
  valid_until: bigint;
  amount: bigint;
  removed_at: bigint | null;
}

/** Every change of a budget. Rows are only added. */
export interface BudgetChangesTable {
  id: Generated<bigint>;
  at: bigint;
  budget: bigint;
  project_id: string;
  user_id: string | null;
  operation: 'set' | 'removed';
  valid_from: bigint;
  valid_until: bigint;
  amount: bigint;
  who: string;
  reason: string | null;
}

/**
 * One row per leader lease, the process that compares the ledger with Blazar or SkyPilot, with times by the
 * database's clock. From id 65,536 on, one per commit lock, with times by the ledger's.
 */
interface FollowerTable {
  id: bigint;
  /** The process that holds it; `null` = none. */
  holder: string | null;
  /** From then on, another process may take it. */
  held_until: bigint;
  /** End of the last complete comparison. */
  followed_at: bigint | null;
  /** The endpoint and region whose leases were last found in this ledger. */
  matched: string | null;
  /** Rows that the last comparison would have released, but were too many at once: numbers as a JSON list. */
  doubted: string | null;
}

/** `waiting` until delivered, which deletes it; `dead` = no more attempts; `discarded` = by an operator. */
export type OutboxState = 'waiting' | 'dead' | 'discarded';

export interface OutboxTable {
  /** In the order of writing. */
  id: Generated<bigint>;
  /** The name of the filter. */
  sender: string;
  /** A digest of its lease: messages of one lease are delivered in order. */
  lease: string;
  project_id: string;
  /** For display, shortened. */
  lease_id: string | null;
  /** The source of its `Idempotency-Key`. */
  key: string;
  body: string;
  state: OutboxState;
  written_at: bigint;
  /** Start of the maximum age: when it was written, or last retried by an operator. */
  expires_from: bigint;
  attempts: bigint;
  /** Earliest time of the next attempt. */
  next_at: bigint;
  /** The worker that is delivering it, until `claimed_until`. */
  claim: string | null;
  claimed_until: bigint;
  /** The error of the last attempt. */
  error: string | null;
  /** When it became dead or was discarded. */
  settled_at: bigint | null;
  /** The operator who discarded or retried it. */
  who: string | null;
  reason: string | null;
}

/** Decisions, for display. Texts are as in the record, except characters that a database cannot store. */
interface DecisionsTable {
  /** In the order of writing. */
  id: Generated<bigint>;
  /** Time of the decision, by the replica's clock. */
  at: bigint;
  request_id: string;
  operation: string;
  outcome: string;
  /** `null` = none, or not searchable. */
  project_id: string | null;
  user_id: string | null;
  lease_id: string | null;
  /** `name@domain`; `null` = not known from Keystone. */
  project_label: string | null;
  user_label: string | null;
  /** The dates of a refused lease. */
  asked_start: bigint | null;
  asked_end: bigint | null;
  /** Filters with a result other than allowed: a JSON list; `null` = none. */
  concerns: string | null;
  replica: string;
  /** The whole record in JSON, with the request of a refused lease. */
  record: string;
}

/** Filters with a result other than allowed, for searches. */
export interface DecisionFiltersTable {
  decision: bigint;
  filter: string;
  project_id: string | null;
  at: bigint;
}

/**
 * Number of leases of a project and region folded at one date: their rows are in a file, the sums of their
 * entries in `folded_balances`.
 */
export interface FoldsTable {
  project_id: string;
  region: string;
  /** The planned and actual ends of all leases are before this time. */
  until: bigint;
  leases: bigint;
  entries: bigint;
}

/** Sums of the entries of folded leases; never 0. */
export interface FoldedBalancesTable {
  project_id: string;
  account: string;
  amount: bigint;
}

export interface Tables {
  ledger: LedgerTable;
  projects: ProjectsTable;
  leases: LeasesTable;
  accounts: AccountsTable;
  entries: EntriesTable;
  budgets: BudgetsTable;
  budget_changes: BudgetChangesTable;
  budget_requests: BudgetRequestsTable;
  follower: FollowerTable;
  outbox: OutboxTable;
  decisions: DecisionsTable;
  decision_filters: DecisionFiltersTable;
  folds: FoldsTable;
  folded_balances: FoldedBalancesTable;
  sessions: SessionsTable;
  login_counts: LoginCountsTable;
  calendar_links: CalendarLinksTable;
  replicas: ReplicasTable;
}

export type LeaseRow = Selectable<LeasesTable>;

/** The columns of `leases` with their types. */
export const LEASE_COLUMNS = {
  id: 'bigint',
  lease_id: 'text',
  region: 'text',
  project_id: 'text',
  user_id: 'text',
  name: 'text',
  starts_at: 'bigint',
  ends_at: 'bigint',
  state: 'text',
  demand: 'text',
  claims: 'text',
  alternatives: 'text',
  repetition_key: 'text',
  repetition_content: 'text',
  revision: 'bigint',
  recorded_at: 'bigint',
  ended_at: 'bigint',
  touched_at: 'bigint',
  shown: 'text',
  resources: 'text',
} as const satisfies Record<keyof LeaseRow, 'text' | 'bigint'>;
