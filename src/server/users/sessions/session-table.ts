/**
 * Sessions in the database of the ledger: shared by all replicas, and kept across restarts. The rows alone
 * are not sufficient to use a session.
 */
import { sql } from 'kysely';
import type { Wait } from '../../../base/deadline.ts';
import { type Database, rows, type Work } from '../../../ledger/storage/database.ts';
import {
  BOUNDS,
  type FoundSession,
  type NewSession,
  type Opening,
  type ProviderMarks,
  type SessionBounds,
  type SessionStore,
} from './session-store.ts';

/** Advisory lock: one login at a time, so that limits hold. */
const LOGIN = 7_042_615_338_120_946n;
/** Maximum rows per kind in `login_counts`; the oldest are deleted. */
const MAX_COUNTED = 10_000;
type CountKind = 'taken' | GuessCount['kind'] | 'known';

/** On PostgreSQL, times come from the database server, not from the replicas. */
const SERVER_TIME = sql<bigint>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`;

interface TableSettings {
  readonly bounds?: SessionBounds;
  /** In milliseconds of the epoch. Default: the clock of the database server; for a file, of this machine. */
  readonly now?: (() => number) | undefined;
}

/** One of the counts of a guess, with its maximum. `name`: a hash. */
export interface GuessCount {
  readonly kind: 'account' | 'address' | 'at-known';
  readonly name: string;
  readonly max: number;
}

/** A password attempt: `atKnown` counts if the account has logged in there before, otherwise `elsewhere`. */
export interface Guess {
  /** A hash of account and address. */
  readonly both: string;
  readonly atKnown: readonly GuessCount[];
  readonly elsewhere: readonly GuessCount[];
}

interface CountedGuess {
  /** Seconds to wait; 0 = the guess is counted. */
  readonly seconds: number;
  readonly counts: readonly GuessCount[];
}

export class SessionTable implements SessionStore {
  readonly #database: Database;
  readonly #bounds: SessionBounds;
  readonly #now: (() => number) | undefined;

  constructor(database: Database, { bounds = BOUNDS, now }: TableSettings = {}) {
    this.#database = database;
    this.#bounds = bounds;
    const isServer = database.dialect === 'postgresql';
    this.#now = now ?? (isServer ? undefined : () => Date.now());
  }

  async find(name: string, wait: Wait): Promise<FoundSession | undefined> {
    const time = this.#now === undefined ? SERVER_TIME : sql<bigint>`cast(0 as bigint)`;
    const query = this.#database.queries
      .selectFrom('sessions')
      .select(['since', 'revision', 'sealed', time.as('now')])
      .where('name', '=', name);
    const [row] = await this.#database.read(() => rows(query.compile()), wait);
    if (row === undefined) {
      return undefined;
    }
    const { since, revision, sealed, now } = row;
    return {
      since: Number(since),
      revision: Number(revision),
      sealed,
      now: this.#now?.() ?? Number(now),
    };
  }

  open(session: NewSession, opening: Opening, wait: Wait): Promise<boolean> {
    return this.#database.transact(() => this.#open(session, opening), wait);
  }

  async replace(name: string, revision: number, sealed: string, wait: Wait): Promise<boolean> {
    const query = this.#database.queries
      .updateTable('sessions')
      .set({ sealed, revision: BigInt(revision + 1) })
      .where('name', '=', name)
      .where('revision', '=', BigInt(revision))
      .returning('id');
    return (await this.#database.transact(() => rows(query.compile()), wait)).length > 0;
  }

  async end(names: readonly string[], wait: Wait): Promise<void> {
    if (names.length > 0) {
      const query = this.#database.queries.deleteFrom('sessions').where('name', 'in', names).compile();
      await this.#database.transact(() => rows(query), wait);
    }
  }

  async endMarked({ sub, sid }: ProviderMarks, wait: Wait): Promise<number> {
    if (sub === null && sid === null) {
      return 0;
    }
    let query = this.#database.queries.deleteFrom('sessions').returning('id');
    if (sub !== null) {
      query = query.where('sub', '=', sub);
    }
    if (sid !== null) {
      query = query.where((column) =>
        sub === null
          ? column('sid', '=', sid)
          : column.or([column('sid', '=', sid), column('sid', 'is', null)]),
      );
    }
    const ended = query.compile();
    return (await this.#database.transact(() => rows(ended), wait)).length;
  }

  takeOnce(name: string, lifetime: number, wait: Wait): Promise<boolean> {
    return this.#database.transact(() => this.#takeOnce(name, lifetime), wait);
  }

  /** Counts a guess before it begins, unless there were too many within `window` milliseconds. */
  countGuess(guess: Guess, window: number, wait: Wait): Promise<CountedGuess> {
    return this.#database.transact(() => this.#countGuess(guess, window), wait);
  }

  /** Reverts the counts. `known`: a successful login, whose guesses are counted separately from now on. */
  forgive(counts: readonly GuessCount[], known: string | undefined, wait: Wait): Promise<void> {
    return this.#database.transact(() => this.#forgive(counts, known), wait);
  }

  /** Closes the database, too. */
  close(): Promise<void> {
    return this.#database.close();
  }

  *#open(session: NewSession, { lifetime, instead }: Opening): Work<boolean> {
    const { queries } = this.#database;
    const now = yield* this.#alone();
    yield* rows(
      queries
        .deleteFrom('sessions')
        .where((column) =>
          column.or([
            column('since', '>', now),
            column('since', '<=', now - BigInt(lifetime)),
            ...(instead.length === 0 ? [] : [column('name', 'in', instead)]),
          ]),
        )
        .compile(),
    );
    const giving = yield* this.#givesWay(session);
    if (giving !== undefined && !(yield* this.#giveWay(giving))) {
      return false;
    }
    const { name, owner, isShared, sub, sid, sealed } = session;
    const row = { name, owner, is_shared: isShared ? 1n : 0n, since: now, revision: 1n, sub, sid, sealed };
    yield* rows(queries.insertInto('sessions').values(row).compile());
    return true;
  }

  /** The owner who must end a session to make room, as in `Shares`. `undefined` = there is room. */
  *#givesWay(session: NewSession): Work<string | undefined> {
    const { queries } = this.#database;
    const { owner, isShared } = session;
    const { all: ofAll, ofUser, ofToken } = this.#bounds;
    const count = queries.fn.countAll<bigint>().as('count');
    const ofOwner = queries.selectFrom('sessions').select(count).where('owner', '=', owner).compile();
    const own = (yield* rows(ofOwner))[0]?.count ?? 0n;
    if (own >= (isShared ? ofToken : ofUser)) {
      return owner;
    }
    const all = (yield* rows(queries.selectFrom('sessions').select(count).compile()))[0]?.count ?? 0n;
    if (all < ofAll) {
      return undefined;
    }
    const byOwner = queries
      .selectFrom('sessions')
      .select(['owner', count])
      .groupBy('owner')
      .orderBy('count', 'desc')
      .limit(1);
    const [most] = yield* rows(byOwner.compile());
    return most !== undefined && most.count > own + 1n ? most.owner : owner;
  }

  /** `false` = the owner has none. */
  *#giveWay(owner: string): Work<boolean> {
    const { queries } = this.#database;
    const own = queries
      .selectFrom('sessions')
      .select(['id', 'is_shared'])
      .where('owner', '=', owner)
      .limit(1);
    const [oldest] = yield* rows(own.orderBy('id').compile());
    const [newest] = yield* rows(own.orderBy('id', 'desc').compile());
    const giving = oldest?.is_shared === 1n ? newest : oldest;
    if (giving === undefined) {
      return false;
    }
    yield* rows(queries.deleteFrom('sessions').where('id', '=', giving.id).compile());
    return true;
  }

  *#takeOnce(name: string, lifetime: number): Work<boolean> {
    const now = yield* this.#alone();
    yield* this.#forgetOld(['taken'], now, lifetime);
    if ((yield* this.#countsOf([{ kind: 'taken', name }])).length > 0) {
      return false;
    }
    yield* this.#add('taken', name, now);
    return true;
  }

  *#countGuess(guess: Guess, window: number): Work<CountedGuess> {
    const now = yield* this.#alone();
    yield* this.#forgetOld(['account', 'address', 'at-known'], now, window);
    const { both, elsewhere, atKnown } = guess;
    const isKnown = (yield* this.#countsOf([{ kind: 'known', name: both }])).length > 0;
    const counts = isKnown ? atKnown : elsewhere;
    const found = yield* this.#countsOf(counts);
    const most = (kind: string) => BigInt(counts.find((count) => count.kind === kind)?.max ?? 0);
    const waits = found
      .filter(({ kind, count }) => count >= most(kind))
      .map(({ since }) => Math.ceil((Number(since - now) + window) / 1000));
    if (waits.length > 0) {
      return { seconds: Math.max(...waits), counts: [] };
    }
    for (const { kind, name } of counts) {
      const known = found.find((one) => one.kind === kind);
      if (known === undefined) {
        yield* this.#add(kind, name, now);
      } else {
        yield* this.#setCount(known.id, known.count + 1n);
      }
    }
    return { seconds: 0, counts };
  }

  *#forgive(counts: readonly GuessCount[], known: string | undefined): Work<void> {
    const now = yield* this.#alone();
    for (const { id, count } of yield* this.#countsOf(counts)) {
      yield* this.#setCount(id, count > 0n ? count - 1n : 0n);
    }
    if (known !== undefined) {
      const [before] = yield* this.#countsOf([{ kind: 'known', name: known }]);
      if (before !== undefined) {
        const { queries } = this.#database;
        yield* rows(queries.deleteFrom('login_counts').where('id', '=', before.id).compile());
      }
      yield* this.#add('known', known, now);
    }
  }

  #countsOf(names: readonly { readonly kind: CountKind; readonly name: string }[]) {
    const query = this.#database.queries
      .selectFrom('login_counts')
      .select(['id', 'kind', 'since', 'count'])
      .where((column) => column.or(names.map(({ kind, name }) => column.and({ kind, name }))));
    return rows(query.compile());
  }

  *#add(kind: CountKind, name: string, now: bigint): Work<void> {
    const { queries } = this.#database;
    const last = queries
      .selectFrom('login_counts')
      .select('id')
      .where('kind', '=', kind)
      .orderBy('id', 'desc')
      .offset(MAX_COUNTED - 1)
      .limit(1);
    yield* rows(
      queries.deleteFrom('login_counts').where('kind', '=', kind).where('id', '<=', last).compile(),
    );
    yield* rows(queries.insertInto('login_counts').values({ kind, name, since: now, count: 1n }).compile());
  }

  *#setCount(id: bigint, count: bigint): Work<void> {
    yield* rows(
      this.#database.queries.updateTable('login_counts').set({ count }).where('id', '=', id).compile(),
    );
  }

  /** If a clock was set back, nobody must be locked out for long. */
  *#forgetOld(kinds: readonly CountKind[], now: bigint, window: number): Work<void> {
    const query = this.#database.queries
      .deleteFrom('login_counts')
      .where('kind', 'in', kinds)
      .where((column) => column.or([column('since', '>', now), column('since', '<=', now - BigInt(window))]));
    yield* rows(query.compile());
  }

  /** Waits until no other login is written, and returns the time. A file has only one writer anyway. */
  *#alone(): Work<bigint> {
    const { dialect, queries } = this.#database;
    if (dialect === 'postgresql') {
      yield* rows(sql`select pg_advisory_xact_lock(${LOGIN})`.compile(queries));
    }
    if (this.#now !== undefined) {
      return BigInt(this.#now());
    }
    const [row] = yield* rows(sql<{ now: bigint }>`select ${SERVER_TIME} as now`.compile(queries));
    return row?.now ?? 0n;
  }
}
