import type { Kysely, Migration } from 'kysely';
import type { Dialect } from '../connection.ts';
import { addedOnce, type LargeIndex } from './large-index.ts';

export const OWNERS: LargeIndex = {
  name: 'leases_by_owner',
  table: 'leases',
  columns: ['region', 'user_id', 'id'],
  condition: undefined,
};

/**
 * Which regions there are, without reading their leases, and the leases of a user of one of them, in the order in which they were recorded.
 * And what leases have come to that are folded.
 */
export function growth(dialect: Dialect): Migration {
  return {
    async up(database: Kysely<unknown>) {
      await addedOnce(database, dialect, OWNERS);
      await database.schema
        .createTable('folds')
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('region', 'text', (column) => column.notNull())
        .addColumn('until', 'bigint', (column) => column.notNull())
        .addColumn('leases', 'bigint', (column) => column.notNull())
        .addColumn('entries', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('folds_primary_key', ['project_id', 'region', 'until'])
        .execute();
      await database.schema
        .createTable('folded_balances')
        .addColumn('project_id', 'text', (column) => column.notNull())
        .addColumn('account', 'text', (column) => column.notNull())
        .addColumn('amount', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('folded_balances_primary_key', ['project_id', 'account'])
        .execute();
    },
  };
}
