/** Checks tables that leases do not need. Imported lazily, since kysely's migrator loads slowly. */
import { type Connection, describeConnection } from './connection.ts';
import type { Database } from './database.ts';
import { schemaState } from './migrations/index.ts';
import { OPTIONAL } from './migrations/versions.ts';
import { missingRights } from './rights.ts';

/**
 * What is wrong with the tables or their privileges; `undefined` = nothing. `migration`: the one that creates
 * them, if it is optional; other optional ones may still be missing. @throws LedgerUnavailableError
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
