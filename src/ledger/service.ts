/**
 * The ledger of a chain of filters: converts requests, and turns requests that it cannot store into refusals.
 */

import { createHash, randomUUID } from 'node:crypto';
import { inTime, type Wait, waitFor } from '../base/deadline.ts';
import { ConfigurationError, errorText, LedgerContentError, LedgerUnavailableError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { SharedLimit } from '../filter/claim.ts';
import type { Clock, LeaseRequest, LedgerService } from '../filter/services.ts';
import { allow, type Call, reject, type Verdict, waitOf } from '../filter/verdict.ts';
import { MICROSECONDS_PER_SECOND, toInstant } from '../lease/dates.ts';
import type { Lease } from '../lease/lease.ts';
import { requestMistake } from './identity.ts';
import { claimantOf, endedLease, ledgerRequest } from './lease-request.ts';
import type { Ledger } from './ledger.ts';
import type { Author, Claimant } from './ledger-request.ts';
import type { Opened } from './open.ts';
import type { LedgerSettings } from './options.ts';
import type { BudgetWatch } from './outbox/crossings.ts';
import { rows } from './storage/database.ts';
import type { Recording, Undo } from './transactions/lease-transactions.ts';
import { CheckMemory } from './transactions/memory/check-memory.ts';
import type { LeasePreview } from './transactions/preview.ts';
import type { LedgerObserver } from './transactions/transaction.ts';

interface ChainLedgerParts {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly observer: LedgerObserver | undefined;
  /** Default: no notices about budgets. */
  readonly watch?: BudgetWatch | undefined;
}

/**
 * Rows that checks of a call have read. Stored on the call: as keys of a `WeakMap`, calls would burden the
 * garbage collector.
 */
const MEMORY = Symbol('memory');
type Remembering = Call & { [MEMORY]?: CheckMemory };

export class ChainLedger implements LedgerService {
  readonly #settings: LedgerSettings;
  readonly #parts: ChainLedgerParts;
  #opening: Promise<Opened> | undefined;
  #opened: Opened | undefined;
  /**
   * Every filter of a chain reports the end of a lease, and the ledger must end it once: for a lease without
   * an id, a second end could end another lease that looks the same.
   */
  readonly #ends = new WeakMap<Call, { readonly lease: Lease; readonly ended: Promise<void> }>();

  constructor(settings: LedgerSettings, parts: ChainLedgerParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  /**
   * To be called when the first filter needs the ledger. An unavailable ledger is retried by every call.
   * @throws ConfigurationError
   */
  async open(): Promise<void> {
    this.#opening ??= this.#open();
    await this.#opening;
  }

  /** The ledger, after its tables were verified. @throws LedgerUnavailableError */
  async ledger(wait: Wait): Promise<Ledger> {
    const opened = await this.#opening;
    if (opened === undefined) {
      throw new Error('expected open() before any other call');
    }
    if (!opened.isVerified) {
      await inTime(verify(opened), wait);
    }
    return opened.ledger;
  }

  async check(filter: SharedLimit, request: LeaseRequest, call: Call): Promise<Verdict> {
    const wait = waitOf(call);
    const ledger = await this.ledger(wait);
    const mistake = requestMistake(request);
    if (mistake !== undefined) {
      return reject(notRecordable(mistake));
    }
    const claimant = claimantOf(filter, filter.constructor.name, false);
    const asked = ledgerRequest(request, [claimant], call);
    const [refusal] = await ledger.check(asked, wait, (call as Remembering)[MEMORY]);
    return refusal === undefined ? allow() : reject(refusal.message);
  }

  /** From now on, all checks with this call, or with `like`, share rows that are read once. */
  remember(call: Call, like?: Call): void {
    (call as Remembering)[MEMORY] = (like as Remembering | undefined)?.[MEMORY] ?? new CheckMemory();
  }

  /**
   * The result of recording a new lease now; `undefined` = it cannot be recorded. Writes nothing.
   * @throws LedgerUnavailableError
   */
  async preview(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    call: Call,
  ): Promise<LeasePreview | undefined> {
    const wait = waitOf(call);
    const ledger = await this.ledger(wait);
    if (requestMistake(request) !== undefined) {
      return undefined;
    }
    const asked = ledgerRequest({ ...request, names: call.names }, claimants);
    return ledger.preview(asked, wait, (call as Remembering)[MEMORY] ?? new CheckMemory());
  }

  /** @throws LedgerUnavailableError while no lease can be recorded: checks only read, and would not notice */
  async verifyGrants(call: Call): Promise<void> {
    const wait = waitOf(call);
    await (await this.ledger(wait)).verifyGrants(wait);
  }

  async commit(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    author: Author,
    wait: Wait,
  ): Promise<Recording> {
    const ledger = await this.ledger(wait);
    const mistake = requestMistake(request);
    if (mistake !== undefined) {
      return refusedBy(claimants, notRecordable(mistake));
    }
    try {
      return await ledger.commit(ledgerRequest(request, claimants), author, wait);
    } catch (thrown) {
      if (thrown instanceof LedgerContentError) {
        this.#parts.logger.warn(
          { project_id: request.context.project_id, error: errorText(thrown) },
          'a lease cannot be recorded in the ledger',
        );
        return refusedBy(claimants, notRecordable('a text or a number in it does not fit'));
      }
      throw thrown;
    }
  }

  /** Resolves when no other process decides this new lease, to what releases the lock. @throws LedgerUnavailableError */
  async acquireCommitLock(lease: string, wait: Wait): Promise<() => Promise<void>> {
    return acquireCommitLock(await this.ledger(wait), lease, wait);
  }

  async takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    return (await this.ledger(wait)).takeBack(undo, author, wait);
  }

  end(request: LeaseRequest, call: Call): Promise<void> {
    const reported = this.#ends.get(call);
    if (reported?.lease === request.lease) {
      return reported.ended;
    }
    const ended = this.#end(request, waitOf(call));
    this.#ends.set(call, { lease: request.lease, ended });
    return ended;
  }

  /** Any other read, for views of the ledger. @throws LedgerUnavailableError */
  async read<Result>(work: (ledger: Ledger) => Promise<Result>): Promise<Result> {
    return work(await this.ledger(waitFor(undefined)));
  }

  /**
   * Microseconds of the epoch, by the ledger's clock: the same for all replicas on PostgreSQL, even if their
   * own clocks are wrong.
   */
  now(): bigint {
    return this.#opened?.ledger.now() ?? toInstant(this.#parts.clock.now()) ?? 0n;
  }

  /** Starts verifying all that is stored. For serving processes: a command reads what it needs. */
  verifyStored(): void {
    this.#opened?.ledger.database.verifyStored?.();
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.ledger.close();
  }

  /** Imported lazily: database drivers load slowly. */
  async #open(): Promise<Opened> {
    const { openLedger } = await import('./open.ts');
    const opened = openLedger(this.#settings, this.#parts);
    this.#opened = opened;
    try {
      await opened.verify('write');
    } catch (thrown) {
      if (!(thrown instanceof LedgerUnavailableError)) {
        await opened.ledger.close();
        throw thrown;
      }
      this.#parts.logger.error(
        { error: errorText(thrown) },
        'the ledger cannot be reached: leases are refused until it can',
      );
    }
    opened.ledger.attend();
    return opened;
  }

  async #end(request: LeaseRequest, wait: Wait): Promise<void> {
    const ledger = await this.ledger(wait);
    if (requestMistake(request) !== undefined) {
      // Such a lease was never recorded.
      return;
    }
    const author = { operation: 'end', who: request.context.user_id, requestId: null, reason: null } as const;
    await ledger.end(endedLease(request), author, wait);
  }
}

