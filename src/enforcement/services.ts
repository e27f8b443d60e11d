/** What a chain needs from outside, and what it hands on to filters. */
import type { Clock, SharedServices } from '../filter/services.ts';
import { createHttpClient } from '../http/client.ts';
import type { HttpClientOptions, HttpObserver } from '../http/contract.ts';
import type { LedgerObserver } from '../ledger/observer.ts';
import { createLogger, type Logger } from '../logger.ts';
import type { Occupation } from './occupation.ts';

/** What the chain needs from outside, each with a default. */
export interface EnforcementServices {
  /** Default: JSON lines on standard error, warnings and errors. */
  readonly logger?: Logger;
  /** Default: the system's clock. */
  readonly clock?: Clock;
  /** Is told of every call that filters make to other services. Default: nobody is. */
  readonly httpObserver?: HttpObserver | undefined;
  /** Is told of every transaction of the ledger. Default: nobody is. */
  readonly ledgerObserver?: LedgerObserver | undefined;
}

/** What the policy service hands in besides. */
export interface WatchedServices extends EnforcementServices {
  /** Where it is written which filter is at work. Default: where nobody looks. */
  readonly occupation?: Occupation | undefined;
}

/** What filters, and policies, are given. */
export function createSharedServices({ logger, clock, httpObserver }: EnforcementServices): SharedServices {
  return {
    logger: logger ?? createLogger(),
    clock: clock ?? { now: () => new Date() },
    http: { createClient: (options: HttpClientOptions) => createHttpClient(options, httpObserver) },
  };
}
