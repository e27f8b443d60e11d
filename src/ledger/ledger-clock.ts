/**
 * What time it is in a ledger. Replicas on several machines may have different clocks, and their database has one: on PostgreSQL that one
 * decides when a lease has ended, and what it has used. On SQLite all processes are on one machine.
 */
import { type RawBuilder, sql } from 'kysely';
import { type Clock, SYSTEM_CLOCK } from '../filter/services.ts';
import { type Instant, toInstant } from '../lease/dates.ts';
import type { Dialect } from './storage/connection.ts';

export class LedgerClock {
  readonly #clock: Clock;
  /** The time in a statement, where the database's clock is the ledger's; `undefined` = it is that of this process. */
  readonly sql: RawBuilder<bigint> | undefined;
  /** What the database said last, and when, in milliseconds of a clock that nobody sets. */
  #told: { readonly at: Instant; readonly when: number } | undefined;

  /** `clock`: any other than `SYSTEM_CLOCK` is the ledger's on every database. */
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

  /** The database has just said what time it is. What it has said before is no news: the parts of a group share an answer. */
  learn(at: Instant): void {
    if (at !== this.#told?.at) {
      this.#told = { at, when: performance.now() };
    }
  }
}

/** By the database's clock, in microseconds of the epoch: while the statement runs, not when its transaction began. */
export function databaseTime(dialect: Dialect): RawBuilder<bigint> {
  return dialect === 'sqlite'
    ? sql<bigint>`cast((julianday('now') - 2440587.5) * 86400000000 as integer)`
    : sql<bigint>`cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)`;
}
