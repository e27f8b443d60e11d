/** Whether decisions can be kept in a database. */
import { type Connection, describeConnection } from '../../ledger/storage/connection.ts';
import type { Database } from '../../ledger/storage/database.ts';
import { schemaState } from '../../ledger/storage/migrations/index.ts';
import { missingRights, NEEDED_FOR_DECISIONS } from '../../ledger/storage/rights.ts';

/** What is wrong with the tables, or the rights on them; `undefined` = nothing. @throws LedgerUnavailableError */
export async function schemaMistake(database: Database, connection: Connection): Promise<string | undefined> {
  const state = await schemaState(database, connection);
  if (state.kind !== 'current') {
    return state.message;
  }
  const missing =
    database.dialect === 'postgresql' ? await missingRights(database, NEEDED_FOR_DECISIONS) : undefined;
  return missing && `${describeConnection(connection)}: ${missing}`;
}
