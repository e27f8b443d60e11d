/** One transaction: its locked projects and its time. */
import { type CompiledQuery, type RawBuilder, sql } from 'kysely';
import type { Deadline, Wait } from '../../base/deadline.ts';
import { LedgerContentError, LedgerUnavailableError } from '../../base/errors.ts';
import { errorTypeOf, inSpan, type SpanOutcome } from '../../base/tracing.ts';
import { type Clock, SYSTEM_CLOCK } from '../../filter/services.ts';
import { type Instant, toInstant } from '../../lease/dates.ts';
import { type Position, suspendedError } from '../position.ts';
import type { Dialect } from '../storage/connection.ts';
import { announcing, type Database, rows, type Work } from '../storage/database.ts';
import { recordsTable } from '../storage/query-parts.ts';
import type { ProjectsTable } from '../storage/schema.ts';
import { type FirstReads, firstReads } from './find-lease.ts';
import type { Statements } from './statements.ts';

/** The time in a project, in microseconds of the epoch. */
export interface Moment {
  /** By the ledger's clock. A lease counts until its end date by this clock. */
  readonly now: bigint;
  /**
   * The same, but never before the last entry of the project. Later than `now` if the clock was set back now,
   * or was ahead before; these cannot be distinguished. Refunds are computed from here, since past use stays
   * used.
   */
  readonly latest: bigint;
}

type TransactionClock = Pick<LedgerClock, 'now' | 'learn'>;

export class Transaction {
  readonly #statements: Statements;
  readonly #clock: TransactionClock;
  readonly #position: Position;
  readonly #mayGrow: boolean;
  /** The locked projects, with their revisions after the commit. */
  readonly locked = new Map<string, bigint>();
  /** The ledger's id; `undefined` until a project is locked. */
  ledgerId: string | undefined;
  /** How far the ledger's clock is behind the last entry, in microseconds. */
  behind = 0n;

  /** `mayGrow`: it may let leases take more, which a suspended ledger must refuse. */
  constructor(statements: Statements, clock: TransactionClock, position: Position, mayGrow: boolean) {
    this.#statements = statements;
    this.#clock = clock;
    this.#position = position;
    this.#mayGrow = mayGrow;
  }

  /**
   * Locks the project until the transaction ends. Reads the clock afterwards, so that times increase in the
   * order of transactions. `next`: reads that always follow.
   */
  *lock(project_id: string, next: readonly CompiledQuery[] = []): Work<Moment> {
    const lock = this.#statements.lockProject({ project_id, at: this.#clock.now() });
    const [row] = yield* rows(announcing(lock, next));
    if (row === undefined) {
      throw new LedgerUnavailableError('the project could not be locked');
    }
    this.ledgerId = row.ledger ?? undefined;
    this.#position.verify(project_id, row.revision, row);
    if (this.#mayGrow && row.suspended !== null) {
      throw suspendedError(row.suspended);
    }
    this.locked.set(project_id, row.revision);
    if (row.now !== undefined) {
      this.#clock.learn(row.now);
    }
    return this.#moment(row.latest_at, row.now);
  }

