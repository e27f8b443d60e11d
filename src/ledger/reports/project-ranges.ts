/** Ranges of projects, and parts of what a single project has, for work that must not hold all of it in memory. */

import type { Ledger } from '../ledger.ts';
import type { Snapshot } from '../storage/database.ts';

/** Projects after one and up to another, as the database sorts them; `undefined` = there is no bound. */
export interface ProjectRange {
  readonly after: string | undefined;
  readonly last: string | undefined;
  /** Into how many parts its rows are to be divided, so that each has about as many as were asked for: 1, unless a single project has more. */
  readonly parts: number;
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
    const counted = within(database.queries.selectFrom(table), { after, last })
      .select(({ fn }) => fn.countAll<bigint>().as('count'))
      .compile();
    let parts = 1;
    for await (const { count } of snapshot.stream(counted)) {
      // The last project of a range may end beyond its size.
      parts = Math.max(1, Math.ceil(Number(count) / (2 * size)));
    }
    yield { after, last, parts };
    if (last === undefined) {
      return;
    }
    after = last;
  }
}

/** Which of so many parts a name belongs to: always the same, and about as many names to each. */
export function partOf(name: string, parts: number): number {
  if (parts === 1) {
    return 0;
  }
  // FNV-1a. Databases sort names in ways that are not ours, so parts are no ranges.
  let hash = 0x811c9dc5;
  for (let index = 0; index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % parts;
}

/** Builders of queries of tables that say which project a row is of. */
interface Filtered {
  where(column: 'project_id', operator: '>' | '<=', value: string): this;
}

/** Only the rows of these projects. */
export function within<Query extends Filtered>(
  query: Query,
  { after, last }: Omit<ProjectRange, 'parts'>,
): Query {
  const later = after === undefined ? query : query.where('project_id', '>', after);
  return last === undefined ? later : later.where('project_id', '<=', last);
}
