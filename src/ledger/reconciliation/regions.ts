/** The regions of Blazar that the ledger has leases of, and a region that was a guess. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import { CLUSTER_REGION } from './cluster-mark.ts';

/** Sorted; with those of which all leases are folded. Costs a look into an index for each region, however many leases there are. */
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

/** Of Blazar only. @throws LedgerUnavailableError */
export async function knownRegions(ledger: Ledger, wait: Wait): Promise<string[]> {
  const regions = await ledger.read('read', () => regionsOf(ledger), wait);
  return regions.filter((region) => region !== CLUSTER_REGION);
}

/**
 * Leases that a comparison has recorded before any was asked for have the region of `[keystone]`. A Blazar without `os_region_name`, such as
 * that of Kolla-Ansible, asks without a region: then theirs was a guess, and they would be counted a second time.
 *
 * Whether Blazar has never asked about a lease of the region. Leases that are folded do not tell: then it is none. Almost any lease tells: only
 * where the region is a guess all of its leases are looked at. @throws LedgerUnavailableError
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

/** Takes the region from its leases. One that was asked for since loses its id, and is released as one that is not there. */
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
