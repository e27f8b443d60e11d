import { type Kysely, sql } from 'kysely';
import type { Instant } from '../../lease/dates.ts';
import type { LeaseState, Tables } from '../database/schema.ts';

/**
 * The states of leases, to compare with. They are no parameters: SQLite has an index of open leases only, and would build a query again each
 * time that a parameter says whether it has what is asked for.
 */
export const OPEN = sql.lit<LeaseState>('open');
export const ENDED = sql.lit<LeaseState>('ended');

/** The pending and active leases of a region. */
export function openLeasesOf(queries: Kysely<Tables>, region: string, now: Instant) {
  return queries
    .selectFrom('leases')
    .where('region', '=', region)
    .where('state', '=', OPEN)
    .where('ends_at', '>', now);
}
