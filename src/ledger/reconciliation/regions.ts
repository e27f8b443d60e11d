/** The regions of Blazar in the ledger, and the correction of a guessed region. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import { CLUSTER_REGION } from './cluster-mark.ts';

/**
 * Sorted; includes regions whose leases are all folded. Costs one index lookup per region, whatever the
 * number of leases.
 */
export function* regionsOf({ database: { queries } }: Ledger): Work<string[]> {
  const query = sql<{ region: string }>`
    with recursive known(region) as (
      select min(region) from leases
      union all
      select (select min(region) from leases where leases.region > known.region)
      from known where known.region is not null
    )
    select region from known where region is not null
    union select region from folds
    order by region`;
  return (yield* rows(query.compile(queries))).map(({ region }) => region);
}

/** Regions of Blazar only. @throws LedgerUnavailableError */
export async function knownRegions(ledger: Ledger, wait: Wait): Promise<string[]> {
  const regions = await ledger.read('read', () => regionsOf(ledger), wait);
  return regions.filter((region) => region !== CLUSTER_REGION);
}

/**
 * Leases that a comparison records before the first request get the region of `[keystone]`. A Blazar without
 * `os_region_name`, such as Kolla-Ansible's, sends requests without a region. Then the region was a guess,
 * and these leases would be counted twice.
 *
 * Resolves to whether the region is such a guess: Blazar has never sent a request about a lease of it.
 * Regions with folded leases are never a guess, since their entries are gone. Usually one lease is enough to
 * decide; only for a guessed region all leases are read. @throws LedgerUnavailableError
 */
export async function isGuessed(ledger: Ledger, region: string, wait: Wait): Promise<boolean> {
  const told = sql`
    select 1 from leases where region = ${region} and exists (
      select 1 from entries where lease = leases.id and operation not in ('reconcile', 'end-date'))
    union all select 1 from folds where region = ${region}
    limit 1`;
  const found = await ledger.read('read', () => rows(told.compile(ledger.database.queries)), wait);
  return found.length === 0;
}

/**
 * Clears the region of its leases. A lease that was requested without region since then loses its id, and is
 * released like a missing one.
 */
export function withdrawRegion(ledger: Ledger, region: string, wait: Wait): Promise<void> {
  const { queries } = ledger.database;
  const twice = queries
    .updateTable('leases')
    .set({ lease_id: null })
    .where('region', '=', region)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('leases as other')
          .select('other.id')
          .where('other.region', '=', '')
          .whereRef('other.project_id', '=', 'leases.project_id')
          .whereRef('other.lease_id', '=', 'leases.lease_id'),
      ),
    );
  const all = queries
    .updateTable('leases')
    .set({ region: '', revision: sql<bigint>`revision + 1` })
    .where('region', '=', region);
  return ledger.transact(
    'reconcile',
    function* () {
      yield* rows(twice.compile());
      yield* rows(all.compile());
    },
    wait,
  );
}
