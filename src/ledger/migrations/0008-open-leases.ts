import { type Kysely, type Migration, sql } from 'kysely';
import type { Dialect } from '../connection.ts';

export const OPEN_LEASES = {
  name: 'leases_open_by_region',
  table: 'leases',
  columns: ['region', 'id', 'ends_at'],
  condition: "state = 'open'",
} as const;

/**
 * The open leases of a region, in the order in which they were recorded, without those that have ended: comparing with Blazar must not
 * take longer from year to year. On PostgreSQL it is there already where others use the ledger: see `buildAhead`.
 */
export function openLeases(dialect: Dialect): Migration {
  const { name, table, columns, condition } = OPEN_LEASES;
  return {
    async up(database: Kysely<unknown>) {
      if (dialect === 'postgresql') {
        const found = await sql<{ found: string | null }>`select to_regclass(${name})::text as found`.execute(
          database,
        );
        if (found.rows[0]?.found != null) {
          return;
        }
      }
      await database.schema
        .createIndex(name)
        .on(table)
        .columns([...columns])
        .where(sql<boolean>`${sql.raw(condition)}`)
        .execute();
    },
  };
}
