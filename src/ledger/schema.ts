/** The tables of the ledger. Times are microseconds of the epoch unless they say seconds; numbers come as `bigint` from both databases. */
import type { Generated } from 'kysely';

/** One row a project: whoever holds it is alone with the project. */
export interface ProjectsTable {
  project_id: string;
  /** How many transactions there were: one that was acknowledged and is not counted here is lost. */
  revision: bigint;
  /** The latest time at which somebody was alone with the project. */
  latest_at: bigint;
}

/** One row: the ledger itself. */
export interface LedgerTable {
  /** Stays with it, whatever it is copied to. */
  id: string;
  /** One more each time somebody has said that a ledger which went back is right again. */
  epoch: bigint;
  /** Why nothing is granted until `ledger reconcile`; `null` = it is. */
  suspended: string | null;
  /** Of SQLite: the file that it was last written to. */
  file: string | null;
}

/** `open` until it ended, was deleted, or its end was noticed. */
export type LeaseState = 'open' | 'ended';

export interface LeasesTable {
  id: Generated<bigint>;
  /** Blazar's; `null` until an update or an end brings it. */
  lease_id: string | null;
  /** Empty where the request names none. */
  region: string;
  project_id: string;
  user_id: string;
  name: string;
  /** As it was asked for last. */
  starts_at: bigint;
  /** The latest that it may end. */
  ends_at: bigint;
  state: LeaseState;
  /** As `demandOf` tells it: what was asked for last. */
  demand: string;
  /** What it takes then, as `formatClaims` writes it. */
  claims: string;
  /** All that it may be until somebody says how it is, as `recordedAs` writes them; `null` = it is known to be as above. */
  alternatives: string | null;
  /** The `Idempotency-Key` of the request that it is recorded for. */
  repetition_key: string | null;
  /** A digest of that request. */
  repetition_content: string | null;
  /**
   * Rises by a random step each time that it is recorded: what was acknowledged since is not taken back, and one number never
   * stands for two recordings, also where one of both was lost.
   */
  revision: bigint;
  recorded_at: bigint;
  ended_at: bigint | null;
}

/** Balances are kept here, so that nothing has to be summed up for a check. */
export interface AccountsTable {
  project_id: string;
  name: string;
  balance: bigint;
}

/** Every change of a balance. Rows are added, and never changed. */
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

/** Those that count now. */
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

/** Every change of a budget. Rows are added, and never changed. */
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

export interface Tables {
  ledger: LedgerTable;
  projects: ProjectsTable;
  leases: LeasesTable;
  accounts: AccountsTable;
  entries: EntriesTable;
  budgets: BudgetsTable;
  budget_changes: BudgetChangesTable;
}

export type LeaseRow = {
  [Column in keyof LeasesTable]: LeasesTable[Column] extends Generated<infer Value>
    ? Value
    : LeasesTable[Column];
};
