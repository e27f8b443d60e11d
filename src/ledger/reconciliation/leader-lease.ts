/**
 * Which of several processes compares the ledger with Blazar: the row that it holds, by the database's clock. One comparison at a time: the others
 * learn when it was done.
 */
import { sql } from 'kysely';
import { type Wait, waitFor } from '../../base/deadline.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';
import { databaseTime } from '../transactions/transaction.ts';

/** How long a process that is gone keeps others waiting, in seconds. Whoever is there renews in time. */
const HELD = 30n;
/** A clock that is corrected little by little goes back by less, in microseconds: then the holder keeps its leader lease. */
const SLACK = 10n * MICROSECONDS_PER_SECOND;

export interface LeaderLease {
  /** For how many seconds the last complete comparison is over; infinite = there was none. */
  readonly age: number;
  /** The endpoint and region whose leases were last found in this ledger. */
  readonly matched: string | null;
  /** The rows that the last comparison would have released, but not without a second one that says the same. */
  readonly doubted: ReadonlySet<bigint>;
}

export type Taken =
  | { readonly kind: 'mine'; readonly leader: LeaderLease }
  /** Somebody else holds it. */
  | { readonly kind: 'held'; readonly holder: string }
  /** A comparison has ended `age` seconds ago, less than `every`; `seconds` are left. */
  | { readonly kind: 'early'; readonly age: number; readonly seconds: number };

/** The leader leases: one process compares with Blazar, and one with SkyPilot. */
export const BLAZAR_LEADER = 1n;
export const SKYPILOT_LEADER = 2n;

/** Takes the leader lease, if it is free and the last comparison is `every` seconds old. @throws LedgerUnavailableError */
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
        // The clock was set back since: nobody else would be let in for as long, if the holder is gone.
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
      // A clock that was set back must not stop it for long.
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

/** Resolves to whether it is still held. @throws LedgerUnavailableError */
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

/** What a comparison leaves behind. */
export interface Left {
  /** Whether it was complete. */
  readonly isGood: boolean;
  readonly matched: string | null;
  readonly doubted: ReadonlySet<bigint>;
}

/** Frees it for others. `left`: `undefined` = the comparison has failed. @throws LedgerUnavailableError */
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
        doubted: done.doubted.size === 0 ? null : JSON.stringify([...done.doubted].map(Number)),
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

/** The leader lease is kept for 30 s. */
const RENEW_MS = 10_000;

/** A comparison that another process does, or has done. */
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
  /** A process, unlike any other. */
  readonly holder: string;
  /** Do nothing if a comparison has ended less than so many seconds ago. */
  readonly every: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Does `work` while this process holds the leader lease, which is free afterwards whatever fails. The signal of `work` also fires when another process
 * has taken the leader lease. @throws LedgerUnavailableError, and what `work` throws
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
    // Also after a failure: the leader lease would be kept for half a minute.
    await releaseLeaderLease(ledger, holder, left, waitFor(undefined)).catch(() => {});
  }
}
