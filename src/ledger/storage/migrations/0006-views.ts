import { type Kysely, type Migration, sql } from 'kysely';

/** What people look at: which resources a lease reserves, and indexes for lists in pages. */
export function views(): Migration {
  return {
    async up(database: Kysely<unknown>) {
      const { schema } = database;
      // `null` = recorded before, and nobody knows.
      await schema.alterTable('leases').addColumn('resources', 'text').execute();
      await schema.createIndex('leases_by_project').on('leases').columns(['project_id', 'id']).execute();
      // Only leases without an id are looked for by their start: this pays for the index above.
      await schema.dropIndex('leases_by_start').execute();
      await schema
        .createIndex('leases_by_start')
        .on('leases')
        .columns(['project_id', 'starts_at'])
        .where(sql.ref('lease_id'), 'is', null)
        .execute();
      // With the start, a time span is found without reading the leases beside it.
      await schema.dropIndex('leases_by_end').execute();
      await schema
        .createIndex('leases_by_end')
        .on('leases')
        .columns(['project_id', 'state', 'ends_at', 'starts_at'])
        .execute();
      await schema.createIndex('entries_by_project').on('entries').columns(['project_id', 'id']).execute();
      await schema.dropIndex('budgets_by_project').execute();
      await schema
        .createIndex('budgets_by_owner')
        .on('budgets')
        .columns(['project_id', 'user_id', 'valid_until'])
        .execute();
    },
  };
}
