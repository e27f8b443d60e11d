/** Indexes of tables that may be large. On PostgreSQL they are built ahead of their migration: see `buildAhead`. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../connection.ts';

export interface LargeIndex {
  readonly name: string;
  readonly table: string;
  readonly columns: readonly string[];
  /** Which rows it has; `undefined` = all. */
  readonly condition: string | undefined;
}

/** Builds it unless it is there. */
export async function addedOnce(
  database: Kysely<unknown>,
  dialect: Dialect,
  { name, table, columns, condition }: LargeIndex,
): Promise<void> {
  if (dialect === 'postgresql') {
    const found = await sql<{ found: string | null }>`select to_regclass(${name})::text as found`.execute(
      database,
    );
    if (found.rows[0]?.found != null) {
      return;
    }
  }
  const index = database.schema
    .createIndex(name)
    .on(table)
    .columns([...columns]);
  await (condition === undefined ? index : index.where(sql<boolean>`${sql.raw(condition)}`)).execute();
}
