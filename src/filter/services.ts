/** What a filter is given besides its options and the request. Interfaces alone: the chain and the ledger implement them. */
import type { Wait } from '../deadline.ts';
import type { HttpClient, HttpClientOptions } from '../http/contract.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { Logger } from '../logger.ts';
import type { SharedLimit } from './claim.ts';
import type { Verdict } from './verdict.ts';

/** What time it is, so that tests can say it. */
export interface Clock {
  now(): Date;
}

/** What filters, and policies, are given besides their options. */
export interface SharedServices {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Makes clients for calls to other services: bounded in time and size, with kept-alive connections. */
  readonly http: { createClient(options: HttpClientOptions): HttpClient };
}

/** What every filter is given besides its options. */
export interface FilterServices extends SharedServices {
  /** For limits that leases share. `LedgerFilter` asks it; it is opened only when a filter asks for that. */
  readonly ledger: LedgerService;
}

/** What a hook is told about the call besides the request. */
export interface Call {
  /** Fires when nobody waits for the answer any longer. Pass it on to whatever you wait for. */
  readonly signal?: AbortSignal | undefined;
  /** The deadline behind `signal`, for code that asks for the time without waiting. */
  readonly wait?: Wait | undefined;
  /** The same for everything that is asked about one request, and another for the next one. Not there where nobody says. */
  readonly requestKey?: string | undefined;
  /** Of a request that came with an `Idempotency-Key`: it may have been sent before. */
  readonly repetition?: Repetition | undefined;
}

/** What tells a request that is sent again from one that only looks like it. */
export interface Repetition {
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** A digest of the request: the same key with another request is no repetition. */
  readonly content: string;
}

/** What filters are given of the ledger. */
export interface LedgerService {
  /** Must be called before anything is asked. Throws `ConfigurationError` when there is no ledger that this program can use. */
  open(): Promise<void>;
  /** Whether the limits of a filter leave room for the lease. Nothing is recorded. Throws when the ledger can't be read. */
  check(filter: SharedLimit, request: LeaseRequest, call: Call): Promise<Verdict>;
  /** Ends a lease. One that has ended already, or that nobody has recorded, is no mistake. */
  end(request: LeaseRequest, call: Call): Promise<void>;
}

/** A lease that somebody wants, or a change of one. */
export interface LeaseRequest {
  readonly context: Context;
  /** Of an update. */
  readonly currentLease?: Lease;
  readonly lease: Lease;
  /** What tells a new lease that is asked for again from one that only looks like it. */
  readonly repetition?: Repetition | undefined;
  /** Whether a new lease with an id may be one that was checked before it had one. */
  readonly adopts?: boolean | undefined;
}
