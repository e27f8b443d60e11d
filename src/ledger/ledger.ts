/** The ledger at work: which leases there are, what they take from limits that they share, and who has what left. */

import { type Deadline, type Wait, withinDeadline } from '../deadline.ts';
import { LedgerContentError, LedgerUnavailableError } from '../errors.ts';
import type { Clock } from '../filter/services.ts';
import { toInstant } from '../lease/dates.ts';
import type { Logger } from '../logger.ts';
import { CommitInDoubtError, type Database, rows, Undone, type Work } from './database.ts';
import { Doubts } from './doubts.ts';
import { LedgerBehindError, Position } from './position.ts';
import type { Author } from './posting.ts';
import { foresee, type LedgerRequest } from './prospect.ts';
import type { Refusal } from './reckoning.ts';
import { createStatements, type Statements } from './statements.ts';
import { type EndedLease, end, type Recording, record, takeBack, type Undo } from './transactions.ts';
import { suspendedError, Turn } from './turn.ts';

/** What is done in the ledger, for those who count it. */
export type LedgerOperation = 'check' | 'commit' | 'end' | 'undo' | 'reconcile' | 'budget' | 'read';

/** Is told of every transaction. */
export interface LedgerObserver {
  /** `refused`: a limit did not hold. `failed`: the ledger could not be read or written in time. */
  transacted(operation: LedgerOperation, outcome: 'done' | 'refused' | 'failed', seconds: number): void;
  /** How many refused leases may be recorded all the same, whenever that changes. */
  inDoubt?(commits: number): void;
  /** By how many seconds the system's clock is behind the last entry of a project, after each transaction; 0 = it is not. */
  clockBehind?(seconds: number): void;
}

export interface LedgerParts {
  readonly clock: Clock;
  /** In seconds, of one transaction. */
  readonly timeout: number;
  readonly observer: LedgerObserver | undefined;
  readonly logger?: Logger | undefined;
  /** Where commits in doubt are kept; `undefined` or empty = in memory alone. */
  readonly doubtFolder?: string | undefined;
}

/** What a transaction is, besides its work. */
export interface TransactionOptions<Result> {
  /** The one project that it locks: others do not wait for it. */
  readonly project?: string | undefined;
  readonly isRefused?: (result: Result) => boolean;
}

/** The system's clock is warned of when it is behind by so many microseconds, and again after as many milliseconds. */
const CLOCK_BEHIND = 5_000_000n;
const WARN_AGAIN = 60_000;

export class Ledger {
  readonly database: Database;
  readonly statements: Statements;
  readonly #parts: LedgerParts;
  readonly #position = new Position();
  readonly #doubts: Doubts;
  #id: string | undefined;
  /** Why the ledger must grant nothing, as long as it does not say so itself. */
  #suspending: string | undefined;
  #isSuspended = false;
  #warned = Number.NEGATIVE_INFINITY;

