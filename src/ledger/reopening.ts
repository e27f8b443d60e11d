/** Reopens leases that were ended too early, by a clock that was ahead. */
import { alternativesOf, heldBy } from './alternatives.ts';
import { rows, type Work } from './database/database.ts';
import { type Author, balancesOf, post } from './posting.ts';
import type { Statements } from './statements.ts';
import type { Moment } from './turn.ts';

/**
 * Reopens leases that ended by date although their end is still to come. An end that was reported while the clock was ahead looks the
 * same, and such a lease counts until its end date, too. Needed only when the clock is behind the last entry. Returns whether there were any.
 */
export function* reopened(
  statements: Statements,
  project_id: string,
  { now, latest }: Moment,
  author: Author,
): Work<boolean> {
  if (latest <= now) {
    return false;
  }
  const early = yield* rows(statements.endedEarly({ project_id, now }));
  for (const row of early) {
    const { id } = row;
    const deltas = heldBy(alternativesOf(row));
    const balances = yield* balancesOf(statements, project_id, new Set(deltas.keys()));
    yield* rows(statements.reopen({ id }));
    yield* post(statements, { project_id, at: latest, balances, author }, [
      { lease: id, operation: 'reopen', deltas },
    ]);
  }
  return early.length > 0;
}
