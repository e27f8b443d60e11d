import type { Kysely, Migration } from 'kysely';
import type { Dialect } from '../connection.ts';
import { addedOnce, type LargeIndex } from './large-index.ts';

export const OPEN_LEASES: LargeIndex = {
  name: 'leases_open_by_region',
  table: 'leases',
  columns: ['region', 'id', 'ends_at'],
  condition: "state = 'open'",
};

/**
 * The open leases of a region, in the order in which they were recorded, without those that have ended: comparing with Blazar must not
 * take longer from year to year.
 */
export function openLeases(dialect: Dialect): Migration {
  return {
    async up(database: Kysely<unknown>) {
      await addedOnce(database, dialect, OPEN_LEASES);
    },
  };
}
