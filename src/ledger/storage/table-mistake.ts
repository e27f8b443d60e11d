/** Whether tables can be used that leases do not need. Imported only when it is asked: kysely's migrator takes a while to load. */
import { type Connection, describeConnection } from './connection.ts';
import type { Database } from './database.ts';
import { schemaState } from './migrations/index.ts';
import { OPTIONAL } from './migrations/versions.ts';
import { missingRights } from './rights.ts';

/**
 * What is wrong with the tables, or the rights on them; `undefined` = nothing. `migration`: the one that makes
 * them, if leases need it not; others may still be missing. @throws LedgerUnavailableError
 */
export async function tableMistake(
  database: Database,
  connection: Connection,
  needed: Readonly<Record<string, readonly string[]>>,
  migration?: string,
): Promise<string | undefined> {
  const state = await schemaState(
    database,
    connection,
    OPTIONAL.filter((one) => one !== migration),
  );
  if (state.kind !== 'current') {
    return state.message;
  }
  const missing = database.dialect === 'postgresql' ? await missingRights(database, needed) : undefined;
  return missing && `${describeConnection(connection)}: ${missing}`;
}
