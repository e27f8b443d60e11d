import { type Kysely, type Migration, sql } from 'kysely';
import type { Dialect } from '../connection.ts';

/** Messages to other services that are not delivered yet. */
export function outbox(dialect: Dialect): Migration {
  return {
    async up(database: Kysely<unknown>) {
      const { schema } = database;
      // The order of ids is that of writing: a file must not use one again.
      const table = schema.createTable('outbox');
      const withId =
        dialect === 'sqlite'
          ? table.addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
          : table.addColumn('id', sql`bigint generated always as identity`, (column) => column.primaryKey());
      await withId
        .addColumn('sender', 'text', (column) => column.notNull())
        .addColumn('lease', 'text', (column) => column.notNull())
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('lease_id', 'text')
        .addColumn('key', 'text', (column) => column.notNull())
        .addColumn('state', 'text', (column) =>
          column.notNull().check(sql`state in ('waiting', 'dead', 'discarded')`),
        )
        .addColumn('written_at', 'bigint', (column) => column.notNull())
        .addColumn('expires_from', 'bigint', (column) => column.notNull())
        .addColumn('attempts', 'bigint', (column) => column.notNull())
        .addColumn('next_at', 'bigint', (column) => column.notNull())
        .addColumn('claim', 'text')
        .addColumn('claimed_until', 'bigint', (column) => column.notNull())
        .addColumn('error', 'text')
        .addColumn('settled_at', 'bigint')
        .addColumn('who', 'text')
        .addColumn('reason', 'text')
        // The last: SQLite reads past what comes before.
        .addColumn('body', 'text', (column) => column.notNull())
        .execute();
      await schema.createIndex('outbox_by_sender').on('outbox').columns(['sender', 'state', 'id']).execute();
      await schema.createIndex('outbox_by_lease').on('outbox').columns(['lease', 'state', 'id']).execute();
    },
  };
}
