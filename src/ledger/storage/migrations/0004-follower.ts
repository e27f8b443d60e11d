import { type Kysely, type Migration, sql } from 'kysely';

/** What following Blazar needs: when each lease was last asked for, what Blazar showed of it, and who follows at the moment. */
export function follower(): Migration {
  return {
    async up(database: Kysely<unknown>) {
      const { schema } = database;
      await schema
        .alterTable('leases')
        .addColumn('touched_at', 'bigint', (column) => column.notNull().defaultTo(0))
        .execute();
      await sql`update leases set touched_at = recorded_at`.execute(database);
      await schema.alterTable('leases').addColumn('shown', 'text').execute();
      await schema
        .createTable('follower')
        .addColumn('id', 'bigint', (column) => column.primaryKey())
        .addColumn('holder', 'text')
        .addColumn('held_until', 'bigint', (column) => column.notNull())
        .addColumn('followed_at', 'bigint')
        .addColumn('matched', 'text')
        .addColumn('doubted', 'text')
        .execute();
      await sql`insert into follower (id, held_until) values (1, 0)`.execute(database);
    },
  };
}