  /** The reads that every request about a lease needs, to be sent together with the lock. */
  firstReads(request: Parameters<typeof firstReads>[1]): FirstReads {
    return firstReads(this.#statements, request, this.#clock.now(), true);
  }

  /**
   * Locks several projects, always in the same order, which prevents deadlocks. `listed`: a table with a
   * column `project_id` that contains each of them once.
   */
  *lockAll(
    database: Pick<Database, 'queries' | 'dialect'>,
    projectIds: readonly string[],
    listed = listedProjects(database, projectIds),
  ): Work<void> {
    const locked = yield* rows(lockProjects(database, listed, this.#clock.now()));
    const query = database.queries.selectFrom('ledger').select(['id as ledger', 'epoch', 'suspended']);
    const { ledger = null, epoch = null, suspended = null } = (yield* rows(query.compile()))[0] ?? {};
    this.ledgerId = ledger ?? undefined;
    if (this.#mayGrow && suspended !== null) {
      throw suspendedError(suspended);
    }
    for (const { project_id, revision } of locked) {
      this.#position.verify(project_id, revision, { ledger, epoch });
      this.locked.set(project_id, revision);
    }
    if (!projectIds.every((id) => this.locked.has(id))) {
      throw new LedgerUnavailableError('the projects could not be locked');
    }
  }

  #moment(latestAt: bigint, now = this.#clock.now()): Moment {
    const behind = latestAt - now;
    this.behind = behind > 0n ? behind : 0n;
    return { now, latest: now + this.behind };
  }
}

function listedProjects({ dialect }: Pick<Database, 'dialect'>, projectIds: readonly string[]) {
  return recordsTable(
    dialect,
    [['project_id', 'text']],
    projectIds.map((id) => [id]),
  );
}

/** Locks many projects, always in the same order. `at`: the current time. */
function lockProjects(
  { queries }: Pick<Database, 'queries'>,
  table: RawBuilder<unknown>,
  at: bigint,
): CompiledQuery<Pick<ProjectsTable, 'project_id' | 'revision'>> {
  const query = sql<Pick<ProjectsTable, 'project_id' | 'revision'>>`
    insert into projects (project_id, revision, latest_at)
    select project_id, 1, cast(${at} as bigint) from ${table} as listed where true order by project_id
    on conflict (project_id) do update set revision = projects.revision + 1,
      latest_at = case when projects.latest_at < excluded.latest_at then excluded.latest_at
        else projects.latest_at end
    returning project_id, revision`;
  return query.compile(queries);
}

export class LedgerClock {
  readonly #clock: Clock;
  /** SQL for the time, if the ledger uses the database's clock; `undefined` = the clock of this process. */
  readonly sql: RawBuilder<bigint> | undefined;
  /** The last time from the database, and when it arrived, in milliseconds of a monotonic clock. */
  #told: { readonly at: Instant; readonly when: number } | undefined;

  /** `clock`: any other than `SYSTEM_CLOCK` is used with every database. */
  constructor(clock: Clock, dialect: Dialect) {
    this.#clock = clock;
    this.sql = clock === SYSTEM_CLOCK && dialect === 'postgresql' ? databaseTime(dialect) : undefined;
  }

  now(): Instant {
    if (this.#told === undefined) {
      return toInstant(this.#clock.now()) ?? 0n;
    }
    const { at, when } = this.#told;
    return at + BigInt(Math.round((performance.now() - when) * 1000));
  }

  /** Stores a time from the database. Ignores a repeated one: the parts of a group share a result. */
  learn(at: Instant): void {
    if (at !== this.#told?.at) {
      this.#told = { at, when: performance.now() };
    }
  }
}

/**
 * The database's time, in microseconds of the epoch: when the statement runs, not when its transaction began.
 */
export function databaseTime(dialect: Dialect): RawBuilder<bigint> {
  return dialect === 'sqlite'
    ? sql<bigint>`cast((julianday('now') - 2440587.5) * 86400000000 as integer)`
    : sql<bigint>`cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)`;
}

/** Ends with the first of both. Creates the signal on first use: most SQLite transactions never wait. */
export class FirstOf implements Wait {
  readonly #wait: Wait;
  readonly #deadline: Deadline;
  #signal: AbortSignal | undefined;

  constructor(wait: Wait, deadline: Deadline) {
    this.#wait = wait;
    this.#deadline = deadline;
  }

  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any(
      [this.#deadline.signal, this.#wait.signal].filter((one) => one !== undefined),
    );
    return this.#signal;
  }

  throwIfOver(): void {
    this.#wait.throwIfOver();
    try {
      this.#deadline.throwIfOver();
    } catch (thrown) {
      throw tookTooLong(thrown);
    }
  }
}

export function tookTooLong(cause: unknown): LedgerUnavailableError {
  return new LedgerUnavailableError('the transaction took too long', { cause });
}

/** `run`: runs the transaction; must call `begins` whenever its work begins. */
export function tracedTransaction<Result>(
  operation: LedgerOperation,
  dialect: Dialect,
  isRefused: (result: Result) => boolean,
  run: (begins: () => void) => Promise<Result>,
): Promise<Result> {
  const started = performance.now();
  let attempts = 0;
  let waited: number | undefined;
  const begins = () => {
    attempts += 1;
    waited ??= (performance.now() - started) / 1000;
  };
  const told = (): SpanOutcome['attributes'] => ({
    'blazar_enforcement.ledger.attempts': attempts,
    ...(waited !== undefined && { 'blazar_enforcement.ledger.wait': waited }),
  });
  return inSpan(
    {
      name: `${operation} ledger`,
      kind: 'client',
      onlyWithin: true,
      attributes: {
        'db.system.name': dialect,
        'db.operation.name': operation,
        'db.query.summary': `${operation} ledger`,
      },
    },
    () => run(begins),
    (result) => ({ attributes: { ...told(), 'blazar_enforcement.ledger.refused': isRefused(result) } }),
    (thrown) => ({ attributes: told(), errorType: failureOf(thrown) }),
  );
}

/** A value that the ledger cannot store is an error of the caller. */
function failureOf(thrown: unknown): string | undefined {
  return thrown instanceof LedgerContentError ? undefined : errorTypeOf(thrown);
}

/** The purpose of a transaction. */
export type LedgerOperation =
  | 'check'
  | 'commit'
  | 'end'
  | 'undo'
  | 'reconcile'
  | 'budget'
  | 'outbox'
  | 'read';

/** Reports of the ledger about its own work, for metrics. */
export interface LedgerObserver {
  /** After every transaction. `refused`: a limit was exceeded. `failed`: the ledger could not be read or written in time. */
  transacted(operation: LedgerOperation, outcome: 'done' | 'refused' | 'failed', seconds: number): void;
  /** Number of refused leases that may be recorded nevertheless; called on each change. */
  inDoubt?(commits: number): void;
  /**
   * Seconds that the ledger's clock is behind the last entry of the project; 0 = not behind. Called after
   * each transaction.
   */
  clockBehind?(seconds: number): void;
  /** An event of `[notifications]` that could not be stored for delivery. */
  noticeDropped?(event: string): void;
  /** Outcome of an attempt to deliver a message of the outbox; `dead` = there will be no further attempt. */
  attempted?(outcome: 'delivered' | 'failed' | 'dead'): void;
}
