/** The tables of people who use the service, and of its replicas: no lease is judged by them. Times are as in `schema.ts` unless they say so. */
import type { Generated } from 'kysely';

/** The first two are open, the others final. `changed` = granted, but not as asked. */
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
  /** What the budget should grow by. */
  amount: bigint;
  /** In seconds. */
  valid_until: bigint;
  /** Why it is asked for. */
  reason: string;
  asked_at: bigint;
  asked_by: string;
  /** `Caller.identity` of who has asked: only they may withdraw it. */
  asker: string;
  state: BudgetRequestState;
  endorsed_at: bigint | null;
  endorsed_by: string | null;
  endorsed_reason: string | null;
  /** When it became final, and by whom. */
  settled_at: bigint | null;
  settled_by: string | null;
  settled_reason: string | null;
  /** What the budget has grown by; `null` = it was not granted. */
  granted_amount: bigint | null;
  granted_until: bigint | null;
  /** The budget that has grown. */
  budget: bigint | null;
}

/** Sessions of the console. Hashes are SHA-256 in Base64; times are milliseconds of the epoch. */
export interface SessionsTable {
  /** In the order of opening. */
  id: Generated<bigint>;
  /** The hash of the cookie. */
  name: string;
  /** The hash of the identity whose sessions are counted together. */
  owner: string;
  /** 1 = many may have the identity, such as a token of the configuration; otherwise 0. */
  is_shared: bigint;
  since: bigint;
  /** Rises with each change of `sealed`. */
  revision: bigint;
  /** The hashes of the user and of the session at the identity provider, by which it ends them; `null` = there are none. */
  sub: string | null;
  sid: string | null;
  /** What has opened it, with a key that is derived from the cookie. */
  sealed: string;
}

/** How often something was wrong, or that it was used. Times are milliseconds of the epoch. */
export interface LoginCountsTable {
  /** In the order of the first time. */
  id: Generated<bigint>;
  kind: string;
  /** A hash of what is counted. */
  name: string;
  /** The first time. */
  since: bigint;
  count: bigint;
}

/** Links to calendars. */
export interface CalendarLinksTable {
  /** In the order of making. */
  id: Generated<bigint>;
  /** The hash of its secret: SHA-256 in Base64. */
  name: string;
  /** Whose it is: `identity` of the caller. */
  owner: string;
  /** The same for people. */
  who: string;
  project_id: string;
  made_at: bigint;
  /** When its owner last had a right to see the project. */
  renewed_at: bigint;
}

/** The processes of the service that store decisions here. */
export interface ReplicasTable {
  /** As in `decisions`. */
  name: string;
  /** When it last said that it is there, by the clock of the database. */
  seen_at: bigint;
  version: string;
  generation: bigint;
  /** Of its configuration: see `configurationDigest`. */
  digest: string;
}
