import { type Kysely, type Migration, sql } from 'kysely';

/**
 * What a lease may be until somebody says how it is, and what tells a request that is sent again. Leases that are there are taken
 * for what they are recorded as, and charged what they are charged.
 */
export function alternatives(): Migration {
  return {
    async up(database: Kysely<unknown>) {
      const { schema } = database;
      for (const column of ['alternatives', 'repetition_key', 'repetition_content']) {
        await schema.alterTable('leases').addColumn(column, 'text').execute();
      }
      await schema
        .createIndex('leases_by_repetition_key')
        .on('leases')
        .columns(['project_id', 'repetition_key'])
        .where(sql.ref('repetition_key'), 'is not', null)
        .execute();
      await schema
        .createIndex('leases_unsettled')
        .on('leases')
        .columns(['project_id', 'user_id'])
        .where(sql.ref('alternatives'), 'is not', null)
        .where(sql.ref('lease_id'), 'is', null)
        .execute();
    },
  };
}
