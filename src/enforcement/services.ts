/** The dependencies of a chain, and the services that it passes to filters. */

import { createLogger, type Logger } from '../base/logger.ts';
import { type Clock, type RuleObserver, type SharedServices, SYSTEM_CLOCK } from '../filter/services.ts';
import { createHttpClient } from '../http/client.ts';
import type { HttpClientOptions, HttpObserver } from '../http/contract.ts';
import type { LedgerObserver } from '../ledger/transactions/transaction.ts';
import type { Keystone } from '../openstack/contract.ts';
import type { Names, NamesObserver } from '../openstack/names.ts';
import type { ExecutionTracker } from './execution-tracker.ts';

/** The dependencies of a chain. Each has a default. */
export interface EnforcementServices {
  /** Default: warnings and errors as JSON lines on standard error. */
  readonly logger?: Logger;
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Receives every call of filters to other services. Default: none. */
  readonly httpObserver?: HttpObserver | undefined;
  /** Receives every transaction of the ledger. Default: none. */
  readonly ledgerObserver?: LedgerObserver | undefined;
  /** Receives every name that Keystone does not resolve. Default: none. */
  readonly namesObserver?: NamesObserver | undefined;
}

/** The additional dependencies of a chain in the policy service, and in trial runs. */
export interface WatchedServices extends EnforcementServices {
  /** Records which filter is executing. Default: one that nothing reads. */
  readonly executions?: ExecutionTracker | undefined;
  /** Instead of calls to other services. Default: real ones. */
  readonly http?: SharedServices['http'] | undefined;
  /** Replaces the Keystone of `[keystone]`, if that is set. Default: the real one. */
  readonly keystone?: Keystone | undefined;
  /** Those of the configuration before: Keystone may be unavailable when it is reloaded. Default: none. */
  readonly earlierNames?: Names | undefined;
  /** Receives the results of rules. Default: none. */
  readonly ruleObserver?: RuleObserver | undefined;
}

export function createSharedServices({
  logger,
  clock,
  httpObserver,
  http,
  ruleObserver,
}: WatchedServices): SharedServices {
  return {
    logger: logger ?? createLogger(),
    clock: clock ?? SYSTEM_CLOCK,
    http: http ?? { createClient: (options: HttpClientOptions) => createHttpClient(options, httpObserver) },
    ...(ruleObserver !== undefined && { ruleObserver }),
  };
}
