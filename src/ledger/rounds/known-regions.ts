/** The regions that the ledger has leases of. */
import { sql } from 'kysely';
import { rows, type Work } from '../database/database.ts';
import type { Ledger } from '../ledger.ts';

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
