/** The tables of the ledger. Times are microseconds of the epoch unless they say seconds. Both databases return numbers as `bigint`. */
import type { Generated } from 'kysely';
import type {
  BudgetRequestsTable,
  CalendarLinksTable,
  LoginCountsTable,
  ReplicasTable,
  SessionsTable,
} from './service-tables.ts';

/** One row for each project: locking it locks the project. */
export interface ProjectsTable {
  project_id: string;
  /** Number of transactions: when it is lower than one that was acknowledged, transactions are lost. */
  revision: bigint;
  /** The latest time at which the project was locked. */
  latest_at: bigint;
}

/** A single row: the ledger itself. */
interface LedgerTable {
  /** Stays the same in every copy. */
  id: string;
  /** Rises each time `ledger reconcile` lets a suspended ledger grant again. */
  epoch: bigint;
  /** Why nothing is granted until `ledger reconcile`; `null` = leases are granted. */
  suspended: string | null;
  /** SQLite only: identifies the file that was last written to. */
  file: string | null;
}

/** `open` until it ended, was deleted, or its end was noticed. */
export type LeaseState = 'open' | 'ended';

export interface LeasesTable {
  id: Generated<bigint>;
  /** Blazar's id; `null` until an update or an end tells it. */
  lease_id: string | null;
  /** Empty when the request names none. */
  region: string;
  project_id: string;
  user_id: string;
  name: string;
  /** As last requested. */
  starts_at: bigint;
  /** The latest possible end. */
  ends_at: bigint;
  state: LeaseState;
  /** From `demandOf`: what was last requested. */
  demand: string;
  /** What it takes as last requested, from `formatClaims`. */
  claims: string;
  /** All alternatives, from `recordedAs`; `null` = there is only the one above. */
  alternatives: string | null;
  /** The `Idempotency-Key` of its request. */
  repetition_key: string | null;
  /** A digest of that request. */
  repetition_content: string | null;
  /**
   * Rises by a random step with each recording, so that what was acknowledged since is not taken back. Random, so that one number
   * never stands for two recordings, even when one of them was lost.
   */
  revision: bigint;
  recorded_at: bigint;
  ended_at: bigint | null;
  /** When it was last asked for: created or changed. */
  touched_at: bigint;
  /**
   * What Blazar has shown of it since it was last asked for: a digest from `digestOf`, or `ABSENT`. `ASKED` and, for
   * a new lease, `null` = nothing yet, so it is not known which of its alternatives it is, nor how much it was given.
   */
  shown: string | null;
  /** From `recordedResources`: as last requested or shown. `null` = it was recorded by an older version, which did not note it. */
  resources: string | null;
}

/** Balances, so that a check sums up nothing. */
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

/** Budgets in force, and removed ones. */
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

/** A single row: the process that compares the ledger with Blazar. Its times are those of the database's clock. */
interface FollowerTable {
  id: bigint;
  /** Who does it now; `null` = nobody. */
  holder: string | null;
  /** From then on, somebody else may. */
  held_until: bigint;
  /** When the last complete comparison ended. */
  followed_at: bigint | null;
  /** The endpoint and region whose leases were last found in this ledger. */
  matched: string | null;
  /** The rows that the last comparison would have released, which were too many at once: a list of numbers in JSON. */
  doubted: string | null;
}

/** `waiting` until it is delivered, which removes it; `dead` = it is not tried any more; `discarded` = by an operator. */
export type OutboxState = 'waiting' | 'dead' | 'discarded';

export interface OutboxTable {
  /** In the order of writing. */
  id: Generated<bigint>;
  /** The name of the filter. */
  sender: string;
  /** A digest of the lease that it is about: the messages of one lease are delivered in order. */
  lease: string;
  project_id: string;
  /** For people, shortened. */
  lease_id: string | null;
  /** The source of its `Idempotency-Key`. */
  key: string;
  body: string;
  state: OutboxState;
  written_at: bigint;
  /** Since when it is tried in vain: when it was written, or when an operator wanted it tried again. */
  expires_from: bigint;
  attempts: bigint;
  /** It is not tried before. */
  next_at: bigint;
  /** The worker that is trying it, until then. */
  claim: string | null;
  claimed_until: bigint;
  /** Why the last attempt failed. */
  error: string | null;
  /** When it died or was discarded. */
  settled_at: bigint | null;
  /** Who discarded it, or had it tried again. */
  who: string | null;
  reason: string | null;
}

/** Decisions, for people to look at. Their texts are as in the record, except what no database keeps. */
interface DecisionsTable {
  /** In the order of writing. */
  id: Generated<bigint>;
  /** When it was decided, by the clock of the replica. */
  at: bigint;
  request_id: string;
  operation: string;
  outcome: string;
  /** `null` = there is none, or it is none that can be looked for. */
  project_id: string | null;
  user_id: string | null;
  lease_id: string | null;
  /** `name@domain`; `null` = Keystone does not tell. */
  project_label: string | null;
  user_label: string | null;
  /** The dates of a refused lease. */
  asked_start: bigint | null;
  asked_end: bigint | null;
  /** The filters that did anything but allow: a list in JSON; `null` = none. */
  concerns: string | null;
  replica: string;
  /** The whole record, in JSON, and what a refused lease asked for. */
  record: string;
}

/** The filters that did anything but allow, to look for them. */
export interface DecisionFiltersTable {
  decision: bigint;
  filter: string;
  project_id: string | null;
  at: bigint;
}

/** How many leases of a project and region were folded at one date: their rows are in a file, and their entries in `folded_balances`. */
export interface FoldsTable {
  project_id: string;
  region: string;
  /** All of them had ended before, and were to. */
  until: bigint;
  leases: bigint;
  entries: bigint;
}

/** The sums of the entries of folded leases; none is 0. */
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

export type LeaseRow = {
  [Column in keyof LeasesTable]: LeasesTable[Column] extends Generated<infer Value>
    ? Value
    : LeasesTable[Column];
};

/** The columns of `leases`, and their types. */
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
