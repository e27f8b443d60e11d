/** `ledger upgrade`: makes the tables, or brings them up to date. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { Command } from 'commander';
import { errorText, LedgerUnavailableError } from '../errors.ts';
import type { Connection } from '../ledger/connection.ts';
import { type ConfiguredLedger, configuredLedger, orUnavailable } from './ledger-access.ts';
import { onOneLine } from './output.ts';
import { addSourceFlags, type SourceFlags } from './sources.ts';

export function upgradeCommand(): Command {
  return addSourceFlags(
    new Command('upgrade').description(
      'Make the tables of [ledger] connection, or bring them up to date. Tables that are newer than this program stay as they are.',
    ),
  ).action(upgrade);
}

async function upgrade(flags: SourceFlags): Promise<void> {
  const configured = await configuredLedger(flags);
  const { connection } = configured;
  await orUnavailable(connection, async () => {
    await refuseNewer(configured);
    const { upgradeTables } = await import('../ledger/migrations/index.ts');
    const { describeConnection } = await import('../ledger/connection.ts');
    const applied = await upgradeTables(connection).catch(async (thrown: unknown) => {
      throw await explained(connection, thrown);
    });
    const what = applied.length === 0 ? 'is up to date' : `applied ${applied.join(', ')}`;
    process.stdout.write(`${onOneLine(`${describeConnection(connection)}: ${what}`)}\n`);
  });
}

/** Throws `ConfigurationError` for tables of a newer program, and for a place where none can be. */
async function refuseNewer({ connection, options }: ConfiguredLedger): Promise<void> {
  const { mistakeIn, misconfigured, openLedger } = await import('../ledger/open.ts');
  if (isNew(connection)) {
    const folder = dirname(connection.file);
    if (!existsSync(folder)) {
      throw misconfigured(`the folder ${folder} does not exist`);
    }
    return;
  }
  const { schemaState } = await import('../ledger/migrations/index.ts');
  const { ledger } = openLedger(options, { clock: { now: () => new Date() }, observer: undefined });
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

/** SQLite's own words for a place that the ledger can't be in. Source: SQLite docs, "Result and Error Codes". */
const NO_PLACE = /^SQLITE_(CANTOPEN|NOTADB|READONLY|PERM|AUTH)/;

async function explained(connection: Connection, thrown: unknown): Promise<unknown> {
  const { mistakeIn, misconfigured } = await import('../ledger/open.ts');
  const cause = thrown instanceof LedgerUnavailableError ? thrown.cause : thrown;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (connection.dialect === 'sqlite' && NO_PLACE.test(code)) {
    return misconfigured(`${connection.file} can not be written (${errorText(cause)})`);
  }
  return code.startsWith('SQLITE_')
    ? new LedgerUnavailableError(errorText(cause), { cause })
    : mistakeIn(connection, thrown);
}

function isNew(connection: Connection): connection is Extract<Connection, { dialect: 'sqlite' }> {
  return connection.dialect === 'sqlite' && !existsSync(connection.file);
}
