import { randomUUID } from 'node:crypto';
import { type Kysely, type Migration, sql } from 'kysely';

/** Which ledger it is and how far it has come: what tells one that has gone back from one that goes on. */
export function position(): Migration {
  return {
    async up(database: Kysely<unknown>) {
      const { schema } = database;
      await schema
        .createTable('ledger')
        .addColumn('id', 'text', (column) => column.primaryKey())
        .addColumn('epoch', 'bigint', (column) => column.notNull())
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
    },
  };
}
