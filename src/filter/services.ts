/** What a filter is given in addition to its options and the request. Only interfaces: the chain and the ledger implement them. */
import type { Logger } from '../base/logger.ts';
import type { HttpClient, HttpClientOptions } from '../http/contract.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { Call, Repetition, RequestNames } from './call.ts';
import type { SharedLimit } from './claim.ts';
import type { OutboxService } from './outbox.ts';
import type { Verdict } from './verdict.ts';

/** The current time. Tests pass their own. */
export interface Clock {
  now(): Date;
}

/** For filters and admin policies. */
export interface SharedServices {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Creates clients for calls to other services, bounded in time and size, with kept-alive connections. */
  readonly http: { createClient(options: HttpClientOptions): HttpClient };
  /** Only where rules are tested. */
  readonly ruleObserver?: RuleObserver | undefined;
}

/** For filters. */
export interface FilterServices extends SharedServices {
  /** For limits that leases share. `LedgerFilter` uses it. It is opened only if a filter opens it. */
  readonly ledger: LedgerService;
  /** Tokens of the account in `[keystone]`. */
  readonly keystone: ServiceTokens;
  /** For messages to other services that must not be lost. It opens the ledger when a filter opens it. */
  readonly outbox: OutboxService;
}

/** Tokens of our own account at Keystone, which other services accept. */
export interface ServiceTokens {
  /** One that stays valid for a while. Throws if there is none. */
  token(call?: Pick<Call, 'signal'>): Promise<string>;
  /** Call it when a service answers 401: the next `token` is another one. */
  refused(token: string): void;
}

/** The ledger, for filters. */
export interface LedgerService {
  /** Must be called first. Throws `ConfigurationError` if there is no usable ledger. */
  open(): Promise<void>;
  /** Whether the limits of a filter have room for the lease. Records nothing. Throws if the ledger cannot be read. */
  check(filter: SharedLimit, request: LeaseRequest, call: Call): Promise<Verdict>;
  /** Ends a lease. Does nothing if it has ended already, or was never recorded. */
  end(request: LeaseRequest, call: Call): Promise<void>;
}

/** A lease to be created, or a change of a lease. */
export interface LeaseRequest {
  readonly context: Context;
  /** Only for an update. */
  readonly currentLease?: Lease;
  readonly lease: Lease;
  /** For a new lease, if the request may have been sent before. */
  readonly repetition?: Repetition | undefined;
  /** Whether a new lease with an id may be one that was recorded by a check, before it had an id. */
  readonly adopts?: boolean | undefined;
  /** For `claims`: those of the call. */
  readonly names?: RequestNames | undefined;
}

/**
 * The clock of the machine: what everything goes by unless it is given another one. With it, a ledger on PostgreSQL goes by the clock of
 * the database, which is one for all replicas.
 */
export const SYSTEM_CLOCK: Clock = { now: () => new Date() };

/** Receives what rules say of requests, for tests of rules. It must not throw. */
export interface RuleObserver {
  /** Once, before any request: every rule for leases that the configuration has, in order. */
  rulesRead(rules: readonly ObservedRule[]): void;
  /** `explain`: evaluates the rule once more. Call it before the request has been answered. */
  ruleJudged(rule: ObservedRule, said: RuleAnswer, explain: () => readonly RuleExplanation[]): void;
}

export interface ObservedRule {
  readonly name: string;
  readonly audit: boolean;
  readonly place: { readonly file: string; readonly line: number };
}

/**
 * - `allowed`, `refused`: it judged the request
 * - `skipped`: it does not apply: it has ended, somebody is exempt, or `match` is false
 * - `failed`: it could not be evaluated
 */
export type RuleAnswer = 'allowed' | 'refused' | 'skipped' | 'failed';

/** One of the two expressions of a rule, for people. */
export interface RuleExplanation {
  readonly of: 'match' | 'allow';
  /** Each part that was evaluated, and its value; the whole expression last. Short texts without secrets. */
  readonly parts: readonly { readonly text: string; readonly value: string }[];
}