async function verify(opened: Opened): Promise<void> {
  try {
    await opened.verify('write');
  } catch (thrown) {
    // The process is running: a configuration error must not end it any more.
    throw thrown instanceof ConfigurationError
      ? new LedgerUnavailableError(errorText(thrown), { cause: thrown })
      : thrown;
  }
}

/** For the user, who can change the request. */
function notRecordable(mistake: string): string {
  return `The lease cannot be recorded: ${mistake}.`;
}

/** Attributed to the first enforced filter; a warning if all are audited. */
function refusedBy(claimants: readonly Claimant[], message: string): Recording {
  const enforced = claimants.find(({ audit }) => !audit);
  const refusal = enforced && { filter: enforced.name, message };
  const warnings = claimants.slice(0, 1).map(({ name: filter }) => ({ filter, message }));
  return { refusal, warnings: refusal === undefined ? warnings : [], lease: null, undo: undefined };
}

/** From here on, 65,536 rows of `follower` are locks. They are not deleted: leases share them. */
const FIRST = 65_536n;
/** Duration until it is renewed, in microseconds: a repetition waits so long for a dead process. */
const HELD = 10n * MICROSECONDS_PER_SECOND;
const RENEW_MS = 5_000;
/** Pause before the next attempt to acquire it. */
const PAUSE_MS = 100;

/**
 * Resolves when no other process decides the lease, to a function that releases the lock, and never rejects.
 *
 * @throws LedgerUnavailableError
 */
export async function acquireCommitLock(
  ledger: Ledger,
  lease: string,
  wait: Wait,
): Promise<() => Promise<void>> {
  const { queries } = ledger.database;
  const id = FIRST + BigInt(createHash('sha256').update(lease).digest().readUInt16BE());
  const holder = randomUUID();
  const isTaken = async () => {
    const now = ledger.now();
    const held = { holder, held_until: now + HELD };
    const take = queries
      .insertInto('follower')
      .values({ id, ...held })
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet(held)
          .where((row) =>
            row.or([
              row('follower.held_until', '<=', now),
              // The clock was set back since: the holder may be dead.
              row('follower.held_until', '>', now + 2n * HELD),
            ]),
          ),
      )
      .returning('id');
    return (await ledger.transact('commit', () => rows(take.compile()), wait)).length > 0;
  };
  while (!(await isTaken())) {
    await inTime(new Promise((resolve) => setTimeout(resolve, PAUSE_MS)), wait);
  }
  const hold = (until: bigint) => {
    const own = queries
      .updateTable('follower')
      .set({ held_until: until })
      .where('id', '=', id)
      .where('holder', '=', holder);
    // If it fails, the lock expires.
    return ledger.transact('commit', () => rows(own.compile()), waitFor(undefined)).catch(() => {});
  };
  const renewing = setInterval(() => void hold(ledger.now() + HELD), RENEW_MS);
  return async () => {
    clearInterval(renewing);
    await hold(0n);
  };
}
