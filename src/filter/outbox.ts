/** Messages about leases that must not be lost: what a filter gives to the outbox, and how it delivers them. Only interfaces. */
import type { Context, Lease } from '../lease/lease.ts';
import type { Call } from './call.ts';

/** The outbox, for filters: it keeps messages in the ledger's database until they are delivered. */
export interface OutboxService {
  /**
   * Call it in `open()` of the filter. Throws `ConfigurationError` if there is no usable ledger.
   *
   * `deliver` is called for each message, also those of earlier processes and configurations, as often as it takes: in the order of
   * writing for each lease, several leases at a time.
   */
  open(sender: OutboxSender): Promise<Outbox>;
}

/** A filter that sends messages. */
export interface OutboxSender {
  /** The name of its class. Messages stay with the name, whatever the configuration becomes. */
  readonly name: string;
  /** How long a message is tried, in seconds. After that it is dead. */
  readonly maxAge: number;
  /** One attempt. Must end in bounded time, and at once when the signal fires. What it throws counts as `refused`. */
  deliver(message: OutboxMessage, signal: AbortSignal): Promise<Delivery>;
}

/** The messages of one filter: each says that a lease has ended. */
export interface Outbox {
  /**
   * Resolves when the message is durable. Throws if it cannot be written: then it is not sent, or, if the database did not confirm,
   * may be sent.
   */
  add(message: EndMessage, call: Call): Promise<void>;
  /**
   * Call it in `commitCreate` before the other service hears of the lease. The message is written, and held back until the chain has
   * decided: it is sent if the lease is refused or the process ends, and removed if the lease is granted. Throws while an earlier
   * message about the lease waits, which would end the new one.
   */
  prepare(message: EndMessage, call: Call): Promise<void>;
}

export interface EndMessage {
  readonly context: Context;
  readonly lease: Lease;
  /** What `deliver` gets: at most 64 MiB, without NUL and halves of surrogate pairs. It is kept in the database: no secrets. */
  readonly body: string;
}

export interface OutboxMessage {
  /** The same at each attempt, and different for every other message. */
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
