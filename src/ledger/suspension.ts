/**
 * A ledger that has lost leases, such as one restored from a backup, grants nothing until `ledger reconcile` has compared it with
 * Blazar. The mark is in the ledger itself, so that every process sees it, also after a restart.
 */
import { withinDeadline } from '../base/deadline.ts';
import { LedgerUnavailableError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { type Database, rows, type Work } from './storage/database.ts';

export class Suspension {
  readonly #database: Database;
  readonly #logger: Logger | undefined;
  /** In seconds, of one transaction. */
  readonly #timeout: number;
  /** A reason that the ledger does not hold yet. */
  #unwritten: string | undefined;
  /** Whether to look at the mark before a check: a check locks nothing, and would not see it. */
  #isLikely = false;

  constructor(database: Database, timeout: number, logger: Logger | undefined) {
    this.#database = database;
    this.#timeout = timeout;
    this.#logger = logger;
  }

  get isLikely(): boolean {
    return this.#isLikely;
  }

  /** Marks the ledger. Where that fails now, `write` does it before the next transaction. */
  async suspend(reason: string): Promise<void> {
    this.#unwritten = reason;
    this.#isLikely = true;
    this.#logger?.error(
      { reason },
      'nothing is granted: run blazar-enforcement ledger reconcile with the leases that Blazar has',
    );
    await this.write().catch(() => {});
  }

  /** Writes a mark that could not be written before. @throws LedgerUnavailableError */
  async write(): Promise<void> {
    const suspended = this.#unwritten;
    if (suspended !== undefined) {
      const query = this.#database.queries
        .updateTable('ledger')
        .set({ suspended })
        .where('suspended', 'is', null);
      await withinDeadline(this.#timeout, (deadline) =>
        this.#database.transact(() => rows(query.compile()), deadline),
      );
      this.#unwritten = undefined;
    }
  }

  /** The mark: why nothing is granted, or `undefined`. */
  *read(): Work<string | undefined> {
    const query = this.#database.queries.selectFrom('ledger').select('suspended').compile();
    const [row] = yield* rows(query);
    const reason = row?.suspended ?? undefined;
    this.#isLikely = reason !== undefined;
    return reason;
  }

  /** Removes the mark. A new epoch makes every process forget what the ledger had acknowledged before. */
  *clear(): Work<void> {
    const resumed = this.#database.queries
      .updateTable('ledger')
      .set((row) => ({ suspended: null, epoch: row('epoch', '+', 1n) }))
      .where('suspended', 'is not', null);
    yield* rows(resumed.compile());
  }
}

/** Why nothing is granted, and what to do about it. */
export function suspendedError(reason: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `nothing is granted: ${reason}; run blazar-enforcement ledger reconcile with the leases that Blazar has`,
  );
}
