/** Ranges of projects, for work that must not hold all projects in memory. */
import type { Snapshot } from './database.ts';
import type { Ledger } from './ledger.ts';

/** Projects after one and up to another, as the database sorts them; `undefined` = there is no bound. */
export interface ProjectRange {
  readonly after: string | undefined;
  readonly last: string | undefined;
}

/**
 * Together they have all projects there can be, also those without a row in the table. Each has about `size` rows of the table: more where a
 * single project has more.
 */
export async function* projectRanges(
  { database }: Ledger,
  snapshot: Snapshot,
  table: 'accounts' | 'budgets',
  size: number,
): AsyncGenerator<ProjectRange> {
  let after: string | undefined;
  for (;;) {
    let query = database.queries.selectFrom(table).select('project_id');
    if (after !== undefined) {
      query = query.where('project_id', '>', after);
    }
    const bound = query.orderBy('project_id').offset(size).limit(1).compile();
    let last: string | undefined;
    for await (const { project_id } of snapshot.stream(bound)) {
      last = project_id;
    }
    yield { after, last };
    if (last === undefined) {
      return;
    }
    after = last;
  }
}

/** Builders of queries of tables that say which project a row is of. */
interface Filtered {
  where(column: 'project_id', operator: '>' | '<=', value: string): this;
}

/** Only the rows of these projects. */
export function within<Query extends Filtered>(query: Query, { after, last }: ProjectRange): Query {
  const later = after === undefined ? query : query.where('project_id', '>', after);
  return last === undefined ? later : later.where('project_id', '<=', last);
}
