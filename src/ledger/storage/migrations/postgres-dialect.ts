/** PostgreSQL for migrations: kysely runs the queries. */
import { PostgresAdapter, PostgresDialect } from 'kysely';
import pg from 'pg';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import { requireServer } from '../postgres/pool.ts';
import { isTlsRefusal } from '../postgres/queries.ts';
import { postgresPlace } from '../postgres/settings.ts';

/** One for the work, one for the lock of the upgrade. */
const CONNECTIONS = 2;

export function postgresDialect(url: string): PostgresDialect {
  return new UnlockedDialect({
    pool: async () => {
      const { config, attempts, given } = postgresPlace(url);
      const options = given.map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, '\\$&')}`);
      // Without options, a pooler need not support the parameter.
      const withOptions = options.length === 0 ? config : { ...config, options: options.join(' ') };
      for (let refused = 0; ; refused += 1) {
        const ssl = attempts[refused] ?? false;
        const pool = new pg.Pool({ connectionTimeoutMillis: 10_000, ...withOptions, ssl, max: CONNECTIONS });
        pool.on('error', () => {});
        // For a connection in use, the failed query reports the error.
        pool.on('connect', (client) => client.on('error', () => {}));
        try {
          const client = await pool.connect();
          try {
            if (options.length > 0) {
              await requireServer(client);
            }
          } finally {
            client.release();
          }
          return pool;
        } catch (thrown) {
          await pool.end();
          if (
            refused + 1 >= attempts.length ||
            !isTlsRefusal(new LedgerUnavailableError('', { cause: thrown }))
          ) {
            throw thrown;
          }
        }
      }
    },
  });
}

/** kysely would lock in the session: a pooler may lock in one session and unlock in another. See `alone`. */
class UnlockedAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

class UnlockedDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new UnlockedAdapter();
  }
}
