/** The dependencies of a chain, and the services that it passes to filters. */
import type { Clock, SharedServices } from '../filter/services.ts';
import { createHttpClient } from '../http/client.ts';
import type { HttpClientOptions, HttpObserver } from '../http/contract.ts';
import type { LedgerObserver } from '../ledger/observer.ts';
import { createLogger, type Logger } from '../logger.ts';
import type { NamesObserver } from '../openstack/names.ts';
import type { Occupation } from './occupation.ts';

/** The dependencies of a chain. Each has a default. */
export interface EnforcementServices {
  /** Default: warnings and errors as JSON lines on standard error. */
  readonly logger?: Logger;
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Receives every call that filters make to other services. Default: none. */
  readonly httpObserver?: HttpObserver | undefined;
  /** Receives every transaction of the ledger. Default: none. */
  readonly ledgerObserver?: LedgerObserver | undefined;
  /** Receives every name that Keystone does not tell. Default: none. */
  readonly namesObserver?: NamesObserver | undefined;
}

/** The additional dependency of a chain in the policy service. */
export interface WatchedServices extends EnforcementServices {
  /** Records which filter is executing. Default: one that nothing reads. */
  readonly occupation?: Occupation | undefined;
}

/** The services that filters and policies receive. */
export function createSharedServices({ logger, clock, httpObserver }: EnforcementServices): SharedServices {
  return {
    logger: logger ?? createLogger(),
    clock: clock ?? { now: () => new Date() },
    http: { createClient: (options: HttpClientOptions) => createHttpClient(options, httpObserver) },
  };
}
