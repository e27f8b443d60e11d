/** Whether decisions can be kept in a database. */
import { type Connection, describeConnection } from '../../ledger/database/connection.ts';
import type { Database } from '../../ledger/database/database.ts';
import { missingRights, NEEDED_FOR_DECISIONS } from '../../ledger/database/rights.ts';
import { schemaState } from '../../ledger/migrations/index.ts';

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
