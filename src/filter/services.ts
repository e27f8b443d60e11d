/**
 * What filters get besides their options and the request. Only interfaces: the chain and the ledger implement
 * them.
 */
import type { Logger } from '../base/logger.ts';
import type { HttpClient, HttpClientOptions } from '../http/contract.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { SharedLimit } from './claim.ts';
import type { OutboxService } from './outbox.ts';
import type { Call, Repetition, RequestNames, Verdict } from './verdict.ts';

/** The current time. Tests pass their own clock. */
export interface Clock {
  now(): Date;
}

/** For filters and admin policies. */
export interface SharedServices {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Creates clients for calls to other services, bounded in time and size, with kept-alive connections. */
  readonly http: { createClient(options: HttpClientOptions): HttpClient };
  /** Only for tests of rules. */
  readonly ruleObserver?: RuleObserver | undefined;
}

/** For filters. */
export interface FilterServices extends SharedServices {
  /** For limits that leases share, used by `LedgerFilter`. Opened only if a filter opens it. */
  readonly ledger: LedgerService;
  /** Tokens of the account in `[keystone]`. */
  readonly keystone: ServiceTokens;
  /** For messages to other services that must not be lost. Opens the ledger when a filter opens it. */
  readonly outbox: OutboxService;
}

/** Tokens of our own Keystone account, which other services accept. */
export interface ServiceTokens {
  /** A token that stays valid for a while. Throws if there is none. */
  token(call?: Pick<Call, 'signal'>): Promise<string>;
  /** Call it after a 401: the next `token` is a new one. */
  refused(token: string): void;
}

/** The ledger, for filters. */
export interface LedgerService {
  /** Must be called first. Throws `ConfigurationError` if there is no usable ledger. */
  open(): Promise<void>;
  /** Whether the lease fits within the filter's limits. Records nothing. Throws if the ledger cannot be read. */
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
  /** For a new lease, if the request may be a repetition. */
  readonly repetition?: Repetition | undefined;
  /** Whether a check may have recorded the same before, a new lease without its id. */
  readonly adopts?: boolean | undefined;
  /** For `claims`: the names in the call. */
  readonly names?: RequestNames | undefined;
}

/**
 * The clock of the machine, the default. With it, a ledger on PostgreSQL uses the clock of the database,
 * which all replicas share.
 */
export const SYSTEM_CLOCK: Clock = { now: () => new Date() };

/** Receives the results of rules, for tests of rules. It must not throw. */
export interface RuleObserver {
  /** Called once, before any request: every rule for leases in the configuration, in order. */
  rulesRead(rules: readonly ObservedRule[]): void;
  /** `explain`: evaluates the rule once more. Call it before the request is answered. */
  ruleJudged(rule: ObservedRule, said: RuleAnswer, explain: () => readonly RuleExplanation[]): void;
}

export interface ObservedRule {
  readonly name: string;
  readonly audit: boolean;
  readonly place: { readonly file: string; readonly line: number };
}

/**
 * - `allowed`, `refused`: it judged the request
 * - `skipped`: it does not apply: it has ended, there is an exemption, or `match` is false
 * - `failed`: it could not be evaluated
 */
export type RuleAnswer = 'allowed' | 'refused' | 'skipped' | 'failed';

/** One of the two expressions of a rule, for display. */
export interface RuleExplanation {
  readonly of: 'match' | 'allow';
  /** Each evaluated part and its value, the whole expression last. Short texts without secrets. */
  readonly parts: readonly { readonly text: string; readonly value: string }[];
}
