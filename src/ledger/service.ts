/** The ledger of a chain of filters: opened when the first filter needs it, since databases take a while to load. */

import { type Wait, waitFor } from '../base/deadline.ts';
import type { Call } from '../filter/call.ts';
import type { SharedLimit } from '../filter/claim.ts';
import type { LeaseRequest, LedgerService } from '../filter/services.ts';
import type { Verdict } from '../filter/verdict.ts';
import { toInstant } from '../lease/dates.ts';
import type { Lease } from '../lease/lease.ts';
import type { LeaseLedger, LeaseLedgerParts } from './lease-ledger.ts';
import type { Ledger } from './ledger.ts';
import type { Claimant } from './ledger-request.ts';
import type { LedgerSettings } from './options.ts';
import type { Author } from './transactions/journal.ts';
import type { Recording, Undo } from './transactions/lease-transactions.ts';
import { CheckMemory } from './transactions/memory/check-memory.ts';
import type { LeasePreview } from './transactions/preview.ts';

export class ChainLedger implements LedgerService {
  readonly #settings: LedgerSettings;
  readonly #parts: LeaseLedgerParts;
  #opening: Promise<LeaseLedger> | undefined;
  /**
   * Every filter of a chain reports the end of a lease, and the ledger must end it once: for a lease without an id, a second end
   * could be taken for that of another lease that looks the same.
   */
  readonly #ends = new WeakMap<Call, { readonly lease: Lease; readonly ended: Promise<void> }>();

  /** Of calls that only try leases. */
  readonly #memories = new WeakMap<Call, CheckMemory>();

  constructor(settings: LedgerSettings, parts: LeaseLedgerParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  async open(): Promise<void> {
    this.#opening ??= this.#open();
    await this.#opening;
  }

  async check(filter: SharedLimit, request: LeaseRequest, call: Call): Promise<Verdict> {
    const ledger = await this.#opened();
    const { repetition, names } = call;
    return ledger.check(filter, { ...request, repetition, names }, waitOf(call), this.#memories.get(call));
  }

  /** From here on, all checks with this call, or with `like`, see the same rows, which are read once. */
  remember(call: Call, like?: Call): void {
    this.#memories.set(call, (like && this.#memories.get(like)) ?? new CheckMemory());
  }

  /** What recording a new lease would do; `undefined` = it cannot be recorded. Records nothing. @throws LedgerUnavailableError */
  async preview(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    call: Call,
  ): Promise<LeasePreview | undefined> {
    const ledger = await this.#opened();
    const memory = this.#memories.get(call) ?? new CheckMemory();
    return ledger.preview({ ...request, names: call.names }, claimants, waitOf(call), memory);
  }

  /** @throws LedgerUnavailableError as long as no lease can be recorded: checks only read, and would not notice */
  async verifyGrants(call: Call): Promise<void> {
    await (await this.#opened()).verifyGrants(waitOf(call));
  }

  async commit(
    request: LeaseRequest,
    claimants: readonly Claimant[],
    author: Author,
    wait: Wait,
  ): Promise<Recording> {
    return (await this.#opened()).commit(request, claimants, author, wait);
  }

  async takeBack(undo: Undo, author: Author, wait: Wait): Promise<boolean> {
    return (await this.#opened()).takeBack(undo, author, wait);
  }

  end(request: LeaseRequest, call: Call): Promise<void> {
    const reported = this.#ends.get(call);
    if (reported?.lease === request.lease) {
      return reported.ended;
    }
    const ended = this.#opened().then((ledger) => ledger.end(request, waitOf(call)));
    this.#ends.set(call, { lease: request.lease, ended });
    return ended;
  }

  /** Any other read, for whoever shows the ledger. @throws LedgerUnavailableError */
  async read<Result>(work: (ledger: Ledger) => Promise<Result>): Promise<Result> {
    const ledger = await this.#opened();
    return work(await ledger.ledger(waitFor(undefined)));
  }

  /** Microseconds of the epoch. */
  now(): bigint {
    return toInstant(this.#parts.clock.now()) ?? 0n;
  }

  /** The ledger itself, once its tables are verified. @throws LedgerUnavailableError */
  async ledger(wait: Wait): Promise<Ledger> {
    return (await this.#opened()).ledger(wait);
  }

  async close(): Promise<void> {
    const ledger = await this.#opening?.catch(() => undefined);
    await ledger?.close();
  }

  async #open(): Promise<LeaseLedger> {
    const { LeaseLedger } = await import('./lease-ledger.ts');
    return LeaseLedger.open(this.#settings, this.#parts);
  }

  async #opened(): Promise<LeaseLedger> {
    const ledger = await this.#opening;
    if (ledger === undefined) {
      throw new Error('expected open() before any other call');
    }
    return ledger;
  }
}

function waitOf({ wait, signal }: Call): Wait {
  return wait ?? waitFor(signal);
}
