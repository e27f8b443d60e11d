/** What keeps the parts of a group of transactions apart. */
import { CompiledQuery } from 'kysely';

export const SAVEPOINT = CompiledQuery.raw('SAVEPOINT part');
export const RELEASE = CompiledQuery.raw('RELEASE SAVEPOINT part');
export const ROLLBACK = CompiledQuery.raw('ROLLBACK TO SAVEPOINT part');

const ALL: ReadonlySet<CompiledQuery> = new Set([SAVEPOINT, RELEASE, ROLLBACK]);

/** Whether it is one of these, which return no rows and do nothing outside of a transaction. */
export function isSavepointStep(query: CompiledQuery): boolean {
  return ALL.has(query);
}
