/** The ledger: leases, what they take from shared limits, and what is left. Runs every transaction. */

import { type Wait, waitFor, withinDeadline } from '../base/deadline.ts';
import { LedgerContentError, LedgerUnavailableError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { isTraced } from '../base/tracing.ts';
import type { Clock } from '../filter/services.ts';
import type { Refusal } from './accounting/charge-calculation.ts';
import { InDoubtCommits } from './in-doubt-commits.ts';
import type { LedgerRequest } from './ledger-request.ts';
import { type BudgetWatch, Crossings } from './outbox/crossings.ts';
import { LedgerBehindError, Position, Suspension, suspendedError } from './position.ts';
import { CommitInDoubtError, type Database, rows, Undone, type Work } from './storage/database.ts';
import type { Author } from './transactions/journal.ts';
import {
  type EndedLease,
  end,
  type Recording,
  record,
  takeBack,
  type Undo,
} from './transactions/lease-transactions.ts';
import type { CheckMemory } from './transactions/memory/check-memory.ts';
import { GroupMemory } from './transactions/memory/group-memory.ts';
import { recognisable } from './transactions/memory/project-memory.ts';
import { type LeasePreview, previewLease } from './transactions/preview.ts';
import { createStatements, type Statements } from './transactions/statements.ts';
import {
  FirstOf,
  LedgerClock,
  type LedgerObserver,
  type LedgerOperation,
  Transaction,
  tookTooLong,
  tracedTransaction,
} from './transactions/transaction.ts';

export interface LedgerParts {
  /** With `SYSTEM_CLOCK`, a ledger on PostgreSQL uses the clock of the database. */
  readonly clock: Clock;
  /** Of one transaction, in seconds. */
  readonly timeout: number;
  readonly observer: LedgerObserver | undefined;
  readonly logger?: Logger | undefined;
  /** The folder for commits in doubt; `undefined` or empty = they are kept in memory only. */
  readonly doubtFolder?: string | undefined;
  /** Notices about budgets and budget requests; `undefined` = none, at no cost. */
  readonly watch?: BudgetWatch | undefined;
}

interface TransactionOptions<Result> {
  /** The only project that it locks: other projects never wait for it. */
  readonly project?: string | undefined;
  readonly isRefused?: (result: Result) => boolean;
}

/**
 * A clock that is behind by more than this is logged, in microseconds; again after this many milliseconds.
 */
const CLOCK_BEHIND = 5_000_000n;
const WARN_AGAIN = 60_000;
/** How long a failed recording counts as a sign that the next one will fail, too, in milliseconds. */
const LATELY = 30_000;

export class Ledger {
  readonly database: Database;
  readonly statements: Statements;
  /** `undefined` = no notices about budgets. */
  readonly watch: BudgetWatch | undefined;
  readonly #parts: LedgerParts;
  readonly #clock: LedgerClock;
  readonly #position = new Position();
  readonly #doubts: InDoubtCommits;
  readonly #suspension: Suspension;
  /** Time of the last failed recording; `undefined` = none, or a transaction succeeded since. */
  #failedAt: number | undefined;
  #id: string | undefined;
  #warned = Number.NEGATIVE_INFINITY;

  constructor(database: Database, parts: LedgerParts) {
    this.database = database;
    const { watch } = parts;
    this.watch = watch;
    this.#clock = new LedgerClock(parts.clock, database.dialect);
    this.statements = recognisable(
      createStatements(
        database.queries,
        database.dialect,
        watch && watch.thresholds.length > 0
          ? new Crossings(database.queries, watch, () => this.now())
          : undefined,
        this.#clock.sql,
      ),
    );
    database.memory = () => new GroupMemory(this.statements);
    this.#parts = parts;
    this.#suspension = new Suspension(database, parts.timeout, parts.logger);
    this.#doubts = new InDoubtCommits({
      folder: parts.doubtFolder || undefined,
      logger: parts.logger,
      ledgerId: async () => this.#id ?? (await this.#readId()),
      takeBack: ({ undo, author }) => this.#takeBack(undo, author, waitFor(undefined)),
      count: (doubts) => parts.observer?.inDoubt?.(doubts),
    });
    // A new connection may reach another server or another file.
    database.whenConnected = () => this.#connected();
  }

  /**
   * Starts settling commits in doubt, including those of earlier processes. For processes that grant leases.
   */
  attend(): void {
    this.#doubts.open();
  }

  /** Microseconds of the epoch. */
  now(): bigint {
    return this.#clock.now();
  }

  /** Whether a transaction of this process has seen the project at this revision. */
  hasSeen(projectId: string, revision: bigint): boolean {
    return this.#position.hasSeen(projectId, revision);
  }

  /** Reads the time from the database, if the ledger uses its clock. @throws LedgerUnavailableError */
  async setClock(wait: Wait): Promise<void> {
    if (this.#clock.sql !== undefined) {
      await this.read('read', () => this.#askTime(), wait);
    }
  }

  /** The current refusals of the filters, in their order. Writes nothing. @throws LedgerUnavailableError */
  async check(request: LedgerRequest, wait: Wait, memory?: CheckMemory): Promise<readonly Refusal[]> {
    const { calculation, isRepeated } = await this.preview(request, wait, memory);
    const { refusal, warnings } = calculation;
    return isRepeated ? [] : refusal === undefined ? warnings : [refusal, ...warnings];
  }

  /** The result of recording a lease now. Writes nothing. @throws LedgerUnavailableError */
  async preview(request: LedgerRequest, wait: Wait, memory?: CheckMemory): Promise<LeasePreview> {
    if (this.#suspension.isLikely && memory?.isEmpty !== false) {
      const reason = await this.suspension(wait);
      if (reason !== undefined) {
        throw suspendedError(reason);
      }
    }
    if (memory === undefined) {
      return this.read('check', () => previewLease(this.statements, request, this.now()), wait);
    }
    const now = memory.now(() => this.now());
    return memory.run(
      this.statements,
      () => previewLease(this.statements, request, now),
      (work) => this.read('check', work, wait),
    );
  }

  /** Records a lease if it still fits; with `force` in any case. @throws LedgerUnavailableError */
  commit(request: LedgerRequest, author: Author, wait: Wait, force = false): Promise<Recording> {
    return this.transact(
      author.operation === 'reconcile' ? 'reconcile' : 'commit',
      (transaction) => record(this.statements, request, transaction, author, force),
      wait,
      {
        project: request.identity.projectId,
        isRefused: ({ refusal }) => refusal !== undefined,
      },
    ).catch((thrown: unknown) => {
      if (thrown instanceof CommitInDoubtError) {
        // The caller gets an error, so a recorded lease must be taken back.
        const { undo } = thrown.result as Recording;
        if (undo !== undefined) {
          this.#doubts.add({ undo, author: { ...author, operation: 'undo' } }, this.#id);
        }
      }
      throw thrown;
    });
  }

  /**
   * Takes back a recording; resolves to whether it still existed. If it fails, it is retried until it
   * succeeds. @throws LedgerUnavailableError
   */
  async takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    try {
      return await this.#takeBack(undo, author, wait);
    } catch (thrown) {
      this.#doubts.add({ undo, author }, this.#id);
      throw thrown;
    }
  }

  #takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    return this.transact(
      'undo',
      (transaction) => takeBack(this.statements, undo, transaction, author),
      wait,
      { project: undo.projectId },
    );
  }

  /** Ends a lease; resolves to whether it was open. @throws LedgerUnavailableError */
  end(ended: EndedLease, author: Author, wait: Wait): Promise<boolean> {
    return this.transact('end', (transaction) => end(this.statements, ended, transaction, author), wait, {
      project: ended.identity.projectId,
    });
  }

  /** Any other transaction that writes. @throws LedgerUnavailableError */
  async transact<Result>(
    operation: LedgerOperation,
    work: (transaction: Transaction) => Work<Result | Undone<Result>>,
    wait: Wait,
    { project, isRefused = notRefused }: TransactionOptions<Result> = {},
  ): Promise<Result> {
    const mayGrow = operation === 'commit';
    let transaction: Transaction | undefined;
    const clock = { now: () => this.now(), learn: (at: bigint) => this.#clock.learn(at) };
    const begin = () => {
      transaction = new Transaction(this.statements, clock, this.#position, mayGrow);
      return withoutUndone(work(transaction), transaction);
    };
    const result = await this.#traced(operation, wait, isRefused, (within, begins) =>
      this.database.transact(() => begins(begin), within, project),
    )
      .catch((thrown: unknown) => {
        if (mayGrow && thrown instanceof LedgerUnavailableError) {
          this.#failedAt = performance.now();
        }
        throw thrown;
      })
      .finally(() => {
        this.#id = transaction?.ledgerId ?? this.#id;
      });
    this.#failedAt = undefined;
    if (transaction !== undefined) {
      this.#position.acknowledge(transaction.locked);
      this.#observeClock(transaction);
    }
    return result;
  }

  /** Any other transaction that only reads. @throws LedgerUnavailableError */
  read<Result>(operation: LedgerOperation, work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#traced(operation, wait, notRefused, (within, begins) =>
      this.database.read(() => begins(work), within),
    );
  }

  /**
   * To be called after the ledger was compared with Blazar: a suspended ledger grants again, and entries with
   * future times from a fast clock no longer hold the ledger's clock back. @throws LedgerUnavailableError
   */
  async resume(wait: Wait): Promise<void> {
    const now = this.now();
    const clocks = this.database.queries
      .updateTable('projects')
      .set({ latest_at: now })
      .where('latest_at', '>', now);
    const suspension = this.#suspension;
    await this.transact(
      'reconcile',
      function* () {
        yield* suspension.clear();
        yield* rows(clocks.compile());
      },
      wait,
    );
  }

  /** Why no leases are granted; `undefined` = leases are granted. @throws LedgerUnavailableError */
  suspension(wait: Wait): Promise<string | undefined> {
    return this.read('read', () => this.#suspension.read(), wait);
  }

  /**
   * Whether leases can be recorded now, without writing anything. Considers the last recording of this
   * process, since a full disk or a read-only database still answers reads. @throws LedgerUnavailableError
   */
  async verifyGrants(wait: Wait): Promise<void> {
    const reason = await this.suspension(wait);
    if (reason !== undefined) {
      throw suspendedError(reason);
    }
    if (this.#failedAt !== undefined && performance.now() - this.#failedAt < LATELY) {
      throw new LedgerUnavailableError('the last lease could not be recorded');
    }
  }

  async close(): Promise<void> {
    await this.#doubts.close();
    await this.database.close();
  }

  *#connected(): Work<void> {
    yield* this.#position.verifyLatest(this.database.queries);
    yield* this.#askTime();
  }

  *#askTime(): Work<void> {
    const { sql } = this.#clock;
    if (sql !== undefined) {
      const [row] = yield* rows(this.database.queries.selectNoFrom(sql.as('now')).compile());
      if (row !== undefined) {
        this.#clock.learn(row.now);
      }
    }
  }

  async #readId(): Promise<string> {
    const query = this.database.queries.selectFrom('ledger').select('id').compile();
    const [row] = await this.read('read', () => rows(query), waitFor(undefined));
    this.#id = row?.id ?? '';
    return this.#id;
  }

  #observeClock({ behind, locked }: Transaction): void {
    if (locked.size === 0) {
      return;
    }
    const { observer, logger } = this.#parts;
    observer?.clockBehind?.(Number(behind) / 1e6);
    if (behind > CLOCK_BEHIND && performance.now() - this.#warned > WARN_AGAIN) {
      this.#warned = performance.now();
      logger?.warn(
        { seconds: Number(behind) / 1e6 },
        'the clock is behind the last entry of the ledger: what leases give back is counted from that entry on; once the clock is right, ledger reconcile ends that',
      );
    }
  }

  /** `run`: must call `begins` whenever the work begins. */
  #traced<Result>(
    operation: LedgerOperation,
    wait: Wait,
    isRefused: (result: Result) => boolean,
    run: (within: Wait, begins: <Begun>(begin: () => Begun) => Begun) => Promise<Result>,
  ): Promise<Result> {
    const observed = (begun?: () => void) =>
      this.#observed(operation, wait, isRefused, (within) =>
        run(within, (begin) => {
          begun?.();
          return begin();
        }),
      );
    return isTraced() ? tracedTransaction(operation, this.database.dialect, isRefused, observed) : observed();
  }

  async #observed<Result>(
    operation: LedgerOperation,
    wait: Wait,
    isRefused: (result: Result) => boolean,
    work: (within: Wait) => Promise<Result>,
  ): Promise<Result> {
    const { observer, timeout } = this.#parts;
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    try {
      await this.#suspension.write();
      // The database checks the deadline itself: a timer per transaction would cost as much as some
      // transactions.
      const result = await withinDeadline(timeout, (deadline) =>
        work(new FirstOf(wait, deadline)).catch((thrown: unknown) => {
          throw thrown === deadline.signal.reason ? tookTooLong(thrown) : thrown;
        }),
      );
      observer?.transacted(operation, isRefused(result) ? 'refused' : 'done', seconds());
      return result;
    } catch (thrown) {
      // A value that the ledger cannot store is an error of the caller, not a failure.
      observer?.transacted(operation, thrown instanceof LedgerContentError ? 'refused' : 'failed', seconds());
      if (thrown instanceof LedgerBehindError) {
        this.#position.forget();
        await this.#suspension.suspend(thrown.message);
      }
      throw thrown;
    }
  }
}

function notRefused(): boolean {
  return false;
}

/** Rolled-back transactions are not acknowledged. */
function* withoutUndone<Result>(work: Work<Result>, transaction: Transaction): Work<Result> {
  const result = yield* work;
  if (result instanceof Undone) {
    transaction.locked.clear();
  }
  return result;
}
