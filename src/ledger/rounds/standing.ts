/** Whether the ledger grants leases, and how it stands with Blazar, for people. */
import type { Wait } from '../../deadline.ts';
import { rows } from '../database/database.ts';
import type { Ledger } from '../ledger.ts';

export interface LedgerStanding {
  /** Why nothing is granted; `undefined` = leases are granted. */
  readonly suspended: string | undefined;
  /** When the last complete comparison with Blazar ended, in microseconds of the epoch; `undefined` = there was none. */
  readonly followedAt: bigint | undefined;
  /** The process that compares; `undefined` = none does now. */
  readonly holder: string | undefined;
  /** Now, by the ledger's clock, in microseconds of the epoch. */
  readonly now: bigint;
}

/** Reads two rows. @throws LedgerUnavailableError */
export function ledgerStanding(ledger: Ledger, wait: Wait): Promise<LedgerStanding> {
  const { queries } = ledger.database;
  const mark = queries.selectFrom('ledger').select('suspended').compile();
  const seat = queries
    .selectFrom('follower')
    .select(['holder', 'followed_at'])
    .where('id', '=', 1n)
    .compile();
  // Not `ledger.read`: a look is no use of the ledger, and must not count itself.
  return ledger.database.read(function* () {
    const [marked] = yield* rows(mark);
    const [follower] = yield* rows(seat);
    return {
      suspended: marked?.suspended ?? undefined,
      followedAt: follower?.followed_at ?? undefined,
      holder: follower?.holder ?? undefined,
      now: ledger.now(),
    };
  }, wait);
}
