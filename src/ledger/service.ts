/** The ledger as a chain of filters holds it: opened when the first filter needs it, and asked in the terms of leases. */
import type { Call, Clock } from '../base-filter.ts';
import { inTime, type Wait, waitFor } from '../deadline.ts';
import { ConfigurationError, errorText, InvalidRequestError } from '../errors.ts';
import { type Context, type Lease, leaseEnd, leaseStart, type Reservation } from '../lease.ts';
import type { Logger } from '../logger.ts';
import { reservationsAfterUpdate } from '../reservations.ts';
import { allow, reject, type Verdict } from '../verdict.ts';
import type { Proposal } from './claim.ts';
import { LedgerUnavailableError } from './database.ts';
import { demandOf, identityOf, nameOf } from './identity.ts';
import type { Ledger, LedgerObserver } from './ledger.ts';
import type { LedgerFilter } from './ledger-filter.ts';
import type { LedgerOptions } from './options.ts';
import type { Author, Claimant, LedgerRequest, Recording, Undo } from './transactions.ts';

/** A lease that somebody wants, or a change of one. */
export interface LeaseRequest {
  readonly context: Context;
  /** Of an update. */
  readonly currentLease?: Lease;
  readonly lease: Lease;
}

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
  #opening: Promise<Opened> | undefined;

  constructor(options: LedgerOptions, parts: LedgerServiceParts) {
    this.#options = options;
    this.#parts = parts;
  }

  async open(): Promise<void> {
    this.#opening ??= this.#open();
    await this.#opening;
  }

  async check(filter: LedgerFilter, request: LeaseRequest, call: Call): Promise<Verdict> {
    const claimant = claimantOf(filter, filter.constructor.name, false);
    const wait = waitOf(call);
    const ledger = await this.#ready(wait);
    const [refusal] = await ledger.check(questionOf(request, [claimant]), wait);
    return refusal === undefined ? allow() : reject(refusal.message);
  }

  async commit(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    author: Author,
    wait: Wait,
  ): Promise<Recording> {
    return (await this.#ready(wait)).commit(questionOf(request, claimants), author, wait);
  }

  async takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    return (await this.#ready(wait)).takeBack(undo, author, wait);
  }

  async end({ context, lease }: LeaseRequest, call: Call): Promise<void> {
    const start = leaseStart(lease) ?? 0n;
    const ended = { identity: identityOf(context, [lease, lease], start), end: leaseEnd(lease) };
    const author = { operation: 'end', who: context.user_id, requestId: null, reason: null } as const;
    const wait = waitOf(call);
    await (await this.#ready(wait)).end(ended, author, wait);
  }

  /** Anything else that is to be looked up, for those who show the ledger. @throws LedgerUnavailableError */
  async read<Result>(look: (ledger: Ledger) => Promise<Result>): Promise<Result> {
    return look(await this.#ready());
  }

  async close(): Promise<void> {
    if (this.#opening !== undefined) {
      const opened = await this.#opening.catch(() => undefined);
      await opened?.ledger.close();
    }
  }

  async #open(): Promise<Opened> {
    const { openLedger } = await import('./open.ts');
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
    return opened;
  }

  async #ready(wait: Wait = waitFor(undefined)): Promise<Ledger> {
    const opened = await this.#opening;
    if (opened === undefined) {
      throw new Error('expected open() of the ledger before it is asked');
    }
    if (!opened.isVerified) {
      await inTime(this.#verify(opened), wait);
    }
    return opened.ledger;
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

/** A ledger, and whether its tables are known to be those of this program. */
export interface Opened {
  readonly ledger: Ledger;
  readonly isVerified: boolean;
  /** Throws `ConfigurationError` for tables that this program can't use, and `LedgerUnavailableError`. */
  verify(): Promise<void>;
}

export function claimantOf(filter: LedgerFilter, name: string, audit: boolean): Claimant {
  return { name, audit, claims: (proposal, standing) => filter.claims(proposal, standing) };
}

/** A request whose form the chain has checked. */
function questionOf(
  { context, currentLease, lease }: LeaseRequest,
  claimants: readonly Claimant[],
): LedgerRequest {
  const reservations =
    currentLease === undefined ? (lease.reservations ?? []) : reservationsAfterUpdate(currentLease, lease);
  const current =
    currentLease === undefined
      ? undefined
      : proposalOf(context, [currentLease, lease], currentLease.reservations ?? []);
  const proposal = proposalOf(context, [lease, currentLease ?? lease], reservations);
  return {
    // A lease is found by what it was before.
    identity: identityOf(context, [currentLease ?? lease, lease], (current ?? proposal).start),
    name: nameOf([lease, currentLease ?? lease]),
    demand: () => demandOf(reservations),
    proposal,
    current,
    claimants,
  };
}

/** What the first of the leases does not say, the second does. */
function proposalOf(
  context: Context,
  leases: [Lease, Lease],
  reservations: readonly Reservation[],
): Proposal {
  const [start, end] = [leaseStart, leaseEnd].map((read) => read(leases[0]) ?? read(leases[1]));
  if (start === undefined || end === undefined) {
    throw new InvalidRequestError('lease', 'expected a start and an end');
  }
  return { context, start, end, reservations };
}

/** The chain hands on what it waits by. */
function waitOf(call: Call): Wait {
  return 'throwIfOver' in call ? (call as Wait) : waitFor(call.signal);
}
