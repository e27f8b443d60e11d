/** The versions of the tables, in order. Released ones never change. */
import { randomUUID } from 'node:crypto';
import { type Kysely, type Migration, sql } from 'kysely';
import type { Dialect } from '../connection.ts';
import {
  budgetRequests,
  calendarLinks,
  index,
  primary,
  required,
  sessions,
  withOrderedId,
} from './service-tables.ts';

/** Released names never change. */
export function migrations(dialect: Dialect): Record<string, Migration> {
  const versions = {
    '0001-ledger': firstTables,
    '0002-alternatives': alternatives,
    '0003-position': position,
    '0004-follower': follower,
    '0005-outbox': outbox,
    '0006-views': views,
    '0007-decisions': decisions,
    '0008-open-leases': openLeases,
    '0010-growth': growth,
    '0011-sessions': sessions,
    '0012-budget-requests': budgetRequests,
    '0013-calendar-links': calendarLinks,
  };
  return Object.fromEntries(
    Object.entries(versions).map(([name, up]) => [
      name,
      { up: (database: Kysely<unknown>) => up(database, dialect) },
    ]),
  );
}

/** Decisions do not depend on these: a service decides even if they are not applied yet. */
export const OPTIONAL: readonly string[] = ['0011-sessions', '0012-budget-requests', '0013-calendar-links'];

/**
 * An index of a table that may be large. On PostgreSQL it is built before its migration: see `buildIndexesConcurrently`.
 */
export interface LargeIndex {
  readonly name: string;
  readonly table: string;
  readonly columns: readonly string[];
  /** A partial index has only these rows; `undefined` = all. */
  readonly condition: string | undefined;
}

const OPEN_LEASES: LargeIndex = {
  name: 'leases_open_by_region',
  table: 'leases',
  columns: ['region', 'id', 'ends_at'],
  condition: "state = 'open'",
};

const OWNERS: LargeIndex = {
  name: 'leases_by_owner',
  table: 'leases',
  columns: ['region', 'user_id', 'id'],
  condition: undefined,
};

export const LARGE_INDEXES = [OPEN_LEASES, OWNERS];

async function firstTables(database: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const id = dialect === 'sqlite' ? sql`integer` : sql`bigint generated always as identity`;
  const { schema } = database;
  await schema
    .createTable('projects')
    .addColumn('project_id', 'text', primary)
    .addColumn('revision', 'bigint', required)
    .execute();
  await schema
    .createTable('leases')
    .addColumn('id', id, primary)
    .addColumn('lease_id', 'text')
    .addColumn('region', 'text', required)
    .addColumn('project_id', 'text', required)
    .addColumn('user_id', 'text', required)
    .addColumn('name', 'text', required)
    .addColumn('starts_at', 'bigint', required)
    .addColumn('ends_at', 'bigint', required)
    .addColumn('state', 'text', (column) => column.notNull().check(sql`state in ('open', 'ended')`))
    .addColumn('demand', 'text', required)
    .addColumn('claims', 'text', required)
    .addColumn('revision', 'bigint', required)
    .addColumn('recorded_at', 'bigint', required)
    .addColumn('ended_at', 'bigint')
    .execute();
  await index(schema, 'leases_by_lease_id', 'leases', ['lease_id', 'region', 'project_id'])
    .unique()
    .where(sql.ref('lease_id'), 'is not', null)
    .execute();
  await index(schema, 'leases_by_end', 'leases', ['project_id', 'state', 'ends_at']).execute();
  await index(schema, 'leases_by_start', 'leases', ['project_id', 'starts_at', 'name']).execute();
  await schema
    .createTable('accounts')
    .addColumn('project_id', 'text', required)
    .addColumn('name', 'text', required)
    .addColumn('balance', 'bigint', required)
    .addPrimaryKeyConstraint('accounts_primary_key', ['project_id', 'name'])
    .execute();
  await schema
    .createTable('entries')
    .addColumn('id', id, primary)
    .addColumn('at', 'bigint', required)
    .addColumn('project_id', 'text', required)
    .addColumn('account', 'text', required)
    .addColumn('delta', 'bigint', required)
    .addColumn('lease', 'bigint', (column) => column.notNull().references('leases.id'))
    .addColumn('operation', 'text', required)
    .addColumn('who', 'text', required)
    .addColumn('request_id', 'text')
    .addColumn('reason', 'text')
    .execute();
  await index(schema, 'entries_by_lease', 'entries', ['lease']).execute();
  await schema
    .createTable('budgets')
    .addColumn('id', id, primary)
    .addColumn('project_id', 'text', required)
    .addColumn('user_id', 'text')
    .addColumn('valid_from', 'bigint', required)
    .addColumn('valid_until', 'bigint', required)
    .addColumn('amount', 'bigint', required)
    .addColumn('removed_at', 'bigint')
    .execute();
  await index(schema, 'budgets_by_project', 'budgets', ['project_id']).execute();
  await schema
    .createTable('budget_changes')
    .addColumn('id', id, primary)
    .addColumn('at', 'bigint', required)
    .addColumn('budget', 'bigint', (column) => column.notNull().references('budgets.id'))
    .addColumn('project_id', 'text', required)
    .addColumn('user_id', 'text')
    .addColumn('operation', 'text', required)
    .addColumn('valid_from', 'bigint', required)
    .addColumn('valid_until', 'bigint', required)
    .addColumn('amount', 'bigint', required)
    .addColumn('who', 'text', required)
    .addColumn('reason', 'text')
    .execute();
  await index(schema, 'budget_changes_by_project', 'budget_changes', ['project_id']).execute();
}

