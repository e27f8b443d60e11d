/** A transaction as the ledger sees it: which project it has to itself, and what time it is there. */
import { LedgerUnavailableError } from '../errors.ts';
import { rows, type Work } from './database.ts';
import type { Position } from './position.ts';
import type { Statements } from './statements.ts';

/** What time it is in a project, in microseconds of the epoch. */
export interface Moment {
  /** By the system's clock. What is over by it has ended by its date: until then it counts. */
  readonly now: bigint;
  /**
   * The same, but never before the last entry of the project. It is later where the system's clock was set back, or was ahead
   * before: nobody can tell which. What is given back is reckoned from here, since what was used by then is used.
   */
  readonly latest: bigint;
}

export class Turn {
  readonly #statements: Statements;
  readonly #clock: () => bigint;
  readonly #position: Position;
  readonly #mayGrow: boolean;
  /** Projects with the revisions that hold once it is committed. */
  readonly locked = new Map<string, bigint>();
  /** Of the ledger, once it is known. */
  ledgerId: string | undefined;
  /** By how much the system's clock is behind the last entry, in microseconds. */
  behind = 0n;

  /** `mayGrow`: it may let leases take more, which a ledger that has gone back must not. */
  constructor(statements: Statements, clock: () => bigint, position: Position, mayGrow: boolean) {
    this.#statements = statements;
    this.#clock = clock;
    this.#position = position;
    this.#mayGrow = mayGrow;
  }

  /** From here on the project is ours, until the transaction ends. Asked for the time then: whoever comes later is later. */
  *lock(project_id: string): Work<Moment> {
    const [row] = yield* rows(this.#statements.lockProject({ project_id, at: this.#clock() }));
    if (row === undefined) {
      throw new LedgerUnavailableError('the project could not be locked');
    }
    this.ledgerId = row.ledger ?? undefined;
    this.#position.verify(project_id, row.revision, row);
    if (this.#mayGrow && row.suspended !== null) {
      throw suspendedError(row.suspended);
    }
    this.locked.set(project_id, row.revision);
    const now = this.#clock();
    const behind = row.latest_at - now;
    this.behind = behind > 0n ? behind : 0n;
    return { now, latest: now + this.behind };
  }
}

/** Why nothing is granted, and what changes that. */
export function suspendedError(reason: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `nothing is granted: ${reason}; run blazar-enforcement ledger reconcile with the leases that Blazar has`,
  );
}
