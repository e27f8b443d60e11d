/** PostgreSQL for migrations: kysely runs the queries itself. */
import { PostgresDialect } from 'kysely';
import pg from 'pg';
import { LedgerUnavailableError } from '../../errors.ts';
import { isTlsRefusal } from '../postgres-queries.ts';
import { postgresPlace } from '../postgres-settings.ts';

export function postgresDialect(url: string): PostgresDialect {
  return new PostgresDialect({
    pool: async () => {
      const { config, attempts } = postgresPlace(url);
      for (let refused = 0; ; refused += 1) {
        const ssl = attempts[refused] ?? false;
        const pool = new pg.Pool({ connectionTimeoutMillis: 10_000, ...config, ssl, max: 1 });
        pool.on('error', () => {});
        try {
          (await pool.connect()).release();
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
