/**
 * Elects the process that compares the ledger with Blazar: the holder of a row, by the database's clock. Only
 * one comparison runs at a time; the others can read when it was done.
 */
import { sql } from 'kysely';
import { type Wait, waitFor } from '../../base/deadline.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';
import { databaseTime } from '../transactions/transaction.ts';

/** Duration of the lock in seconds: a dead process blocks others this long. A live holder renews it. */
const HELD = 30n;
/** A clock that is slewed goes back by less than this, in microseconds: the holder keeps its leader lease. */
const SLACK = 10n * MICROSECONDS_PER_SECOND;

export interface LeaderLease {
  /** Seconds since the last complete comparison; infinite = never. */
  readonly age: number;
  /** The endpoint and region whose leases were last found in this ledger. */
  readonly matched: string | null;
  /** Rows that the last comparison would release only if the next one confirms it. */
  readonly doubted: ReadonlySet<bigint>;
}

type Taken =
  | { readonly kind: 'mine'; readonly leader: LeaderLease }
  /** Another process holds it. */
  | { readonly kind: 'held'; readonly holder: string }
  /** A comparison ended `age` seconds ago, less than `every`; `seconds` remain. */
  | { readonly kind: 'early'; readonly age: number; readonly seconds: number };

/** The leader leases: one for comparing with Blazar, one for SkyPilot. */
export const BLAZAR_LEADER = 1n;
export const SKYPILOT_LEADER = 2n;

/**
 * Acquires the leader lease if it is free and the last comparison is at least `every` seconds old.
 * @throws LedgerUnavailableError
 */
export function acquireLeaderLease(
  ledger: Ledger,
  holder: string,
  every: number,
  wait: Wait,
  leader = BLAZAR_LEADER,
): Promise<Taken> {
  const { queries } = ledger.database;
  const now = databaseTime(ledger.database.dialect);
  const look = queries.selectFrom('follower').selectAll().select(now.as('now')).where('id', '=', leader);
  const until = sql<bigint>`${now} + ${HELD * MICROSECONDS_PER_SECOND}`;
  const take = queries
    .updateTable('follower')
    .set({ holder, held_until: until })
    .where('id', '=', leader)
    .where((row) =>
      row.or([
        row('holder', 'is', null),
        row('holder', '=', holder),
        row('held_until', '<=', now),
        // The clock was set back since: with a dead holder, the row would stay locked for that long.
        row('held_until', '>', sql<bigint>`${until} + ${SLACK}`),
      ]),
    )
    .returningAll();
  const add = queries
    .insertInto('follower')
    .values({ id: leader, held_until: 0n })
    .onConflict((conflict) => conflict.column('id').doNothing());
  return ledger.transact(
    'reconcile',
    function* () {
      if (leader !== BLAZAR_LEADER) {
        yield* rows(add.compile());
      }
      const [row] = yield* rows(look.compile());
      const age = Number((row?.now ?? 0n) - (row?.followed_at ?? 0n)) / 1e6;
      const followedAt = row?.followed_at ?? undefined;
      // A clock that was set back must not block comparisons for long.
      if (followedAt !== undefined && age >= 0 && age < every) {
        return { kind: 'early', age, seconds: every - age } as const;
      }
      const [mine] = yield* rows(take.compile());
      if (mine === undefined) {
        return { kind: 'held', holder: row?.holder ?? '' } as const;
      }
      const { matched, doubted } = mine;
      const facts = { age: followedAt === undefined ? Number.POSITIVE_INFINITY : age, matched };
      return { kind: 'mine', leader: { ...facts, doubted: rowsIn(doubted) } } as const;
    },
    wait,
  );
}

/** Resolves to whether this process still holds it. @throws LedgerUnavailableError */
export async function renewLeaderLease(ledger: Ledger, holder: string, wait: Wait): Promise<boolean> {
  const renewed = ledger.database.queries
    .updateTable('follower')
    .set({
      held_until: sql<bigint>`${databaseTime(ledger.database.dialect)} + ${HELD * MICROSECONDS_PER_SECOND}`,
    })
    .where('holder', '=', holder)
    .returning('id');
  return (await ledger.transact('reconcile', () => rows(renewed.compile()), wait)).length > 0;
}

/** Results of a comparison that are stored for the next one. */
interface Left {
  /** Whether it was complete. */
  readonly isGood: boolean;
  readonly matched: string | null;
  readonly doubted: ReadonlySet<bigint>;
}

/** Releases the leader lease. `done`: `undefined` = the comparison failed. @throws LedgerUnavailableError */
export async function releaseLeaderLease(
  ledger: Ledger,
  holder: string,
  done: Left | undefined,
  wait: Wait,
): Promise<void> {
  const left = ledger.database.queries
    .updateTable('follower')
    .set({
      holder: null,
      held_until: 0n,
      ...(done && {
        matched: done.matched,
        doubted: done.doubted.size === 0 ? null : JSON.stringify([...done.doubted].map(String)),
        ...(done.isGood && { followed_at: databaseTime(ledger.database.dialect) }),
      }),
    })
    .where('holder', '=', holder);
  await ledger.transact('reconcile', () => rows(left.compile()), wait);
}

function rowsIn(written: string | null): Set<bigint> {
  const found: unknown = written === null ? [] : JSON.parse(written);
  return new Set(Array.isArray(found) ? found.map((row) => BigInt(String(row))) : []);
}

/** Renewal interval; the leader lease lasts 30 s. */
const RENEW_MS = 10_000;

/** A comparison that another process runs or has finished. */
export type ReconciledElsewhere = Exclude<Taken, { readonly kind: 'mine' }>;

/** What became of a comparison with another system. */
export type ReconciliationResult =
  | {
      readonly kind: 'done';
      /** How many leases or clusters the other system listed, with clusters that are gone since a day. */
      readonly listed: number;
      /** Why nothing, or not everything, was released; empty = the round was complete. */
      readonly doubts: readonly string[];
    }
  | ReconciledElsewhere;

interface LeaderTerms {
  /** `BLAZAR_LEADER` or `SKYPILOT_LEADER`. */
  readonly id: bigint;
  /** Unique id of the process. */
  readonly holder: string;
  /** Do nothing if a comparison ended less than this many seconds ago. */
  readonly every: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Runs `work` while this process holds the leader lease, and always releases it afterwards. The signal of
 * `work` also fires when another process has taken over the leader lease. @throws LedgerUnavailableError, and
 * the errors of `work`
 */
export async function whileLeader<Result>(
  ledger: Ledger,
  { id, holder, every, signal }: LeaderTerms,
  work: (
    leader: LeaderLease,
    signal: AbortSignal,
  ) => Promise<{ readonly result: Result; readonly left: Left | undefined }>,
): Promise<Result | ReconciledElsewhere> {
  const taken = await acquireLeaderLease(ledger, holder, every, waitFor(signal), id);
  if (taken.kind !== 'mine') {
    return taken;
  }
  const lost = new AbortController();
  const renewing = setInterval(() => {
    renewLeaderLease(ledger, holder, waitFor(undefined)).then(
      (isMine) => isMine || lost.abort(new Error('another process compares the ledger now')),
      () => {},
    );
  }, RENEW_MS);
  let left: Left | undefined;
  try {
    const either = AbortSignal.any(signal === undefined ? [lost.signal] : [lost.signal, signal]);
    const done = await work(taken.leader, either);
    left = done.left;
    return done.result;
  } finally {
    clearInterval(renewing);
    // Also after a failure: otherwise the leader lease would stay locked for half a minute.
    await releaseLeaderLease(ledger, holder, left, waitFor(undefined)).catch(() => {});
  }
}
