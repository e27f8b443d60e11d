/** Whether tables can be used that leases do not need. Imported only when it is asked: kysely's migrator takes a while to load. */
import { type Connection, describeConnection } from './connection.ts';
import type { Database } from './database.ts';
import { schemaState } from './migrations/index.ts';
import { missingRights } from './rights.ts';

/** What is wrong with the tables, or the rights on them; `undefined` = nothing. `optional`: as of `schemaState`. @throws LedgerUnavailableError */
export async function tableMistake(
  database: Database,
  connection: Connection,
  needed: Readonly<Record<string, readonly string[]>>,
  optional?: readonly string[],
): Promise<string | undefined> {
  const state = await schemaState(database, connection, optional);
  if (state.kind !== 'current') {
    return state.message;
  }
  const missing = database.dialect === 'postgresql' ? await missingRights(database, needed) : undefined;
  return missing && `${describeConnection(connection)}: ${missing}`;
}
