/** One transaction: which project it has locked, and what time it is there. */
import { type CompiledQuery, sql } from 'kysely';
import { LedgerUnavailableError } from '../../base/errors.ts';
import type { LedgerClock } from '../ledger-clock.ts';
import type { Position } from '../position.ts';
import { announcing, type Database, rows, type Work } from '../storage/database.ts';
import { recordsTable } from '../storage/query-parts.ts';
import { suspendedError } from '../suspension.ts';
import { type FirstReads, firstReads } from './first-reads.ts';
import type { Locked, Statements } from './statements.ts';

/** What time it is in a project, in microseconds of the epoch. */
export interface Moment {
  /** By the ledger's clock. A lease whose end date is past by this clock has ended; until then it counts. */
  readonly now: bigint;
  /**
   * The same, but never before the last entry of the project. It is later than `now` when that clock was set back, or was
   * ahead before: there is no telling which. Refunds are computed from here, since what was used by then stays used.
   */
  readonly latest: bigint;
}

type TurnClock = Pick<LedgerClock, 'now' | 'learn'>;

export class Turn {
  readonly #statements: Statements;
  readonly #clock: TurnClock;
  readonly #position: Position;
  readonly #mayGrow: boolean;
  /** The locked projects, with the revisions that hold after the commit. */
  readonly locked = new Map<string, bigint>();
  /** The ledger's id; `undefined` until a project is locked. */
  ledgerId: string | undefined;
  /** By how much the ledger's clock is behind the last entry, in microseconds. */
  behind = 0n;

  /** `mayGrow`: it may let leases take more, which a suspended ledger must refuse. */
  constructor(statements: Statements, clock: TurnClock, position: Position, mayGrow: boolean) {
    this.#statements = statements;
    this.#clock = clock;
    this.#position = position;
    this.#mayGrow = mayGrow;
  }

  /**
   * Locks the project until the transaction ends. Reads the clock afterwards, so that times rise in the order of transactions.
   * `next`: reads that follow in any case.
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

  /** What a request about a lease reads in any case, to be sent together with the lock. */
  firstReads(request: Parameters<typeof firstReads>[1]): FirstReads {
    return firstReads(this.#statements, request, this.#clock.now(), true);
  }

  /** Locks several projects, always in the same order: transactions that do so never wait for each other in a circle. */
  *lockAll(database: Pick<Database, 'queries' | 'dialect'>, projectIds: readonly string[]): Work<void> {
    for (const row of yield* rows(lockProjects(database, projectIds, this.#clock.now()))) {
      this.ledgerId = row.ledger ?? undefined;
      this.#position.verify(row.project_id, row.revision, row);
      if (this.#mayGrow && row.suspended !== null) {
        throw suspendedError(row.suspended);
      }
      this.locked.set(row.project_id, row.revision);
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

/** Locks many projects, always in the same order. `at`: the current time. */
function lockProjects(
  { queries, dialect }: Pick<Database, 'queries' | 'dialect'>,
  projectIds: readonly string[],
  at: bigint,
): CompiledQuery<Locked & { readonly project_id: string }> {
  const table = recordsTable(
    dialect,
    [['project_id', 'text']],
    projectIds.map((id) => [id]),
  );
  const query = sql<Locked & { readonly project_id: string }>`
    insert into projects (project_id, revision, latest_at)
    select project_id, 1, cast(${at} as bigint) from ${table} as listed where true order by project_id
    on conflict (project_id) do update set revision = projects.revision + 1,
      latest_at = case when projects.latest_at < excluded.latest_at then excluded.latest_at
        else projects.latest_at end
    returning project_id, revision, latest_at, (select id from ledger) as ledger,
      (select epoch from ledger) as epoch, (select suspended from ledger) as suspended`;
  return query.compile(queries);
}
