/** The privileges that a PostgreSQL role needs on the ledger's tables, and the missing ones. */

import { sql } from 'kysely';
import { waitFor } from '../../base/deadline.ts';
import { type Database, rows } from './database.ts';

const NEEDED = {
  ledger: ['SELECT', 'UPDATE'],
  projects: ['SELECT', 'INSERT', 'UPDATE'],
  leases: ['SELECT', 'INSERT', 'UPDATE'],
  accounts: ['SELECT', 'INSERT', 'UPDATE'],
  entries: ['SELECT', 'INSERT'],
  budgets: ['SELECT', 'INSERT', 'UPDATE'],
  budget_changes: ['SELECT', 'INSERT'],
  follower: ['SELECT', 'INSERT', 'UPDATE'],
  folds: ['SELECT'],
  folded_balances: ['SELECT'],
  kysely_migration: ['SELECT'],
} as const;

/** Only for durable delivery: services without it need no grants for it. */
export const NEEDED_FOR_OUTBOX = { outbox: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] } as const;

/** Only for folding and restoring leases. */
export const NEEDED_FOR_FOLDING = {
  leases: ['INSERT', 'DELETE'],
  entries: ['INSERT', 'DELETE'],
  folds: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  folded_balances: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  outbox: ['SELECT'],
} as const;

/** Only if decisions are stored. */
export const NEEDED_FOR_DECISIONS = {
  decisions: ['SELECT', 'INSERT', 'DELETE'],
  decision_filters: ['SELECT', 'INSERT', 'DELETE'],
  kysely_migration: ['SELECT'],
} as const;

/** Only for console sessions; without them, each process keeps its own. */
export const NEEDED_FOR_SESSIONS = {
  sessions: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  login_counts: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  kysely_migration: ['SELECT'],
} as const;

/** Only for requesting and granting more budget. */
export const NEEDED_FOR_REQUESTS = { budget_requests: ['SELECT', 'INSERT', 'UPDATE'] } as const;

/** Only for calendar links; without them, there are no links. */
export const NEEDED_FOR_CALENDARS = {
  calendar_links: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  kysely_migration: ['SELECT'],
} as const;

/**
 * `the role "ledger" lacks UPDATE on accounts`; `undefined` = none missing. @throws LedgerUnavailableError
 */
export async function missingRights(
  database: Database,
  needed: Readonly<Record<string, readonly string[]>> = NEEDED,
): Promise<string | undefined> {
  const wanted = Object.entries(needed).flatMap(([table, rights]) =>
    rights.map((right) => ({ table, right })),
  );
  const query = sql<{ role: string; missing: string }>`
    select current_user::text as role, 'USAGE of schema ' || nspname as missing
    from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where relname = 'kysely_migration' and to_regclass('kysely_migration') is null
      and nspname = any (select trim(both ' "' from unnest(string_to_array(current_setting('search_path'), ','))))
      and not has_schema_privilege(nspname, 'USAGE')
    union all
    select current_user::text, wanted.right || ' on ' || wanted.table
    from (values ${sql.join(wanted.map(({ table, right }) => sql`(${table}, ${right})`))}) as wanted ("table", "right")
    where to_regclass(wanted.table) is not null and not has_table_privilege(to_regclass(wanted.table), wanted.right)
  `;
  const wait = waitFor(undefined);
  const found = await database.read(() => rows(query.compile(database.queries)), wait);
  const [first] = found;
  return (
    first && `the role ${JSON.stringify(first.role)} lacks ${found.map(({ missing }) => missing).join(', ')}`
  );
}
