/** The regions of Blazar that the ledger has leases of, and a region that was a guess. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import { isAmong } from '../storage/query-parts.ts';
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

/** Leases of all regions that are looked at in one piece. */
const PIECE = 2000;

/**
 * Leases that a comparison has recorded before any was asked for have the region of `[keystone]`. A Blazar without `os_region_name`, such as
 * that of Kolla-Ansible, asks without a region: then theirs was a guess, and they would be counted a second time.
 *
 * Whether Blazar has never asked about a lease of the region. The newest are looked at first, a piece at a time: one of them almost always tells.
 * Leases that are folded do not tell: then it is none.
 * @throws LedgerUnavailableError
 */
export async function isGuessed(ledger: Ledger, region: string, wait: Wait): Promise<boolean> {
  let before: bigint | undefined;
  for (;;) {
    const last = before;
    const { isAsked, lowest } = await ledger.read('read', () => piece(ledger, region, last), wait);
    if (isAsked) {
      return false;
    }
    if (lowest === undefined) {
      break;
    }
    before = lowest;
  }
  const folded = ledger.database.queries
    .selectFrom('folds')
    .select('region')
    .where('region', '=', region)
    .limit(1);
  return (await ledger.read('read', () => rows(folded.compile()), wait)).length === 0;
}

/** `lowest`: the last lease that was looked at; `undefined` = there are no more. */
function* piece(
  { database: { queries, dialect } }: Ledger,
  region: string,
  before: bigint | undefined,
): Work<{ isAsked: boolean; lowest: bigint | undefined }> {
  let looked = queries.selectFrom('leases').select(['id', 'region']);
  if (before !== undefined) {
    looked = looked.where('id', '<', before);
  }
  const found = yield* rows(looked.orderBy('id', 'desc').limit(PIECE).compile());
  const ids = found.filter((lease) => lease.region === region).map(({ id }) => id);
  const asked = queries
    .selectFrom('entries')
    .select('id')
    .where(isAmong(dialect, 'lease', ids))
    .where('operation', 'not in', ['reconcile', 'end-date'])
    .limit(1);
  const isAsked = (yield* rows(asked.compile())).length > 0;
  return { isAsked, lowest: found.length < PIECE ? undefined : found.at(-1)?.id };
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
