/**
 * Tables of the service's users and replicas, which no decision about a lease depends on. Times as in
 * `schema.ts` unless stated otherwise.
 */
import type { Generated } from 'kysely';

/** The first two are open, the others final. `changed` = granted, but not as requested. */
export const BUDGET_REQUEST_STATES = [
  ...(['requested', 'endorsed'] as const),
  ...(['granted', 'changed', 'refused', 'withdrawn'] as const),
] as const;
export type BudgetRequestState = (typeof BUDGET_REQUEST_STATES)[number];
export const OPEN_STATES = ['requested', 'endorsed'] as const satisfies readonly BudgetRequestState[];

/** Requests for more budget. Rows are never removed. */
export interface BudgetRequestsTable {
  id: Generated<bigint>;
  project_id: string;
  /** `null` = for the whole project. */
  user_id: string | null;
  /** Requested increase of the budget. */
  amount: bigint;
  /** In seconds. */
  valid_until: bigint;
  reason: string;
  asked_at: bigint;
  asked_by: string;
  /** `Caller.identity` of the requester: only they may withdraw it. */
  asker: string;
  state: BudgetRequestState;
  endorsed_at: bigint | null;
  endorsed_by: string | null;
  endorsed_reason: string | null;
  /** Time and author of the final step. */
  settled_at: bigint | null;
  settled_by: string | null;
  settled_reason: string | null;
  /** Granted increase of the budget; `null` = not granted. */
  granted_amount: bigint | null;
  granted_until: bigint | null;
  /** The increased budget. */
  budget: bigint | null;
}

/** Sessions of the console. Hashes are SHA-256 in Base64; times are milliseconds of the epoch. */
export interface SessionsTable {
  /** In the order of creation. */
  id: Generated<bigint>;
  /** The hash of the cookie. */
  name: string;
  /** The hash of the identity whose sessions are counted together. */
  owner: string;
  /** 1 = the identity may be shared, such as a token of the configuration; otherwise 0. */
  is_shared: bigint;
  since: bigint;
  /** Increases with each change of `sealed`. */
  revision: bigint;
  /** Hashes of user and session at the identity provider, used to end sessions; `null` = none. */
  sub: string | null;
  sid: string | null;
  /** CSRF token and proof of identity, encrypted with a key derived from the cookie. */
  sealed: string;
}

/** Counts of failed logins, and hashes of used and known values. Times are milliseconds of the epoch. */
export interface LoginCountsTable {
  /** In the order of the first time. */
  id: Generated<bigint>;
  kind: string;
  /** A hash of the counted subject. */
  name: string;
  /** The first time. */
  since: bigint;
  count: bigint;
}

/** Links to calendars. */
export interface CalendarLinksTable {
  /** In the order of creation. */
  id: Generated<bigint>;
  /** The hash of its secret: SHA-256 in Base64. */
  name: string;
  /** The owner: `identity` of the caller. */
  owner: string;
  /** The owner, for display. */
  who: string;
  project_id: string;
  made_at: bigint;
  /** When its owner was last authorized for the project. */
  renewed_at: bigint;
}

/** The processes of the service that store decisions here. */
export interface ReplicasTable {
  /** As in `decisions`. */
  name: string;
  /** Its last heartbeat, by the database's clock. */
  seen_at: bigint;
  version: string;
  generation: bigint;
  /** The digest of its configuration: see `configurationDigest`. */
  digest: string;
}
