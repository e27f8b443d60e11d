/** Migrations of the tables in `../service-tables.ts`, which no decision about a lease depends on. */
import {
  type ColumnDefinitionBuilder,
  type CreateTableBuilder,
  type Kysely,
  type SchemaModule,
  sql,
} from 'kysely';
import type { Dialect } from '../connection.ts';

export const required = (column: ColumnDefinitionBuilder) => column.notNull();
export const primary = (column: ColumnDefinitionBuilder) => column.primaryKey();

/** Ids follow the order of writing: SQLite must not reuse them. */
export function withOrderedId<Table extends string>(table: CreateTableBuilder<Table>, dialect: Dialect) {
  return dialect === 'sqlite'
    ? table.addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    : table.addColumn('id', sql`bigint generated always as identity`, primary);
}

export function index(schema: SchemaModule, name: string, table: string, columns: string[]) {
  return schema.createIndex(name).on(table).columns(columns);
}

/**
 * Console sessions of all replicas: hashes, and texts that only the browser's cookie decrypts. Also counts of
 * failed logins, hashes of used and known values, and the replicas.
 */
export async function sessions(database: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { schema } = database;
  await withOrderedId(schema.createTable('sessions'), dialect)
    .addColumn('name', 'text', required)
    .addColumn('owner', 'text', required)
    .addColumn('is_shared', 'bigint', required)
    .addColumn('since', 'bigint', required)
    .addColumn('revision', 'bigint', required)
    .addColumn('sub', 'text')
    .addColumn('sid', 'text')
    .addColumn('sealed', 'text', required)
    .execute();
  await index(schema, 'sessions_by_name', 'sessions', ['name']).unique().execute();
  await index(schema, 'sessions_by_owner', 'sessions', ['owner', 'id']).execute();
  await withOrderedId(schema.createTable('login_counts'), dialect)
    .addColumn('kind', 'text', required)
    .addColumn('name', 'text', required)
    .addColumn('since', 'bigint', required)
    .addColumn('count', 'bigint', required)
    .execute();
  await index(schema, 'login_counts_by_name', 'login_counts', ['kind', 'name']).unique().execute();
  await index(schema, 'login_counts_by_age', 'login_counts', ['kind', 'id']).execute();
  await schema
    .createTable('replicas')
    .addColumn('name', 'text', primary)
    .addColumn('seen_at', 'bigint', required)
    .addColumn('version', 'text', required)
    .addColumn('generation', 'bigint', required)
    .addColumn('digest', 'text', required)
    .execute();
}

/** Requests for more budget and their outcomes. */
export async function budgetRequests(database: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { schema } = database;
  await withOrderedId(schema.createTable('budget_requests'), dialect)
    .addColumn('project_id', 'text', required)
    .addColumn('user_id', 'text')
    .addColumn('amount', 'bigint', required)
    .addColumn('valid_until', 'bigint', required)
    .addColumn('reason', 'text', required)
    .addColumn('asked_at', 'bigint', required)
    .addColumn('asked_by', 'text', required)
    .addColumn('asker', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('endorsed_at', 'bigint')
    .addColumn('endorsed_by', 'text')
    .addColumn('endorsed_reason', 'text')
    .addColumn('settled_at', 'bigint')
    .addColumn('settled_by', 'text')
    .addColumn('settled_reason', 'text')
    .addColumn('granted_amount', 'bigint')
    .addColumn('granted_until', 'bigint')
    .addColumn('budget', 'bigint')
    .execute();
  await index(schema, 'budget_requests_by_project', 'budget_requests', ['project_id', 'id']).execute();
  await index(schema, 'budget_requests_by_state', 'budget_requests', ['state', 'id']).execute();
}

/** Links to project calendars: only hashes are stored, so that the table reveals no usable link. */
export async function calendarLinks({ schema }: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await withOrderedId(schema.createTable('calendar_links'), dialect)
    .addColumn('name', 'text', required)
    .addColumn('owner', 'text', required)
    .addColumn('who', 'text', required)
    .addColumn('project_id', 'text', required)
    .addColumn('made_at', 'bigint', required)
    .addColumn('renewed_at', 'bigint', required)
    .execute();
  await index(schema, 'calendar_links_by_name', 'calendar_links', ['name']).unique().execute();
  await index(schema, 'calendar_links_by_owner', 'calendar_links', ['owner', 'id']).execute();
  await index(schema, 'calendar_links_by_project', 'calendar_links', ['project_id', 'id']).execute();
}
