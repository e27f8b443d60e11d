/** An open ledger in terms of leases: requests become what the ledger needs, and what it cannot keep becomes a refusal. */

import { inTime, type Wait } from '../base/deadline.ts';
import { ConfigurationError, errorText, LedgerContentError, LedgerUnavailableError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { SharedLimit } from '../filter/claim.ts';
import type { Clock, LeaseRequest } from '../filter/services.ts';
import { allow, reject, type Verdict } from '../filter/verdict.ts';
import { requestMistake } from './identity.ts';
import { claimantOf, endedLease, ledgerRequest } from './lease-request.ts';
import type { Ledger } from './ledger.ts';
import type { Claimant } from './ledger-request.ts';
import type { LedgerObserver } from './observer.ts';
import { type Opened, openLedger } from './open.ts';
import type { LedgerSettings } from './options.ts';
import type { CrossingWatch } from './outbox/crossings.ts';
import type { Author } from './transactions/journal.ts';
import type { Recording, Undo } from './transactions/lease-transactions.ts';
import type { CheckMemory } from './transactions/memory/check-memory.ts';
import type { LeasePreview } from './transactions/preview.ts';

export interface LeaseLedgerParts {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly observer: LedgerObserver | undefined;
  /** Default: nothing is said about budgets. */
  readonly watch?: CrossingWatch | undefined;
}

export class LeaseLedger {
  readonly #opened: Opened;
  readonly #logger: Logger;

  private constructor(opened: Opened, logger: Logger) {
    this.#opened = opened;
    this.#logger = logger;
  }

  /** A ledger that cannot be reached now is tried again by every call. @throws ConfigurationError */
  static async open(
    settings: LedgerSettings,
    { clock, observer, logger, watch }: LeaseLedgerParts,
  ): Promise<LeaseLedger> {
    const opened = openLedger(settings, { clock, observer, logger, watch });
    try {
      await opened.verify('write');
    } catch (thrown) {
      if (!(thrown instanceof LedgerUnavailableError)) {
        await opened.ledger.close();
        throw thrown;
      }
      logger.error(
        { error: errorText(thrown) },
        'the ledger cannot be reached: leases are refused until it can',
      );
    }
    opened.ledger.attend();
    return new LeaseLedger(opened, logger);
  }

  /** The ledger itself, once its tables are verified. @throws LedgerUnavailableError */
  async ledger(wait: Wait): Promise<Ledger> {
    if (!this.#opened.isVerified) {
      await inTime(this.#verify(), wait);
    }
    return this.#opened.ledger;
  }

  async check(
    filter: SharedLimit,
    request: LeaseRequest,
    wait: Wait,
    memory?: CheckMemory,
  ): Promise<Verdict> {
    const ledger = await this.ledger(wait);
    const mistake = requestMistake(request);
    if (mistake !== undefined) {
      return reject(notRecordable(mistake));
    }
    const claimant = claimantOf(filter, filter.constructor.name, false);
    const [refusal] = await ledger.check(ledgerRequest(request, [claimant]), wait, memory);
    return refusal === undefined ? allow() : reject(refusal.message);
  }

  /** What recording a new lease would do. `undefined` = it cannot be recorded. */
  async preview(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    wait: Wait,
    memory: CheckMemory,
  ): Promise<LeasePreview | undefined> {
    const ledger = await this.ledger(wait);
    return requestMistake(request) === undefined
      ? ledger.preview(ledgerRequest(request, claimants), wait, memory)
      : undefined;
  }

  /** @throws LedgerUnavailableError as long as no lease can be recorded */
  async verifyGrants(wait: Wait): Promise<void> {
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
        this.#logger.warn(
          { project_id: request.context.project_id, error: errorText(thrown) },
          'a lease cannot be recorded in the ledger',
        );
        return refusedBy(claimants, notRecordable('a text or a number in it does not fit'));
      }
      throw thrown;
    }
  }

  async takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    return (await this.ledger(wait)).takeBack(undo, author, wait);
  }

  async end(request: LeaseRequest, wait: Wait): Promise<void> {
    const ledger = await this.ledger(wait);
    if (requestMistake(request) !== undefined) {
      // Such a lease was never recorded.
      return;
    }
    const author = { operation: 'end', who: request.context.user_id, requestId: null, reason: null } as const;
    await ledger.end(endedLease(request), author, wait);
  }

  async close(): Promise<void> {
    await this.#opened.ledger.close();
  }

  async #verify(): Promise<void> {
    try {
      await this.#opened.verify('write');
    } catch (thrown) {
      // The process has started: a mistake in the configuration must not end it any more.
      throw thrown instanceof ConfigurationError
        ? new LedgerUnavailableError(errorText(thrown), { cause: thrown })
        : thrown;
    }
  }
}

/** For the user, who can change it. */
function notRecordable(mistake: string): string {
  return `The lease cannot be recorded: ${mistake}.`;
}

/** Attributed to the first enforced filter; when all are audited it is a warning. */
function refusedBy(claimants: readonly Claimant[], message: string): Recording {
  const enforced = claimants.find(({ audit }) => !audit);
  const refusal = enforced && { filter: enforced.name, message };
  const warnings = claimants.slice(0, 1).map(({ name: filter }) => ({ filter, message }));
  return { refusal, warnings: refusal === undefined ? warnings : [], lease: null, undo: undefined };
}
