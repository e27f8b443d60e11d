/** The ledger as a chain of filters holds it: opened when the first filter needs it, and asked in the terms of leases. */

import { inTime, type Wait, waitFor } from '../deadline.ts';
import { ConfigurationError, errorText, LedgerContentError, LedgerUnavailableError } from '../errors.ts';
import type { SharedLimit } from '../filter/claim.ts';
import type { Call, Clock, LeaseRequest, LedgerService } from '../filter/services.ts';
import { allow, reject, type Verdict } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';
import type { Logger } from '../logger.ts';
import type { Ledger, LedgerObserver } from './ledger.ts';
import type { Opened } from './open.ts';
import type { LedgerSettings } from './options.ts';
import type { Author } from './posting.ts';
import type { Claimant } from './prospect.ts';
import type { Recording, Undo } from './transactions.ts';

export interface LedgerServiceParts {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly observer: LedgerObserver | undefined;
}

export class ChainLedger implements LedgerService {
  readonly #options: LedgerSettings;
  readonly #parts: LedgerServiceParts;
  #opening: Promise<Opening> | undefined;
  /** Every filter is told of an end, and a lease ends once: a second end could be of another lease that looks like it. */
  readonly #ends = new WeakMap<Call, { readonly lease: Lease; readonly ended: Promise<void> }>();

  constructor(options: LedgerSettings, parts: LedgerServiceParts) {
    this.#options = options;
    this.#parts = parts;
  }

  async open(): Promise<void> {
    this.#opening ??= this.#open();
    await this.#opening;
  }

  async check(filter: SharedLimit, request: LeaseRequest, call: Call): Promise<Verdict> {
    const wait = waitOf(call);
    const { ledger, words } = await this.#ready(wait);
    const mistake = words.requestMistake(request);
    if (mistake !== undefined) {
      return reject(notKept(mistake));
    }
    const claimant = words.claimantOf(filter, filter.constructor.name, false);
    const asked = { ...request, repetition: call.repetition };
    const [refusal] = await ledger.check(words.ledgerRequest(asked, [claimant]), wait);
    return refusal === undefined ? allow() : reject(refusal.message);
  }

  async commit(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    author: Author,
    wait: Wait,
  ): Promise<Recording> {
    const { ledger, words } = await this.#ready(wait);
    const mistake = words.requestMistake(request);
    if (mistake !== undefined) {
      return refusedBy(claimants, notKept(mistake));
    }
    try {
      return await ledger.commit(words.ledgerRequest(request, claimants), author, wait);
    } catch (thrown) {
      if (thrown instanceof LedgerContentError) {
        this.#parts.logger.warn(
          { project_id: request.context.project_id, error: errorText(thrown) },
          'a lease can not be kept in the ledger',
        );
        return refusedBy(claimants, notKept('a text or a number in it does not fit'));
      }
      throw thrown;
    }
  }

  async takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    const { ledger } = await this.#ready(wait);
    return ledger.takeBack(undo, author, wait);
  }

  end(request: LeaseRequest, call: Call): Promise<void> {
    const told = this.#ends.get(call);
    if (told?.lease === request.lease) {
      return told.ended;
    }
    const ended = this.#end(request, waitOf(call));
    this.#ends.set(call, { lease: request.lease, ended });
    return ended;
  }

  async #end(request: LeaseRequest, wait: Wait): Promise<void> {
    const { ledger, words } = await this.#ready(wait);
    if (words.requestMistake(request) !== undefined) {
      // One like that was never recorded.
      return;
    }
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
    const [{ openLedger }, request, texts] = await Promise.all([
      import('./open.ts'),
      import('./lease-request.ts'),
      import('./texts.ts'),
    ]);
    const words = { ...request, ...texts };
    const { clock, observer, logger } = this.#parts;
    const opened = openLedger(this.#options, { clock, observer, logger });
    try {
      await opened.verify('write');
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
    opened.ledger.attend();
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
      await opened.verify('write');
    } catch (thrown) {
      throw thrown instanceof ConfigurationError
        ? new LedgerUnavailableError(errorText(thrown), { cause: thrown })
        : thrown;
    }
  }
}

/** How a request is said in the words of the ledger. Loaded with the ledger: most commands need neither. */
type Words = typeof import('./lease-request.ts') & typeof import('./texts.ts');

interface Opening {
  readonly opened: Opened;
  readonly words: Words;
}

/** For the user, who can change it. */
function notKept(mistake: string): string {
  return `The lease can not be recorded: ${mistake}.`;
}

/** By the first filter that is enforced; where all are only tried it is a warning. */
function refusedBy(claimants: readonly Claimant[], message: string): Recording {
  const enforced = claimants.find(({ audit }) => !audit);
  const refusal = enforced && { filter: enforced.name, message };
  const warnings = claimants.slice(0, 1).map(({ name: filter }) => ({ filter, message }));
  return { refusal, warnings: refusal === undefined ? warnings : [], lease: null, undo: undefined };
}

function waitOf({ wait, signal }: Call): Wait {
  return wait ?? waitFor(signal);
}
