import { type Kysely, sql } from 'kysely';
import type { Instant } from '../lease/dates.ts';
import type { LeaseState, Tables } from './schema.ts';

/** The pending and active leases of a region. The state is no parameter: SQLite would not see that an index of open leases has them. */
export function openLeasesOf(queries: Kysely<Tables>, region: string, now: Instant) {
  return queries
    .selectFrom('leases')
    .where('region', '=', region)
    .where('state', '=', sql.lit<LeaseState>('open'))
    .where('ends_at', '>', now);
}
