import { type Kysely, type Migration, sql } from 'kysely';
import type { Dialect } from '../connection.ts';

/** The first tables. */
export function firstTables(dialect: Dialect): Migration {
  const id = dialect === 'sqlite' ? sql`integer` : sql`bigint generated always as identity`;
  return {
    async up(database: Kysely<unknown>) {
      const { schema } = database;
      await schema
        .createTable('projects')
        .addColumn('project_id', 'text', (column) => column.primaryKey())
        .addColumn('revision', 'bigint', (column) => column.notNull())
        .execute();
      await schema
        .createTable('leases')
        .addColumn('id', id, (column) => column.primaryKey())
        .addColumn('lease_id', 'text')
        .addColumn('region', 'text', (column) => column.notNull())
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('name', 'text', (column) => column.notNull())
        .addColumn('starts_at', 'bigint', (column) => column.notNull())
        .addColumn('ends_at', 'bigint', (column) => column.notNull())
        .addColumn('state', 'text', (column) => column.notNull().check(sql`state in ('open', 'ended')`))
        .addColumn('demand', 'text', (column) => column.notNull())
        .addColumn('claims', 'text', (column) => column.notNull())
        .addColumn('revision', 'bigint', (column) => column.notNull())
        .addColumn('recorded_at', 'bigint', (column) => column.notNull())
        .addColumn('ended_at', 'bigint')
        .execute();
      await schema
        .createIndex('leases_by_lease_id')
        .unique()
        .on('leases')
        .columns(['lease_id', 'region', 'project_id'])
        .where(sql.ref('lease_id'), 'is not', null)
        .execute();
      await schema
        .createIndex('leases_by_end')
        .on('leases')
        .columns(['project_id', 'state', 'ends_at'])
        .execute();
      await schema
        .createIndex('leases_by_start')
        .on('leases')
        .columns(['project_id', 'starts_at', 'name'])
        .execute();
      await schema
        .createTable('accounts')
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('name', 'text', (column) => column.notNull())
        .addColumn('balance', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('accounts_primary_key', ['project_id', 'name'])
        .execute();
      await schema
        .createTable('entries')
        .addColumn('id', id, (column) => column.primaryKey())
        .addColumn('at', 'bigint', (column) => column.notNull())
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('account', 'text', (column) => column.notNull())
        .addColumn('delta', 'bigint', (column) => column.notNull())
        .addColumn('lease', 'bigint', (column) => column.notNull().references('leases.id'))
        .addColumn('operation', 'text', (column) => column.notNull())
        .addColumn('who', 'text', (column) => column.notNull())
        .addColumn('request_id', 'text')
        .addColumn('reason', 'text')
        .execute();
      await schema.createIndex('entries_by_lease').on('entries').columns(['lease']).execute();
      await schema
        .createTable('budgets')
        .addColumn('id', id, (column) => column.primaryKey())
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('user_id', 'text')
        .addColumn('valid_from', 'bigint', (column) => column.notNull())
        .addColumn('valid_until', 'bigint', (column) => column.notNull())
        .addColumn('amount', 'bigint', (column) => column.notNull())
        .addColumn('removed_at', 'bigint')
        .execute();
      await schema.createIndex('budgets_by_project').on('budgets').columns(['project_id']).execute();
      await schema
        .createTable('budget_changes')
        .addColumn('id', id, (column) => column.primaryKey())
        .addColumn('at', 'bigint', (column) => column.notNull())
        .addColumn('budget', 'bigint', (column) => column.notNull().references('budgets.id'))
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('user_id', 'text')
        .addColumn('operation', 'text', (column) => column.notNull())
        .addColumn('valid_from', 'bigint', (column) => column.notNull())
        .addColumn('valid_until', 'bigint', (column) => column.notNull())
        .addColumn('amount', 'bigint', (column) => column.notNull())
        .addColumn('who', 'text', (column) => column.notNull())
        .addColumn('reason', 'text')
        .execute();
      await schema
        .createIndex('budget_changes_by_project')
        .on('budget_changes')
        .columns(['project_id'])
        .execute();
    },
  };
}
