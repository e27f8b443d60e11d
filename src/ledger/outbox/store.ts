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
  readonly #queue: NewMessages;
  readonly #writing = new Set<Promise<void>>();

  /**
   * `ledger` throws `LedgerUnavailableError`, and so do all methods. `queue` gets new messages that are
   * already claimed.
   */
  constructor(sender: string, ledger: () => Promise<Ledger>, { claim }: Backoff, queue: NewMessages) {
    this.#sender = sender;
    this.#ledger = ledger;
    this.#claim = BigInt(Math.round(claim * 1000));
    this.#queue = queue;
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
    const isTaken = mayBeTaken && row.body.length <= LONG_BODY && this.#writing.size < MOST_TAKEN;
    const written = this.#write(isTaken ? { ...row, claim: this.#worker } : row).finally(() =>
      this.#writing.delete(written),
    );
    this.#writing.add(written);
    await inTime(written, wait);
  }

  /** Also after its caller no longer waits. Concurrent messages about one lease are written in order. */
  async #write(row: NewMessage): Promise<void> {
    const settled = this.#queue.handOver();
    try {
      const added = await this.#transact((opened) => {
        const claimed = row.claim === null ? row : { ...row, claimed_until: opened.now() + this.#claim };
        return this.#settleAndAdd(opened, settled, claimed);
      }, row.lease);
      if (added !== undefined && added.claim !== null) {
        this.#queue.take([added]);
      }
    } catch (thrown) {
      this.#queue.putBack(settled);
      throw thrown;
    }
  }

  *#settleAndAdd(
    opened: Ledger,
    settled: readonly Settlement[],
    row: NewMessage,
  ): Work<AddedMessage | undefined> {
    const { queries } = opened.database;
    yield* settle(queries, this.#worker, settled);
    return yield* addClaimed(queries, row, opened.now());
  }

  /** Resolves when nothing is being written. Never rejects. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#writing);
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

  /** `lease`: transactions about the same one run one after the other. */
  async #transact<Result>(work: (opened: Ledger) => Work<Result>, lease?: string): Promise<Result> {
    const opened = await this.#ledger();
    const project = lease && `outbox ${lease}`;
    return opened.transact('outbox', () => work(opened), waitFor(undefined), { project });
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
