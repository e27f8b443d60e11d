/**
 * Leases that a round has recorded before any was asked for have the region of `[keystone]`. A Blazar without `os_region_name`, such as
 * that of Kolla-Ansible, asks without a region: then theirs was a guess, and they would be counted a second time.
 */
import { sql } from 'kysely';
import type { Wait } from '../deadline.ts';
import { rows } from './database.ts';
import type { Ledger } from './ledger.ts';
import { openLeasesOf } from './open-leases.ts';

/** Whether Blazar has never asked about a lease of the region. @throws LedgerUnavailableError */
export async function isGuessed(ledger: Ledger, region: string, wait: Wait): Promise<boolean> {
  const { queries } = ledger.database;
  const asked = queries
    .selectFrom('entries')
    .innerJoin('leases', 'leases.id', 'entries.lease')
    .select('entries.id')
    .where('leases.region', '=', region)
    .where('entries.operation', 'not in', ['reconcile', 'end-date'])
    .limit(1);
  // One of those that are open almost always tells: then nobody looks through all that have ended.
  const open = openLeasesOf(queries, region, ledger.now()).select('id');
  for (const query of [asked.where('leases.id', 'in', open), asked]) {
    if ((await ledger.read('read', () => rows(query.compile()), wait)).length > 0) {
      return false;
    }
  }
  return true;
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
