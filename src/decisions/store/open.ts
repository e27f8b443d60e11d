/** Opens the decision store in the ledger's database, on connections that leases never wait for. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Wait, withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { LedgerSettings } from '../../ledger/options.ts';
import { type Connection, describeConnection, parseConnection } from '../../ledger/storage/connection.ts';
import type { Database } from '../../ledger/storage/database.ts';
import type { DecisionTarget } from './contract.ts';

/** One writes, one reads. */
const CONNECTIONS = 2;

/** Time limit for starting a thread on a busy machine, in seconds. */
const STARTING = 30;

interface OpenedTarget {
  readonly target: DecisionTarget;
  /**
   * What is wrong with the tables or their privileges; `undefined` = nothing. @throws LedgerUnavailableError
   */
  verify(): Promise<string | undefined>;
}

/**
 * For a valid `[ledger] connection`. Connects on first use. Throws an `Error` whose message completes "cannot
 * be used: …".
 */
export async function openTarget(
  settings: Pick<LedgerSettings, 'connection' | 'timeout'>,
): Promise<OpenedTarget> {
  const connection = parseConnection(settings.connection);
  if (connection === undefined) {
    throw new Error('no such database');
  }
  // In containers, processes of one host may have the same process id.
  const replica = `${hostname()}/${process.pid}/${randomUUID().slice(0, 8)}`;
  return connection.dialect === 'sqlite'
    ? inFile(connection.file, replica, settings.timeout)
    : onServer(connection, replica, settings.timeout);
}

async function inFile(file: string, replica: string, timeout: number): Promise<OpenedTarget> {
  const { DecisionThread } = await import('./thread.ts');
  const target = new DecisionThread({ file, replica }, timeout);
  return {
    target,
    verify: () => withinDeadline(Math.max(timeout, STARTING), (wait: Wait) => target.verify(wait)),
  };
}

async function onServer(
  connection: Connection & { readonly dialect: 'postgresql' },
  replica: string,
  timeout: number,
): Promise<OpenedTarget> {
  const [{ PostgresDatabase }, { DecisionTable }] = await Promise.all([
    import('../../ledger/storage/postgres/postgres.ts'),
    import('./table.ts'),
  ]);
  try {
    const database = new PostgresDatabase(connection.url, { poolSize: CONNECTIONS, timeout });
    return {
      target: new DecisionTable(database, replica),
      verify: () => schemaMistake(database, connection),
    };
  } catch (thrown) {
    throw new Error(`${describeConnection(connection)}: ${errorText(thrown)}`);
  }
}

/**
 * What is wrong with the tables or their privileges; `undefined` = nothing. @throws LedgerUnavailableError
 */
export async function schemaMistake(database: Database, connection: Connection): Promise<string | undefined> {
  const { tableMistake } = await import('../../ledger/storage/migrations/index.ts');
  const { NEEDED_FOR_DECISIONS } = await import('../../ledger/storage/rights.ts');
  return tableMistake(database, connection, NEEDED_FOR_DECISIONS);
}
