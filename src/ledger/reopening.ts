/** Leases whose end was noticed by a clock that was ahead: an end by date is no fact, and it is taken back where it has not come. */
import { alternativesOf, heldBy } from './alternatives.ts';
import { rows, type Work } from './database.ts';
import { type Author, balancesOf, post } from './posting.ts';
import type { Statements } from './statements.ts';
import type { Moment } from './turn.ts';

/**
 * Opens those again whose date is still to come. An end that was reported while the clock was ahead looks the same, and counts until
 * its date, too. Looked for only where the clock is behind the last entry: ends are noticed at entries.
 */
export function* reopened(
  statements: Statements,
  project_id: string,
  { now, latest }: Moment,
  author: Author,
): Work<void> {
  if (latest <= now) {
    return;
  }
  for (const row of yield* rows(statements.endedEarly({ project_id, now }))) {
    const { id } = row;
    const deltas = heldBy(alternativesOf(row));
    const balances = yield* balancesOf(statements, project_id, new Set(deltas.keys()));
    yield* rows(statements.reopen({ id }));
    yield* post(statements, { project_id, at: latest, balances, author }, [
      { lease: id, operation: 'reopen', deltas },
    ]);
  }
}
