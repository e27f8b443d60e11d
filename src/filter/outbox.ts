/**
 * Messages about leases that must not be lost: what a filter adds to the outbox, and how it delivers them.
 * Only interfaces.
 */
import type { Context, Lease } from '../lease/lease.ts';
import type { Call } from './verdict.ts';

/** The outbox, for filters: keeps messages in the ledger's database until they are delivered. */
export interface OutboxService {
  /**
   * Call it in `open()` of the filter. Throws `ConfigurationError` if there is no usable ledger.
   *
   * `deliver` is called for each message until it is delivered, also for those of earlier processes and
   * configurations: in the order of writing per lease, several leases at a time.
   */
  open(sender: OutboxSender): Promise<Outbox>;
}

/** A filter that sends messages. */
export interface OutboxSender {
  /** The name of its class. Messages keep this name, whatever the configuration becomes. */
  readonly name: string;
  /** How long a message is retried, in seconds. Then it is a dead letter. */
  readonly maxAge: number;
  /** One attempt. Must end in bounded time, and at once when the signal fires. A thrown error counts as `refused`. */
  deliver(message: OutboxMessage, signal: AbortSignal): Promise<Delivery>;
}

/** The messages of one filter, each about the end of a lease. */
export interface Outbox {
  /**
   * Resolves when the message is durable. Throws if it cannot be written: then it is not sent, or, if the
   * database did not confirm, may be sent.
   */
  add(message: EndMessage, call: Call): Promise<void>;
  /**
   * Call it in `commitCreate` before the other service is called. The message is written, and held until the
   * chain has decided: it is sent if the lease is refused or the process ends, and removed if the lease is
   * granted. Throws while an earlier message about the lease is queued: it would end the new lease.
   */
  prepare(message: EndMessage, call: Call): Promise<void>;
}

export interface EndMessage {
  readonly context: Context;
  readonly lease: Lease;
  /**
   * What `deliver` gets: at most 64 MiB, without NUL and lone surrogates. It is stored in the database: no
   * secrets.
   */
  readonly body: string;
}

export interface OutboxMessage {
  /** The same at each attempt, different for every other message. */
  readonly key: string;
  readonly body: string;
}

/**
 * What became of an attempt. `error` is for the operator, without secrets.
 *
 * - `refused`: the other service answered something else than it should, or failed: this message is tried again, others meanwhile; with
 *   the body `rest` if a part of it was delivered
 * - `away`: it takes no messages now: all wait, for `retryAfter` seconds if it says so
 * - `not-sent`: nothing was tried, such as with an open circuit breaker: all wait, and it is no attempt
 */
export type Delivery =
  | { readonly outcome: 'delivered' }
  | { readonly outcome: 'refused'; readonly error: string; readonly rest?: string | undefined }
  | { readonly outcome: 'not-sent'; readonly error: string }
  | { readonly outcome: 'away'; readonly error: string; readonly retryAfter?: number | undefined };