/**
 * Alternatives of a lease until its state is known, and idempotency keys of requests. Existing leases have
 * only their recorded state, and keep their charges.
 */
async function alternatives(database: Kysely<unknown>): Promise<void> {
  const { schema } = database;
  for (const column of ['alternatives', 'repetition_key', 'repetition_content']) {
    await schema.alterTable('leases').addColumn(column, 'text').execute();
  }
  await index(schema, 'leases_by_repetition_key', 'leases', ['project_id', 'repetition_key'])
    .where(sql.ref('repetition_key'), 'is not', null)
    .execute();
  await index(schema, 'leases_unsettled', 'leases', ['project_id', 'user_id'])
    .where(sql.ref('alternatives'), 'is not', null)
    .where(sql.ref('lease_id'), 'is', null)
    .execute();
}

/** Ledger id, epoch and times, to detect a restored backup. */
async function position(database: Kysely<unknown>): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('ledger')
    .addColumn('id', 'text', primary)
    .addColumn('epoch', 'bigint', required)
    .addColumn('suspended', 'text')
    .addColumn('file', 'text')
    .execute();
  await sql`insert into ledger (id, epoch) values (${randomUUID()}, 1)`.execute(database);
  await schema
    .alterTable('projects')
    .addColumn('latest_at', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  await sql`update projects set latest_at = coalesce(
    (select max(at) from entries where entries.project_id = projects.project_id), 0)`.execute(database);
}

