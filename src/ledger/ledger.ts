/** The ledger at work: which leases there are, what they take from limits that they share, and who has what left. */
import type { Clock } from '../base-filter.ts';
import { toInstant } from '../dates.ts';
import { type Deadline, type Wait, withinDeadline } from '../deadline.ts';
import { LedgerUnavailableError } from '../errors.ts';
import { CommitInDoubtError, type Database, type Undone, type Work } from './database.ts';
import type { Author } from './posting.ts';
import { foresee, type LedgerRequest } from './prospect.ts';
import type { Refusal } from './reckoning.ts';
import { createStatements, type Statements } from './statements.ts';
import { type EndedLease, end, type Recording, record, takeBack, type Undo } from './transactions.ts';

/** What is done in the ledger, for those who count it. */
export type LedgerOperation = 'check' | 'commit' | 'end' | 'undo' | 'reconcile' | 'budget' | 'read';

/** Is told of every transaction. */
export interface LedgerObserver {
  /** `refused`: a limit did not hold. `failed`: the ledger could not be read or written in time. */
  transacted(operation: LedgerOperation, outcome: 'done' | 'refused' | 'failed', seconds: number): void;
}

export interface LedgerParts {
  readonly clock: Clock;
  /** In seconds, of one transaction. */
  readonly timeout: number;
  readonly observer: LedgerObserver | undefined;
}

export class Ledger {
  readonly database: Database;
  readonly statements: Statements;
  readonly #parts: LedgerParts;

  constructor(database: Database, parts: LedgerParts) {
    this.database = database;
    this.statements = createStatements(database.queries);
    this.#parts = parts;
  }

  /** Microseconds of the epoch. */
  now(): bigint {
    return toInstant(this.#parts.clock.now()) ?? 0n;
  }

  /** What filters would refuse now, in their order. Nothing is recorded. @throws LedgerUnavailableError */
  async check(request: LedgerRequest, wait: Wait): Promise<readonly Refusal[]> {
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
      () => record(this.statements, request, () => this.now(), author, force),
      wait,
      ({ refusal }) => refusal !== undefined,
    ).catch((thrown: unknown) => {
      if (thrown instanceof CommitInDoubtError) {
        // Whoever asked hears that it has failed. The project is locked until it is known: then there is something to undo, or not.
        const { undo } = thrown.result as Recording;
        const undone = undo && this.takeBack(undo, { ...author, operation: 'undo' }, UNBOUNDED);
        undone?.catch(() => {});
      }
      throw thrown;
    });
  }

  /** Takes back what a commit has recorded; resolves to whether it was still there. @throws LedgerUnavailableError */
  takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    return this.transact('undo', () => takeBack(this.statements, undo, () => this.now(), author), wait);
  }

  /** Ends a lease; resolves to whether it was open. @throws LedgerUnavailableError */
  end(ended: EndedLease, author: Author, wait: Wait): Promise<boolean> {
    return this.transact('end', () => end(this.statements, ended, () => this.now(), author), wait);
  }

  /** Any other transaction. @throws LedgerUnavailableError */
  transact<Result>(
    operation: LedgerOperation,
    work: () => Work<Result | Undone<Result>>,
    wait: Wait,
    isRefused: (result: Result) => boolean = () => false,
  ): Promise<Result> {
    return this.#observed(operation, wait, (within) => this.database.transact(work, within), isRefused);
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

  close(): Promise<void> {
    return this.database.close();
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
      const result = await withinDeadline(timeout, (deadline) =>
        work(bothOf(wait, deadline)).catch((thrown: unknown) => {
          throw thrown === deadline.signal.reason ? tookTooLong(thrown) : thrown;
        }),
      );
      observer?.transacted(operation, isRefused(result) ? 'refused' : 'done', seconds());
      return result;
    } catch (thrown) {
      observer?.transacted(operation, 'failed', seconds());
      throw thrown;
    }
  }
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
