/** The outbox of one sender in the ledger's database; messages are written before the response is sent. */
import { randomUUID } from 'node:crypto';
import { type CompiledQuery, sql } from 'kysely';
import { inTime, type Wait, waitFor } from '../../base/deadline.ts';
import { ConfigurationError } from '../../base/errors.ts';
import type { EndMessage } from '../../filter/outbox.ts';
import type { Call } from '../../filter/verdict.ts';
import { textMistake } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import { type Database, rows, type Work } from '../storage/database.ts';
import { missingRights, NEEDED_FOR_OUTBOX } from '../storage/rights.ts';
import { type Backoff, ClaimRenewal } from './backoff.ts';
import { leaseOf, shownIdentity } from './messages.ts';
import {
  type AddedMessage,
  addClaimed,
  addMessages,
  type ClaimedMessage,
  claimedBy,
  expire,
  keepClaims,
  LONG_BODY,
  type NewMessage,
  nextRound,
  type Settlement,
  settle,
  UNCLAIMED,
  type Wanted,
} from './statements.ts';

/** Size limit of a body. The maximum of `body_limit`; JSON may also be longer here than received (`1e9`). */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** How long a new lease waits for an earlier message about it, and the polling interval, in milliseconds. */
const PATIENCE = 3000;
const LOOK_EVERY = 50;
/** Limit of messages that the queue may be promised while they are written. */
const MOST_TAKEN = 64;

export interface NewMessages {
  /** Receives messages that were claimed when they were written. */
  take(messages: readonly ClaimedMessage[]): void;
  /**
   * Outcomes of attempts, to be recorded in the transaction that writes messages. `putBack` if that fails.
   */
  handOver(): readonly Settlement[];
  putBack(settled: readonly Settlement[]): void;
}

export class OutboxStore {
  readonly #sender: string;
  readonly #ledger: () => Promise<Ledger>;
  /** Holder of the claims for delivery. */
  readonly #worker = randomUUID();
  /** Holder of prepared messages. A separate name: messages claimed for delivery can no longer be removed. */
  readonly #holder = randomUUID();
  /** In microseconds. */
  readonly #claim: bigint;
  readonly #held: ClaimRenewal;
  readonly #writes: GroupCommit<NewMessage, AddedMessage>;

