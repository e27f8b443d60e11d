/** Creates or upgrades the tables of a ledger. Needs no filters, and no existing ledger. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { createFile } from '../base/create-file.ts';
import { systemErrorText } from '../config/read-file.ts';
import { SYSTEM_CLOCK } from '../filter/services.ts';
import { connectionOf, misconfigured, mistakeIn, openLedger } from './open.ts';
import type { LedgerSettings } from './options.ts';
import type { Connection } from './storage/connection.ts';
import { schemaState, upgradeTables } from './storage/migrations/index.ts';

/**
 * Resolves to the names of the applied migrations; empty = up to date. Creates the file of a SQLite ledger.
 * Throws `ConfigurationError` for tables of a newer version, which are not changed, and for an unusable
 * location. @throws LedgerUnavailableError
 */
export async function upgradeLedger(settings: LedgerSettings): Promise<string[]> {
  const connection = connectionOf(settings);
  if (connection.dialect === 'sqlite' && !existsSync(connection.file)) {
    const folder = dirname(connection.file);
    if (!existsSync(folder)) {
      throw misconfigured(`the folder ${folder} does not exist`);
    }
    try {
      // SQLite would make it readable by everyone. Its other files get the mode and the owner of this one.
      createFile(connection.file);
    } catch (thrown) {
      throw misconfigured(`${connection.file} cannot be written (${systemErrorText(thrown)})`);
    }
  } else {
    await refuseNewer(connection, settings);
  }
  return upgradeTables(connection).catch((thrown: unknown) => {
    throw mistakeIn(connection, thrown);
  });
}

async function refuseNewer(connection: Connection, settings: LedgerSettings): Promise<void> {
  const { ledger } = openLedger(settings, { clock: SYSTEM_CLOCK, observer: undefined });
  try {
    const state = await schemaState(ledger.database, connection).catch((thrown: unknown) => {
      throw mistakeIn(connection, thrown);
    });
    if (state.kind === 'newer') {
      throw misconfigured(state.message);
    }
  } finally {
    await ledger.close();
  }
}
