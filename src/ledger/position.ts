/**
 * Detects a ledger that has lost granted leases, because a lagging standby was promoted or a backup was
 * restored. Each project counts its transactions, and this process remembers the counts that it received with
 * commits.
 */

import type { Kysely } from 'kysely';
import { withinDeadline } from '../base/deadline.ts';
import { LedgerUnavailableError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { type Database, rows, type Work } from './storage/database.ts';
import type { Tables } from './storage/schema.ts';

/** The ledger has lost acknowledged transactions. */
export class LedgerBehindError extends LedgerUnavailableError {}

const WENT_BACK = 'the ledger has gone back: it does not know of leases that it had acknowledged';

/** Number of remembered projects: the most recently changed ones. */
const REMEMBERED = 10_000;
/**
 * Number of projects checked on a new connection. A ledger always loses its latest transactions, so the most
 * recently acknowledged ones are enough: as many as connections can commit at once.
 */
const LOOKED_UP = 64;

/** The current row of the ledger itself. */
interface Current {
  readonly ledger: string | null;
  readonly epoch: bigint | null;
}

export class Position {
  readonly #revisions = new Map<string, bigint>();
  #current: Current | undefined;

  /** To be called after a commit. */
  acknowledge(locked: ReadonlyMap<string, bigint>): void {
    for (const [projectId, revision] of locked) {
      const known = this.#revisions.get(projectId) ?? 0n;
      this.#revisions.delete(projectId);
      this.#revisions.set(projectId, revision > known ? revision : known);
    }
    for (const projectId of this.#revisions.keys()) {
      if (this.#revisions.size <= REMEMBERED) {
        break;
      }
      this.#revisions.delete(projectId);
    }
  }

  hasSeen(projectId: string, revision: bigint): boolean {
    return (this.#revisions.get(projectId) ?? 0n) >= revision;
  }

  /** `revision`: the count including the current transaction. @throws LedgerBehindError */
  verify(projectId: string, revision: bigint, current: Current): void {
    this.#enter(current);
    const known = this.#revisions.get(projectId);
    if (known !== undefined && revision <= known) {
      throw new LedgerBehindError(WENT_BACK);
    }
  }

  /**
   * Checks the latest acknowledged counts on a new connection, which may reach another server.
   * @throws LedgerBehindError
   */
  *verifyLatest(queries: Kysely<Tables>): Work<void> {
    if (this.#revisions.size === 0) {
      return;
    }
    const latest = [...this.#revisions.keys()].slice(-LOOKED_UP);
    const known = new Map(latest.map((projectId) => [projectId, this.#revisions.get(projectId) ?? 0n]));
    const [current] = yield* rows(queries.selectFrom('ledger').select(['id as ledger', 'epoch']).compile());
    this.#enter(current ?? { ledger: null, epoch: null });
    if (this.#revisions.size === 0) {
      return;
    }
    const query = queries
      .selectFrom('projects')
      .select(['project_id', 'revision'])
      .where('project_id', 'in', latest);
    const found = new Map((yield* rows(query.compile())).map((row) => [row.project_id, row.revision]));
    for (const [projectId, revision] of known) {
      if ((found.get(projectId) ?? 0n) < revision) {
        throw new LedgerBehindError(WENT_BACK);
      }
    }
  }

  forget(): void {
    this.#revisions.clear();
  }

  /**
   * A new epoch means that `ledger reconcile` has accepted the ledger as it is: earlier counts are dropped.
   * @throws LedgerBehindError
   */
  #enter({ ledger, epoch }: Current): void {
    const known = this.#current;
    if (known !== undefined && known.ledger !== ledger && this.#revisions.size > 0) {
      // Its counts say nothing about the leases of this one.
      throw new LedgerBehindError(WENT_BACK);
    }
    if (known !== undefined && (known.epoch ?? 0n) !== (epoch ?? 0n)) {
      this.forget();
    }
    this.#current = { ledger, epoch };
  }
}

export class Suspension {
  readonly #database: Database;
  readonly #logger: Logger | undefined;
  /** Of one transaction, in seconds. */
  readonly #timeout: number;
  /** A reason that is not written to the ledger yet. */
  #unwritten: string | undefined;
  /** Whether to read the mark before a check: checks lock nothing, and would not see it. */
  #isLikely = false;

  constructor(database: Database, timeout: number, logger: Logger | undefined) {
    this.#database = database;
    this.#timeout = timeout;
    this.#logger = logger;
  }

  get isLikely(): boolean {
    return this.#isLikely;
  }

  /** Marks the ledger. If that fails, `write` retries before the next transaction. */
  async suspend(reason: string): Promise<void> {
    this.#unwritten = reason;
    this.#isLikely = true;
    this.#logger?.error(
      { reason },
      'nothing is granted: run blazar-enforcement ledger reconcile with the leases that Blazar has',
    );
    await this.write().catch(() => {});
  }

  /** Writes a mark that could not be written earlier. @throws LedgerUnavailableError */
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

  /** Removes the mark. A new epoch makes all processes drop the counts that they remember. */
  *clear(): Work<void> {
    const resumed = this.#database.queries
      .updateTable('ledger')
      .set((row) => ({ suspended: null, epoch: row('epoch', '+', 1n) }))
      .where('suspended', 'is not', null);
    yield* rows(resumed.compile());
  }
}

/** The error for a suspended ledger, with the reason and the remedy. */
export function suspendedError(reason: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `nothing is granted: ${reason}; run blazar-enforcement ledger reconcile with the leases that Blazar has`,
  );
}
