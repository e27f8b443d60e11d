import { type Kysely, type Migration, sql } from 'kysely';
import type { Dialect } from '../connection.ts';

/** Decisions of all replicas. Each search reads one of the indexes backwards: the newest first. */
export function decisions(dialect: Dialect): Migration {
  return {
    async up(database: Kysely<unknown>) {
      const { schema } = database;
      // The order of ids is that of writing: a file must not use one again.
      const table = schema.createTable('decisions');
      const withId =
        dialect === 'sqlite'
          ? table.addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
          : table.addColumn('id', sql`bigint generated always as identity`, (column) => column.primaryKey());
      await withId
        .addColumn('at', 'bigint', (column) => column.notNull())
        .addColumn('request_id', 'text', (column) => column.notNull())
        .addColumn('operation', 'text', (column) => column.notNull())
        .addColumn('outcome', 'text', (column) => column.notNull())
        .addColumn('project_id', 'text')
        .addColumn('user_id', 'text')
        .addColumn('lease_id', 'text')
        .addColumn('project_label', 'text')
        .addColumn('user_label', 'text')
        .addColumn('asked_start', 'bigint')
        .addColumn('asked_end', 'bigint')
        .addColumn('concerns', 'text')
        .addColumn('replica', 'text', (column) => column.notNull())
        // The last: SQLite reads past what comes before.
        .addColumn('record', 'text', (column) => column.notNull())
        .execute();
      const index = (name: string, columns: string[]) =>
        schema.createIndex(`decisions_by_${name}`).on('decisions').columns(columns);
      // Outcome and operation stand in them to be compared without reading the row.
      await index('time', ['at', 'id', 'outcome', 'operation']).execute();
      await index('project', ['project_id', 'outcome', 'at', 'id', 'operation']).execute();
      await index('user', ['user_id', 'outcome', 'at', 'id', 'operation']).execute();
      await index('request', ['request_id', 'at', 'id']).execute();
      for (const column of ['lease_id', 'project_label', 'user_label']) {
        await index(column, [column, 'at', 'id']).where(sql.ref(column), 'is not', null).execute();
      }
      await index('outcome', ['outcome', 'at', 'id'])
        .where(sql.ref('outcome'), '<>', sql.lit('allowed'))
        .execute();

      await schema
        .createTable('decision_filters')
        .addColumn('decision', 'bigint', (column) => column.notNull())
        .addColumn('filter', 'text', (column) => column.notNull())
        .addColumn('project_id', 'text')
        .addColumn('at', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('decision_filters_primary_key', ['decision', 'filter'])
        .execute();
      await schema
        .createIndex('decision_filters_by_filter')
        .on('decision_filters')
        .columns(['filter', 'at', 'decision'])
        .execute();
      await schema
        .createIndex('decision_filters_by_project')
        .on('decision_filters')
        .columns(['project_id', 'filter', 'at', 'decision'])
        .execute();
    },
  };
}