  constructor(database: Database, parts: LedgerParts) {
    this.database = database;
    this.statements = createStatements(database.queries);
    this.#parts = parts;
    this.#doubts = new Doubts({
      folder: parts.doubtFolder || undefined,
      logger: parts.logger,
      ledgerId: async () => this.#id ?? (await this.#readId()),
      takeBack: ({ undo, author }) => this.#takeBack(undo, author, UNBOUNDED),
      count: (doubts) => parts.observer?.inDoubt?.(doubts),
    });
    // A connection may lead to another server than the one before, or to another file.
    database.whenConnected = () => this.#position.verifyLatest(database.queries);
  }

  /** Settles what is in doubt since an earlier process, too. For a process that grants leases. */
  attend(): void {
    this.#doubts.open();
  }

  /** Microseconds of the epoch. */
  now(): bigint {
    return toInstant(this.#parts.clock.now()) ?? 0n;
  }

  /** What filters would refuse now, in their order. Nothing is recorded. @throws LedgerUnavailableError */
  async check(request: LedgerRequest, wait: Wait): Promise<readonly Refusal[]> {
    if (this.#isSuspended) {
      await this.#verifyGranting(wait);
    }
    const { reckoning, isRepeated } = await this.read(
      'check',
      () => foresee(this.statements, request, this.now()),
      wait,
    );
    const { refusal, warnings } = reckoning;
    return isRepeated ? [] : refusal === undefined ? warnings : [refusal, ...warnings];
  }

  /** Records a lease, if it still fits. `force`: also if it does not. @throws LedgerUnavailableError */
  commit(request: LedgerRequest, author: Author, wait: Wait, force = false): Promise<Recording> {
    return this.transact(
      author.operation === 'reconcile' ? 'reconcile' : 'commit',
      (turn) => record(this.statements, request, turn, author, force),
      wait,
      {
        project: request.identity.projectId,
        isRefused: ({ refusal }) => refusal !== undefined,
      },
    ).catch((thrown: unknown) => {
      if (thrown instanceof CommitInDoubtError) {
        // Whoever asked hears that it has failed.
        const { undo } = thrown.result as Recording;
        if (undo !== undefined) {
          this.#doubts.add({ undo, author: { ...author, operation: 'undo' } }, this.#id);
        }
      }
      throw thrown;
    });
  }

  /**
   * Takes back what a commit has recorded; resolves to whether it was still there. Where that can't be done now, it is done
   * as soon as it can. @throws LedgerUnavailableError
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
    return this.transact('undo', (turn) => takeBack(this.statements, undo, turn, author), wait, {
      project: undo.projectId,
    });
  }

  /** Ends a lease; resolves to whether it was open. @throws LedgerUnavailableError */
  end(ended: EndedLease, author: Author, wait: Wait): Promise<boolean> {
    return this.transact('end', (turn) => end(this.statements, ended, turn, author), wait, {
      project: ended.identity.projectId,
    });
  }

  /** Any other transaction. @throws LedgerUnavailableError */
  async transact<Result>(
    operation: LedgerOperation,
    work: (turn: Turn) => Work<Result | Undone<Result>>,
    wait: Wait,
    { project, isRefused = () => false }: TransactionOptions<Result> = {},
  ): Promise<Result> {
    const mayGrow = operation === 'commit';
    let turn: Turn | undefined;
    const begin = () => {
      turn = new Turn(this.statements, () => this.now(), this.#position, mayGrow);
      return attended(work(turn), turn);
    };
    const result = await this.#observed(
      operation,
      wait,
      (within) => this.database.transact(begin, within, project),
      isRefused,
    ).finally(() => {
      this.#id ??= turn?.ledgerId;
    });
    if (turn !== undefined) {
      this.#position.acknowledge(turn.locked);
      this.#lookAtClock(turn);
    }
    return result;
  }

  /** Any other look at it. @throws LedgerUnavailableError */
  read<Result>(operation: LedgerOperation, work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#observed(
      operation,
      wait,
      (within) => this.database.read(work, within),
      () => false,
    );
  }

  /**
   * Somebody has compared the ledger with what is there: it grants again where it had gone back, and its clock is the system's
   * again where that was ahead. @throws LedgerUnavailableError
   */
  async resume(wait: Wait): Promise<void> {
    const { queries } = this.database;
    const now = this.now();
    const resumed = queries
      .updateTable('ledger')
      .set((row) => ({ suspended: null, epoch: row('epoch', '+', 1n) }))
      .where('suspended', 'is not', null);
    const clocks = queries.updateTable('projects').set({ latest_at: now }).where('latest_at', '>', now);
    await this.transact(
      'reconcile',
      function* () {
        yield* rows(resumed.compile());
        yield* rows(clocks.compile());
      },
      wait,
    );
  }

  /** Why nothing is granted; `undefined` = it is. @throws LedgerUnavailableError */
  async suspension(wait: Wait): Promise<string | undefined> {
    const query = this.database.queries.selectFrom('ledger').select('suspended').compile();
    const [row] = await this.read('read', () => rows(query), wait);
    return row?.suspended ?? undefined;
  }

  async close(): Promise<void> {
    await this.#doubts.close();
    await this.database.close();
  }

  async #readId(): Promise<string> {
    const query = this.database.queries.selectFrom('ledger').select('id').compile();
    const [row] = await this.read('read', () => rows(query), UNBOUNDED);
    this.#id = row?.id ?? '';
    return this.#id;
  }

  async #verifyGranting(wait: Wait): Promise<void> {
    const reason = await this.suspension(wait);
    this.#isSuspended = reason !== undefined;
    if (reason !== undefined) {
      throw suspendedError(reason);
    }
  }

  /** Writes it down, so that every other process knows, and this one when it is started again. */
  async #suspend(reason: string): Promise<void> {
    this.#suspending = reason;
    this.#isSuspended = true;
    this.#position.forget();
    this.#parts.logger?.error(
      { reason },
      'nothing is granted: run blazar-enforcement ledger reconcile with the leases that Blazar has',
    );
    await this.#writeSuspension().catch(() => {});
  }

  async #writeSuspension(): Promise<void> {
    const suspended = this.#suspending;
    if (suspended !== undefined) {
      const query = this.database.queries
        .updateTable('ledger')
        .set({ suspended })
        .where('suspended', 'is', null);
      await withinDeadline(this.#parts.timeout, (deadline) =>
        this.database.transact(() => rows(query.compile()), deadline),
      );
      this.#suspending = undefined;
    }
  }

  #lookAtClock({ behind, locked }: Turn): void {
    if (locked.size === 0) {
      return;
    }
    const { observer, logger } = this.#parts;
    observer?.clockBehind?.(Number(behind) / 1e6);
    if (behind > CLOCK_BEHIND && performance.now() - this.#warned > WARN_AGAIN) {
      this.#warned = performance.now();
      logger?.warn(
        { seconds: Number(behind) / 1e6 },
        "the system's clock is behind the last entry of the ledger: what leases give back is reckoned from that entry on; ledger reconcile ends that when the clock is right",
      );
    }
  }

  async #observed<Result>(
    operation: LedgerOperation,
    wait: Wait,
    work: (within: Wait) => Promise<Result>,
    isRefused: (result: Result) => boolean,
  ): Promise<Result> {
    const { observer, timeout } = this.#parts;
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    try {
      // The database looks at the time itself: a timer for each transaction would cost as much as some of them take.
      await this.#writeSuspension();
      const result = await withinDeadline(timeout, (deadline) =>
        work(bothOf(wait, deadline)).catch((thrown: unknown) => {
          throw thrown === deadline.signal.reason ? tookTooLong(thrown) : thrown;
        }),
      );
      observer?.transacted(operation, isRefused(result) ? 'refused' : 'done', seconds());
      return result;
    } catch (thrown) {
      // What it can't keep is not its fault.
      observer?.transacted(operation, thrown instanceof LedgerContentError ? 'refused' : 'failed', seconds());
      if (thrown instanceof LedgerBehindError) {
        await this.#suspend(thrown.message);
      }
      throw thrown;
    }
  }
}

/** What is not written is not acknowledged. */
function* attended<Result>(work: Work<Result>, turn: Turn): Work<Result> {
  const result = yield* work;
  if (result instanceof Undone) {
    turn.locked.clear();
  }
  return result;
}

/** The timeout of the ledger bounds it. */
const UNBOUNDED = { signal: undefined, throwIfOver() {} };

/** Over when one of both is. The signal is made when somebody waits: most transactions on SQLite never do. */
function bothOf(wait: Wait, deadline: Deadline): Wait {
  let signal: AbortSignal | undefined;
  return {
    get signal() {
      signal ??= AbortSignal.any([deadline.signal, wait.signal].filter((one) => one !== undefined));
      return signal;
    },
    throwIfOver() {
      wait.throwIfOver();
      try {
        deadline.throwIfOver();
      } catch (thrown) {
        throw tookTooLong(thrown);
      }
    },
  };
}

function tookTooLong(cause: unknown): LedgerUnavailableError {
  return new LedgerUnavailableError('the transaction took too long', { cause });
}