/** For comparing with Blazar: the last request and observation of each lease, and the leader lease. */
async function follower(database: Kysely<unknown>): Promise<void> {
  const { schema } = database;
  await schema
    .alterTable('leases')
    .addColumn('touched_at', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  await sql`update leases set touched_at = recorded_at`.execute(database);
  await schema.alterTable('leases').addColumn('shown', 'text').execute();
  await schema
    .createTable('follower')
    .addColumn('id', 'bigint', primary)
    .addColumn('holder', 'text')
    .addColumn('held_until', 'bigint', required)
    .addColumn('followed_at', 'bigint')
    .addColumn('matched', 'text')
    .addColumn('doubted', 'text')
    .execute();
  await sql`insert into follower (id, held_until) values (1, 0)`.execute(database);
}

async function outbox(database: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { schema } = database;
  await withOrderedId(schema.createTable('outbox'), dialect)
    .addColumn('sender', 'text', required)
    .addColumn('lease', 'text', required)
    .addColumn('project_id', 'text', required)
    .addColumn('lease_id', 'text')
    .addColumn('key', 'text', required)
    .addColumn('state', 'text', (column) =>
      column.notNull().check(sql`state in ('waiting', 'dead', 'discarded')`),
    )
    .addColumn('written_at', 'bigint', required)
    .addColumn('expires_from', 'bigint', required)
    .addColumn('attempts', 'bigint', required)
    .addColumn('next_at', 'bigint', required)
    .addColumn('claim', 'text')
    .addColumn('claimed_until', 'bigint', required)
    .addColumn('error', 'text')
    .addColumn('settled_at', 'bigint')
    .addColumn('who', 'text')
    .addColumn('reason', 'text')
    // The last column: SQLite reads past the columns before it.
    .addColumn('body', 'text', required)
    .execute();
  await index(schema, 'outbox_by_sender', 'outbox', ['sender', 'state', 'id']).execute();
  await index(schema, 'outbox_by_lease', 'outbox', ['lease', 'state', 'id']).execute();
}

/** For lists: the resources of leases, and indexes for pages. */
async function views(database: Kysely<unknown>): Promise<void> {
  const { schema } = database;
  // `null` = unknown: recorded before this migration.
  await schema.alterTable('leases').addColumn('resources', 'text').execute();
  await index(schema, 'leases_by_project', 'leases', ['project_id', 'id']).execute();
  // Only leases without an id are found by start: this pays for the index above.
  await schema.dropIndex('leases_by_start').execute();
  await index(schema, 'leases_by_start', 'leases', ['project_id', 'starts_at'])
    .where(sql.ref('lease_id'), 'is', null)
    .execute();
  // Includes the start, so that a time span is found without reading other leases.
  await schema.dropIndex('leases_by_end').execute();
  await index(schema, 'leases_by_end', 'leases', ['project_id', 'state', 'ends_at', 'starts_at']).execute();
  await index(schema, 'entries_by_project', 'entries', ['project_id', 'id']).execute();
  await schema.dropIndex('budgets_by_project').execute();
  await index(schema, 'budgets_by_owner', 'budgets', ['project_id', 'user_id', 'valid_until']).execute();
}

/** Decisions of all replicas. Each search reads one of the indexes backwards, newest first. */
async function decisions(database: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { schema } = database;
  await withOrderedId(schema.createTable('decisions'), dialect)
    .addColumn('at', 'bigint', required)
    .addColumn('request_id', 'text', required)
    .addColumn('operation', 'text', required)
    .addColumn('outcome', 'text', required)
    .addColumn('project_id', 'text')
    .addColumn('user_id', 'text')
    .addColumn('lease_id', 'text')
    .addColumn('project_label', 'text')
    .addColumn('user_label', 'text')
    .addColumn('asked_start', 'bigint')
    .addColumn('asked_end', 'bigint')
    .addColumn('concerns', 'text')
    .addColumn('replica', 'text', required)
    // The last column: SQLite reads past the columns before it.
    .addColumn('record', 'text', required)
    .execute();
  const by = (name: string, columns: string[]) => index(schema, `decisions_by_${name}`, 'decisions', columns);
  // Include outcome and operation, to filter without reading the row.
  await by('time', ['at', 'id', 'outcome', 'operation']).execute();
  await by('project', ['project_id', 'outcome', 'at', 'id', 'operation']).execute();
  await by('user', ['user_id', 'outcome', 'at', 'id', 'operation']).execute();
  await by('request', ['request_id', 'at', 'id']).execute();
  for (const column of ['lease_id', 'project_label', 'user_label']) {
    await by(column, [column, 'at', 'id']).where(sql.ref(column), 'is not', null).execute();
  }
  await by('outcome', ['outcome', 'at', 'id']).where(sql.ref('outcome'), '<>', sql.lit('allowed')).execute();

  await schema
    .createTable('decision_filters')
    .addColumn('decision', 'bigint', required)
    .addColumn('filter', 'text', required)
    .addColumn('project_id', 'text')
    .addColumn('at', 'bigint', required)
    .addPrimaryKeyConstraint('decision_filters_primary_key', ['decision', 'filter'])
    .execute();
  await index(schema, 'decision_filters_by_filter', 'decision_filters', [
    'filter',
    'at',
    'decision',
  ]).execute();
  await index(schema, 'decision_filters_by_project', 'decision_filters', [
    'project_id',
    'filter',
    'at',
    'decision',
  ]).execute();
}

/**
 * The open leases of a region in the order of recording, without ended ones: comparing with Blazar must not
 * get slower over the years.
 */
async function openLeases(database: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addedOnce(database, dialect, OPEN_LEASES);
}

/**
 * To list regions without reading leases, and the leases of a user in a region in the order of recording.
 * Also the totals of folded leases.
 */
async function growth(database: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addedOnce(database, dialect, OWNERS);
  await database.schema
    .createTable('folds')
    .addColumn('project_id', 'text', required)
    .addColumn('region', 'text', required)
    .addColumn('until', 'bigint', required)
    .addColumn('leases', 'bigint', required)
    .addColumn('entries', 'bigint', required)
    .addPrimaryKeyConstraint('folds_primary_key', ['project_id', 'region', 'until'])
    .execute();
  await database.schema
    .createTable('folded_balances')
    .addColumn('project_id', 'text', required)
    .addColumn('account', 'text', required)
    .addColumn('amount', 'bigint', required)
    .addPrimaryKeyConstraint('folded_balances_primary_key', ['project_id', 'account'])
    .execute();
}

async function addedOnce(
  database: Kysely<unknown>,
  dialect: Dialect,
  { name, table, columns, condition }: LargeIndex,
): Promise<void> {
  if (dialect === 'postgresql') {
    const found = await sql<{ found: string | null }>`select to_regclass(${name})::text as found`.execute(
      database,
    );
    if (found.rows[0]?.found != null) {
      return;
    }
  }
  const built = index(database.schema, name, table, [...columns]);
  await (condition === undefined ? built : built.where(sql<boolean>`${sql.raw(condition)}`)).execute();
}