  /**
   * `ledger` throws `LedgerUnavailableError`, and so do all methods. `queue` gets new messages that are
   * already claimed.
   */
  constructor(sender: string, ledger: () => Promise<Ledger>, { claim }: Backoff, queue: NewMessages) {
    this.#sender = sender;
    this.#ledger = ledger;
    this.#claim = BigInt(Math.round(claim * 1000));
    this.#writes = new GroupCommit(
      (messages) => this.#write(messages, queue),
      ({ body }) => body.length,
    );
    this.#held = new ClaimRenewal(claim / 5, (ids) =>
      this.#transact((opened) =>
        keepClaims(opened.database.queries, this.#holder, ids, opened.now() + this.#claim),
      ),
    );
  }

  /** An unavailable ledger is not verified. @throws ConfigurationError for missing privileges */
  async verify(): Promise<void> {
    const missing = await this.#ledger()
      .then(({ database }) =>
        database.dialect === 'postgresql' ? missingRights(database, NEEDED_FOR_OUTBOX) : undefined,
      )
      .catch(() => undefined);
    if (missing !== undefined) {
      const message = `the outbox cannot be used: ${missing}`;
      throw new ConfigurationError([{ severity: 'error', section: 'ledger', option: 'connection', message }]);
    }
  }

  /**
   * Resolves when the message is durable. `mayBeTaken`: the queue may deliver it, if no earlier one about its
   * lease waits.
   */
  async add(message: EndMessage, call: Call, wait: Wait, mayBeTaken: boolean): Promise<void> {
    const row = this.#row(message, call);
    const isTaken = mayBeTaken && row.body.length <= LONG_BODY && this.#writes.pending < MOST_TAKEN;
    await this.#writes.add(isTaken ? { ...row, claim: this.#worker } : row, wait);
  }

  async #write(messages: readonly NewMessage[], queue: NewMessages): Promise<AddedMessage[]> {
    const worker = this.#worker;
    const claim = this.#claim;
    const settled = queue.handOver();
    try {
      const added = await this.#transact(function* (opened) {
        const { queries } = opened.database;
        yield* settle(queries, worker, settled);
        const now = opened.now();
        const claimed_until = now + claim;
        const claimed = messages.map((row) => (row.claim === null ? row : { ...row, claimed_until }));
        return yield* addClaimed(queries, claimed, now);
      });
      // Even if their callers no longer wait.
      queue.take(added.filter(({ claim }) => claim !== null));
      return added;
    } catch (thrown) {
      queue.putBack(settled);
      throw thrown;
    }
  }

  /** Resolves when nothing is being written. */
  settled(): Promise<void> {
    return this.#writes.settled();
  }

  /**
   * Writes a message that is held until it is removed or released, or this process ends. Waits a while for
   * earlier messages about the lease, and throws if they remain. Without `isHeld`: only waits.
   */
  async prepare(message: EndMessage, call: Call, wait: Wait, isHeld: boolean): Promise<bigint | undefined> {
    const row = this.#row(message, call);
    for (const until = performance.now() + PATIENCE; ; ) {
      const id = await this.#transact((opened) =>
        addIfAlone(
          opened,
          { ...row, claim: this.#holder, claimed_until: opened.now() + this.#claim },
          isHeld,
        ),
      );
      if (id !== 'not-alone') {
        if (id !== undefined) {
          this.#held.add(id);
        }
        return id;
      }
      wait.throwIfOver();
      if (performance.now() > until) {
        throw new Error(
          'an earlier message about the lease is not delivered yet, and would end it; see blazar-enforcement outbox list',
        );
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
    }
  }

  /** Removes a prepared message; resolves to whether it was still held. */
  remove(id: bigint): Promise<boolean> {
    return this.#settle(id, ({ queries }) =>
      queries.deleteFrom('outbox').where('id', '=', id).where('claim', '=', this.#holder).returning('id'),
    );
  }

  /** Releases a prepared message for delivery; resolves to whether it was still held. */
  release(id: bigint): Promise<boolean> {
    return this.#settle(id, ({ queries }) =>
      claimedBy(queries, this.#holder, [id])
        // It may have expired if its claim was lost for so long.
        .set({ ...UNCLAIMED, state: 'waiting', settled_at: null })
        .returning('id'),
    );
  }

  /** Reads the body of a message that is not in memory. */
  async bodyOf(id: bigint): Promise<string> {
    const { database } = await this.#ledger();
    const query = database.queries.selectFrom('outbox').select('body').where('id', '=', id).compile();
    const [found] = await database.read(() => rows(query), waitFor(undefined));
    if (found === undefined) {
      throw new Error('the message is not in the outbox any more');
    }
    return found.body;
  }

  round(settled: readonly Settlement[], kept: readonly bigint[], wanted: Wanted): Promise<ClaimedMessage[]> {
    return this.#transact((opened) => {
      const { database } = opened;
      const now = opened.now();
      const claimant = { sender: this.#sender, worker: this.#worker, now, until: now + this.#claim };
      return nextRound(database.queries, claimant, settled, kept, wanted, database.dialect === 'postgresql');
    });
  }

  expire(olderThan: bigint, error: string): Promise<number> {
    return this.#transact((opened) =>
      expire(opened.database.queries, { sender: this.#sender, now: opened.now() }, olderThan, error),
    );
  }

  async #settle(
    id: bigint,
    query: (database: Database) => { compile(): CompiledQuery<{ id: bigint }> },
  ): Promise<boolean> {
    const found = await this.#transact(({ database }) => rows(query(database).compile()));
    this.#held.delete(id);
    return found.length > 0;
  }

  #row(message: EndMessage, call: Call): NewMessage {
    const bytes = Buffer.byteLength(message.body);
    if (bytes > MAX_BODY_BYTES) {
      throw new Error(`expected a message of at most ${MAX_BODY_BYTES} bytes, got ${bytes}`);
    }
    const mistake = textMistake(message.body, Number.POSITIVE_INFINITY);
    if (mistake !== undefined) {
      throw new Error(mistake);
    }
    const key = randomUUID();
    return {
      sender: this.#sender,
      lease: leaseOf(message, call, key),
      ...shownIdentity(message),
      key,
      body: message.body,
      ...UNCLAIMED,
    };
  }

  async #transact<Result>(work: (opened: Ledger) => Work<Result>): Promise<Result> {
    const opened = await this.#ledger();
    return opened.transact('outbox', () => work(opened), waitFor(undefined));
  }
}

