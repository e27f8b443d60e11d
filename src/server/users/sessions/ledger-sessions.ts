/** Sessions in the database of a configuration's ledger. Opened on first use: most services never need it. */
import { inTime, type Wait } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import { type Configuration, sectionOf } from '../../../enforcement/configuration.ts';
import { ledgerSection } from '../../../ledger/options.ts';
import { parseConnection } from '../../../ledger/storage/connection.ts';
import { usesLedger } from '../../configuration/start-checks.ts';
import type { SessionTable } from './session-table.ts';

/** Connections to PostgreSQL besides the ledger's: leases never wait for sessions. */
const CONNECTIONS = 2;

export class LedgerSessions {
  readonly #configuration: Configuration;
  readonly #logger: Logger;
  #opening: Promise<SessionTable | undefined> | undefined;
  #isClosed = false;

  constructor(configuration: Configuration, logger: Logger) {
    this.#configuration = configuration;
    this.#logger = logger;
  }

  /**
   * `undefined` = the configuration uses no ledger, or the ledger has no usable tables for sessions, which is
   * logged. Rejects while the database does not answer.
   */
  async store(wait: Wait): Promise<SessionTable | undefined> {
    if (this.#isClosed) {
      throw new LedgerUnavailableError('the configuration is no longer in use');
    }
    this.#opening ??= this.#open().catch((thrown: unknown) => {
      this.#opening = undefined;
      throw thrown;
    });
    return inTime(this.#opening, wait);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const table = await this.#opening?.catch(() => undefined);
    await table?.close();
  }

  async #open(): Promise<SessionTable | undefined> {
    const { connection: text, timeout } = sectionOf(this.#configuration, ledgerSection);
    const connection = parseConnection(text);
    if (connection === undefined || !(await usesLedger(this.#configuration))) {
      return undefined;
    }
    const [{ openDatabase }, { tableMistake }, { NEEDED_FOR_SESSIONS }, { SessionTable: Table }] =
      await Promise.all([
        import('../../../ledger/open.ts'),
        import('../../../ledger/storage/migrations/index.ts'),
        import('../../../ledger/storage/rights.ts'),
        import('./session-table.ts'),
      ]);
    const database = openDatabase(connection, { pool_size: CONNECTIONS, timeout });
    const mistake = await tableMistake(database, connection, NEEDED_FOR_SESSIONS, '0011-sessions').catch(
      async (thrown: unknown) => {
        await database.close();
        throw thrown;
      },
    );
    if (mistake === undefined) {
      return new Table(database);
    }
    await database.close();
    const message = 'sessions of the console are kept by this process alone, until the next reload';
    this.#logger.error({ error: mistake }, message);
    return undefined;
  }
}
