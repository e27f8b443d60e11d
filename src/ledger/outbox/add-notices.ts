/** Writes notices that are not part of another transaction. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import { messageOf, NOTICES, type Notice } from './notice.ts';
import { addMessages } from './statements.ts';

/**
 * Writes notices, unless `most` of them wait or are dead: a receiver that is away must not fill the database. Resolves to whether they
 * were written. @throws LedgerUnavailableError
 */
export function addNotices(
  ledger: Ledger,
  notices: readonly Notice[],
  most: number,
  wait: Wait,
): Promise<boolean> {
  const { queries } = ledger.database;
  const undelivered = sql<{ notices: bigint }>`
    select count(*) as notices from (
      select 1 from outbox where sender = ${NOTICES} and state in ('waiting', 'dead') limit ${most}
    ) as some`;
  return ledger.transact(
    'outbox',
    function* (): Work<boolean | Undone<boolean>> {
      const [found] = yield* rows(undelivered.compile(queries));
      if (Number(found?.notices ?? 0n) >= most) {
        return new Undone(false);
      }
      yield* addMessages(queries, notices.map(messageOf), ledger.now());
      return true;
    },
    wait,
  );
}
