/** The ledger as a chain of filters holds it: opened when the first filter needs it, and asked in the terms of leases. */
import type { Call, Clock } from '../base-filter.ts';
import { inTime, type Wait, waitFor } from '../deadline.ts';
import { ConfigurationError, errorText, LedgerUnavailableError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { allow, reject, type Verdict } from '../verdict.ts';
import type { LeaseRequest } from './lease-request.ts';
import type { Ledger, LedgerObserver } from './ledger.ts';
import type { LedgerFilter } from './ledger-filter.ts';
import type { LedgerOptions } from './options.ts';
import type { Author } from './posting.ts';
import type { Claimant } from './prospect.ts';
import type { Recording, Undo } from './transactions.ts';

/** What filters are given of the ledger. */
export interface LedgerService {
  /** Must be called before anything is asked. Throws `ConfigurationError` when there is no ledger that this program can use. */
  open(): Promise<void>;
  /** Whether the limits of a filter leave room for the lease. Nothing is recorded. Throws when the ledger can't be read. */
  check(filter: LedgerFilter, request: LeaseRequest, call: Call): Promise<Verdict>;
  /** Ends a lease. One that has ended already, or that nobody has recorded, is no mistake. */
  end(request: LeaseRequest, call: Call): Promise<void>;
}

export interface LedgerServiceParts {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly observer: LedgerObserver | undefined;
}

export class ChainLedger implements LedgerService {
  readonly #options: LedgerOptions;
  readonly #parts: LedgerServiceParts;
  #opening: Promise<Opening> | undefined;

  constructor(options: LedgerOptions, parts: LedgerServiceParts) {
    this.#options = options;
    this.#parts = parts;
  }

  async open(): Promise<void> {
    this.#opening ??= this.#open();
    await this.#opening;
  }

  async check(filter: LedgerFilter, request: LeaseRequest, call: Call): Promise<Verdict> {
    const wait = waitOf(call);
    const { ledger, words } = await this.#ready(wait);
    const claimant = words.claimantOf(filter, filter.constructor.name, false);
    const [refusal] = await ledger.check(words.ledgerRequest(request, [claimant]), wait);
    return refusal === undefined ? allow() : reject(refusal.message);
  }

  async commit(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    author: Author,
    wait: Wait,
  ): Promise<Recording> {
    const { ledger, words } = await this.#ready(wait);
    return ledger.commit(words.ledgerRequest(request, claimants), author, wait);
  }

  async takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    const { ledger } = await this.#ready(wait);
    return ledger.takeBack(undo, author, wait);
  }

  async end(request: LeaseRequest, call: Call): Promise<void> {
    const wait = waitOf(call);
    const { ledger, words } = await this.#ready(wait);
    const author = { operation: 'end', who: request.context.user_id, requestId: null, reason: null } as const;
    await ledger.end(words.endedLease(request), author, wait);
  }

  /** Anything else that is to be looked up, for those who show the ledger. @throws LedgerUnavailableError */
  async read<Result>(look: (ledger: Ledger) => Promise<Result>): Promise<Result> {
    return look((await this.#ready()).ledger);
  }

  async close(): Promise<void> {
    if (this.#opening !== undefined) {
      const opening = await this.#opening.catch(() => undefined);
      await opening?.opened.ledger.close();
    }
  }

  async #open(): Promise<Opening> {
    const [{ openLedger }, words] = await Promise.all([import('./open.ts'), import('./lease-request.ts')]);
    const { clock, observer, logger } = this.#parts;
    const opened = openLedger(this.#options, { clock, observer });
    try {
      await opened.verify();
    } catch (thrown) {
      if (!(thrown instanceof LedgerUnavailableError)) {
        await opened.ledger.close();
        throw thrown;
      }
      // It may be there in a moment; until then every lease is refused.
      logger.error(
        { error: errorText(thrown) },
        'the ledger can not be reached: leases are refused until it can',
      );
    }
    return { opened, words };
  }

  async #ready(wait: Wait = waitFor(undefined)): Promise<{ ledger: Ledger; words: Words }> {
    const opening = await this.#opening;
    if (opening === undefined) {
      throw new Error('expected open() of the ledger before it is asked');
    }
    const { opened, words } = opening;
    if (!opened.isVerified) {
      await inTime(this.#verify(opened), wait);
    }
    return { ledger: opened.ledger, words };
  }

  /** When it could not be reached at the start. */
  async #verify(opened: Opened): Promise<void> {
    try {
      await opened.verify();
    } catch (thrown) {
      throw thrown instanceof ConfigurationError
        ? new LedgerUnavailableError(errorText(thrown), { cause: thrown })
        : thrown;
    }
  }
}

/** How a request is said in the words of the ledger. Loaded with the ledger: most commands need neither. */
type Words = typeof import('./lease-request.ts');

interface Opening {
  readonly opened: Opened;
  readonly words: Words;
}

/** A ledger, and whether its tables are known to be those of this program. */
export interface Opened {
  readonly ledger: Ledger;
  readonly isVerified: boolean;
  /** Throws `ConfigurationError` for tables that this program can't use, and `LedgerUnavailableError`. */
  verify(): Promise<void>;
}

/** The chain hands on what it waits by. */
function waitOf(call: Call): Wait {
  return 'throwIfOver' in call ? (call as Wait) : waitFor(call.signal);
}