/** Adds a message unless another message about its lease exists. */
function* addIfAlone(
  opened: Ledger,
  row: NewMessage,
  isHeld: boolean,
): Work<bigint | undefined | 'not-alone'> {
  const { database } = opened;
  const { queries } = database;
  if (database.dialect === 'postgresql') {
    // Of two requests for one lease, the second waits until the first is written.
    yield* rows(sql`select pg_advisory_xact_lock(hashtextextended(${row.lease}, 0))`.compile(queries));
  }
  const others = yield* rows(
    queries
      .selectFrom('outbox')
      .select('id')
      .where('lease', '=', row.lease)
      .where('state', 'in', ['waiting', 'dead'])
      .compile(),
  );
  if (others.length > 0) {
    // Makes the earlier messages due now: no longer wait than necessary.
    const ids = others.map(({ id }) => id);
    yield* rows(queries.updateTable('outbox').set({ next_at: 0n }).where('id', 'in', ids).compile());
    return 'not-alone';
  }
  if (!isHeld) {
    return undefined;
  }
  const [added] = yield* addMessages(queries, [row], opened.now());
  return added?.id;
}

/** Limits of rows and bytes in one transaction; a single row may exceed the bytes. */
const MOST_ROWS = 64;
const MOST_BYTES = 4 * 1024 * 1024;

interface Waiting<Row, Result> {
  readonly row: Row;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
}

/** Writes concurrent rows in one transaction, so that the file is synced once for all of them. */
class GroupCommit<Row, Result> {
  readonly #write: (rows: readonly Row[]) => Promise<readonly Result[]>;
  readonly #weigh: (row: Row) => number;
  #waiting: Waiting<Row, Result>[] = [];
  #writing = 0;
  #running: Promise<void> | undefined;

  /**
   * `write` resolves when all rows are durable, with one result per row. `weigh`: approximate size in bytes.
   */
  constructor(write: (rows: readonly Row[]) => Promise<readonly Result[]>, weigh: (row: Row) => number) {
    this.#write = write;
    this.#weigh = weigh;
  }

  get pending(): number {
    return this.#waiting.length + this.#writing;
  }

  /** Resolves when the row is durable. If the wait ends first, the row may still be written. */
  add(row: Row, wait: Wait): Promise<Result> {
    const written = new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject });
    });
    this.#running ??= this.#run();
    return inTime(written, wait);
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Groups requests that arrive at the same time.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#next());
      this.#writing = group.length;
      try {
        const results = await this.#write(group.map(({ row }) => row));
        group.forEach(({ resolve }, index) => {
          resolve(results[index] as Result);
        });
      } catch (thrown) {
        for (const { reject } of group) {
          reject(thrown);
        }
      }
      this.#writing = 0;
    }
    this.#running = undefined;
  }

  /** Number of rows in the next transaction. */
  #next(): number {
    let weight = 0;
    const end = this.#waiting.slice(0, MOST_ROWS).findIndex(({ row }) => {
      weight += this.#weigh(row);
      return weight > MOST_BYTES;
    });
    return end === -1 ? MOST_ROWS : Math.max(1, end);
  }
}
